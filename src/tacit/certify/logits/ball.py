r"""The margin of a pair over an l2 or linf ball, bounded from below by a sum of parabolas.

With a parabola below each neuron (`logits_parabola`), F(c + delta) >= alpha + <g, delta> + delta' M delta / 2
with g = U' beta, M = U' diag(k) U: the neurons cannot all move at once, and M knows it (a line for each
neuron, CROWN, pays for all their bends together: the trace in place of the largest eigenvalue). The ball lies
in an ellipsoid sum_i d_i delta_i^2 <= rho^2: for l2 itself (d = 1, rho = r), for linf any d > 0 with rho^2 =
r^2 sum_i d_i. There the least value of a quadratic function has an exact dual (the trust-region problem; Boyd
& Vandenberghe, Appendix B.1): for every lam >= 0 with P = M + lam diag(d) positive definite,

    min  >=  alpha - g' P^-1 g / 2 - lam rho^2 / 2.

This is a sound bound for every choice of parabolas, d and lam. The best choice is the dual of a semidefinite
relaxation (Shor; Raghunathan, Steinhardt & Liang 2018 for ReLU), found by letting two sides answer each
other:

- a move delta with mean -P^-1 g and covariance 2 mu P^-1: the answer to P with a barrier mu log det P. lam is
  such that its mean square meets the ball;
- to the moments of <u_j, delta> the best parabolas; to those of delta_i (linf) d_i sqrt(E delta_i^2) / r.

mu falls from step to step, and each side goes only part of the way. Rounding: eigenvalues are lowered by
more than their error, and SLACK is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack.norms import LINF, Norm
from tacit.certify.logits.pairs import EDGE, SLACK, Pairs
from tacit.certify.logits.parabola import parabolas

BARRIER, LEAST_BARRIER, COOLING = 0.01, 0.0015, 0.8  # mu, of the clean margin
PART = 0.4  # of the way to the answer
FLOOR = 0.3  # d_i to begin with: |g_i| + this much of the mean
SPREAD = 1e3  # an answer changes d by less than this factor
NEWTON_STEPS = 7
EIGEN = 1e-11  # of the largest eigenvalue: more than the error of any


@dataclass(frozen=True)
class Moments:
    """Mean and mean square of <u_j, delta> / (r ||u_j||_dual), the weights d, and how many answers were given."""

    mean: Float[Tensor, "m h"]
    square: Float[Tensor, "m h"]
    d: Float[Tensor, "m D"]
    age: Float[Tensor, " m"]

    def at(self, here: Tensor) -> Moments:
        """Some of the pairs."""
        return Moments(self.mean[here], self.square[here], self.d[here], self.age[here])

    def put(self, here: Tensor, other: Moments) -> None:
        """Some of the pairs, in place."""
        for name in ("mean", "square", "d", "age"):
            getattr(self, name)[here] = getattr(other, name)


def no_moments(pairs: Pairs, norm: Norm) -> Moments:
    """No move; for linf the d that are exact where F is linear, raised a little."""
    still = torch.zeros_like(pairs.a)
    d = torch.ones_like(pairs.c)
    if norm is LINF:
        g = pairs.gradient().abs()
        d = g + FLOOR * g.mean(1, keepdim=True) + 1e-300
        d = d / d.mean(1, keepdim=True)
    return Moments(still, still.clone(), d, torch.zeros_like(pairs.beta))


def ball_bound(
    pairs: Pairs, norm: Norm, r: Float[Tensor, " m"], moments: Moments, clean: Float[Tensor, " m"]
) -> tuple[Float[Tensor, " m"], Moments]:
    """A lower bound of F over the ball (r > 0), with the parabolas for `moments`; and the moments that answer it.

    `clean` is F at the points: it sets the scale of mu.
    """
    reach = r.unsqueeze(1) * pairs.dual.clamp_min(EDGE)
    var = (moments.square - moments.mean.square()).clamp_min(0)
    alpha, beta, k = parabolas(
        pairs.a, pairs.t, reach, moments.mean * reach, var * reach.square(), pairs.p
    )
    const, slant = pairs.radial_below(r)
    root = moments.d.rsqrt().unsqueeze(1)
    V = pairs.u * root
    rho = r * moments.d.sum(1).sqrt() if norm is LINF else r
    M = (V.mT * k.unsqueeze(1)) @ V
    M = M + torch.diag_embed(2 * slant.unsqueeze(1) * root.squeeze(1).square())
    # a power that overflows: nothing is proved there
    lost = ~M.flatten(1).isfinite().all(1)
    M = torch.where(lost[:, None, None], torch.eye(M.shape[1], dtype=M.dtype, device=M.device), M)
    e, Q = torch.linalg.eigh(M)
    e = e - EIGEN * e.abs().amax(1, keepdim=True)
    g = (beta @ pairs.u + 2 * slant.unsqueeze(1) * pairs.c) * root.squeeze(1)
    q = (g.unsqueeze(1) @ Q).squeeze(1)
    mu = clean.abs() * (BARRIER * COOLING**moments.age).clamp_min(LEAST_BARRIER)
    lam, warm = multiplier(e, q, rho, torch.stack([torch.zeros_like(mu), mu]))
    fall = ((q.square() / (e + lam.unsqueeze(1))).sum(1) + lam * rho.square()) / 2
    bound = alpha.sum(1) + const - fall * (1 + SLACK) - pairs.slack(r)
    P = e + warm.unsqueeze(1)
    mean = -(Q @ (q / P).unsqueeze(2)).squeeze(2)
    spread = 2 * mu.unsqueeze(1) / P
    moved = (V @ mean.unsqueeze(2)).squeeze(2)
    bent = moved.square() + ((V @ Q).square() @ spread.unsqueeze(2)).squeeze(2)
    part = torch.where(moments.age == 0, 1.0, PART).unsqueeze(1)
    d = moments.d
    if norm is LINF:
        mass = (mean.square() + (Q.square() @ spread.unsqueeze(2)).squeeze(2)) / d
        pull = (mass / r.square().unsqueeze(1)).clamp(SPREAD**-2, SPREAD**2)
        d = d * pull ** (part / 2)
        d = d / d.mean(1, keepdim=True)
    bound = torch.where(lost | bound.isnan(), -torch.inf, bound)
    answer = Moments(
        moments.mean + part * (moved / reach - moments.mean),
        moments.square + part * (bent / reach.square() - moments.square),
        d,
        moments.age + 1,
    )
    return bound, answer


def multiplier(
    e: Float[Tensor, "m D"],
    q: Float[Tensor, "m D"],
    rho: Float[Tensor, " m"],
    mu: Float[Tensor, "b m"],
) -> Float[Tensor, "b m"]:
    """For each mu: sum q^2 / (e + lam)^2 + 2 mu sum 1 / (e + lam) = rho^2, or the least lam; e ascends.

    The left side f falls with lam, and f^(-1/2) is near linear: Newton's steps on it, from below the root, where
    no term alone is more than rho^2 (More & Sorensen 1983). Any lam with e + lam > 0 is sound.
    """
    least = (-e[:, 0]).clamp_min(0) + EDGE * e.abs().amax(1) + 1e-300
    size = q.norm(dim=1) / rho
    start = torch.maximum((q.abs() / rho.unsqueeze(1) - e).amax(1), size - e[:, -1])
    lam = torch.maximum(torch.maximum(start, 2 * mu / rho.square() - e[:, 0]), least)
    for _ in range(NEWTON_STEPS):
        inverse = 1 / (e + lam.unsqueeze(2))
        squares, bent = (q * inverse).square(), mu.unsqueeze(2) * inverse
        f = (squares + 2 * bent).sum(2)
        slope = ((squares + bent) * inverse).sum(2).clamp_min(1e-300)
        lam = torch.maximum(lam + (f.sqrt() / rho - 1) * f / slope, least)
    return lam
