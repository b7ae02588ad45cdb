r"""Certified bounds in closed form for PolyReLU nets, any directions and any number of neurons.

N_own(z) = (sum_own A_k relu(z_k)^p)^(1/p) and N_opp are p-norms of relu'd projections, so by Minkowski's
inequality a move delta changes N by at most ||W delta||_p, W the rows A_k^(1/p) V_k. A broken point has
N_own <= N_opp + tau^(1/p), so it needs

    N_own(t) - N_opp(t) - tau^(1/p) <= ||W_own delta||_p + ||W_opp delta||_p <= L ||delta||.

**l1.** The middle is convex in delta, so over the ball it is largest at a vertex: L is its maximum over the
coordinate axes. At the centres on the axes this is the radius, 1.

**linf.** |<V_k, delta>| <= ||V_k||_1 ||delta||. Own neurons may be left out, which only lowers N_own: the best of
the first m in the order of A relu(t)^p is taken. At the centres on the axes m = 1 is exact.

**l2**, p >= 2. Since ||.||_p <= ||.||_2,

    L^2 = min_{0 < s < 1} lambda_max(W_own' W_own / s + W_opp' W_opp / (1 - s)),

by (a + b)^2 <= a^2 / s + b^2 / (1 - s). For orthonormal directions of equal weight L = sqrt(2): at the centres
this is the radius itself, and at p = 2 it is exact wherever an opposite projection is positive.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.attack.norms import L1, LINF, Norm
from tacit.certify.poly.merge import Shifted
from tacit.certify.poly.roots import power

SHARES = 63  # values of s tried: any of them gives a valid L


def norm_lower(problem: Shifted, norm: Norm) -> Float[Tensor, " n"]:
    """No broken point is closer than this, nor than `problem.radius`; in l2 0 for p < 2."""
    p, own, opp = problem.p, problem.own, ~problem.own
    W = problem.A.unsqueeze(1) ** (1 / p) * problem.V
    mine, theirs = (power(problem.t[:, k].clamp_min(0), p) * problem.A[k] for k in (own, opp))
    N_opp = theirs.sum(1, keepdim=True) ** (1 / p)
    if norm is LINF:
        order = mine.argsort(dim=1, descending=True)
        N_own = mine.gather(1, order).cumsum(1) ** (1 / p)
        sizes = W.abs().sum(1) ** p
        L = sizes[own][order].cumsum(1) ** (1 / p) + sizes[opp].sum() ** (1 / p)
    else:
        N_own = mine.sum(1, keepdim=True) ** (1 / p)
        L = vertex_slope(W, own, p) if norm is L1 else flat_slope(W, own, p)
    head = N_own - N_opp - problem.tau.unsqueeze(1) ** (1 / p) - 1e-13 * (N_own + N_opp)
    lower = (head / (L * (1 + 1e-12)).clamp_min(1e-300)).clamp_min(0)
    return torch.minimum(lower.amax(1), problem.radius)


def vertex_slope(W: Float[Tensor, "K D"], own: Bool[Tensor, " K"], p: float) -> Float[Tensor, ""]:
    """max_i ||W_own e_i||_p + ||W_opp e_i||_p."""
    return (W[own].norm(p, dim=0) + W[~own].norm(p, dim=0)).max()


def flat_slope(W: Float[Tensor, "K D"], own: Bool[Tensor, " K"], p: float) -> Float[Tensor, ""]:
    """L of l2; inf for p < 2."""
    if p < 2:
        return W.new_tensor(torch.inf)
    mine, theirs = W[own].T @ W[own], W[~own].T @ W[~own]
    s = torch.arange(1, SHARES + 1, dtype=W.dtype).reshape(-1, 1, 1) / (SHARES + 1)
    return torch.linalg.eigvalsh(mine / s + theirs / (1 - s))[:, -1].clamp_min(0).sqrt().min()
