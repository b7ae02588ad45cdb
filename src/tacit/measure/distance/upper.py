r"""Bounds from above of sup_{|x| <= 1} |h(x)| for h(x) = sum_j a_j relu(<u_j, x>)^p.

**p = 1: zonotopes.** sum_j b_j relu(<u_j, x>) with b_j > 0 is the support function of the zonotope Z, the sum
of the segments [0, b_j u_j]. With Z+ from the positive and Z- from the negative a_j,

    sup_{|x| <= 1} h(x) = max_{z in Z+} dist(z, Z-),

so sup |h| is their Hausdorff distance. dist(., Z-) is convex, so z runs over the 2^(m+) sums of whole
segments, and each distance is a least-squares problem in a box: any point of the box bounds it from above,
and the direction of the residual is the x that bounds it from below. Exact up to that convergence, for at
most `MOST_SEGMENTS` of each sign.

**Any p: pairs.** Each neuron of f is paired with the nearest of F of its sign (within 60 degrees), whose mass
is split among its partners. A pair lives on a plane; with M+ (M-) the largest (smallest, negated) value of
its difference on the unit circle, difference <= M+ r^p, r the length of x on that plane. The pairs of one
neuron k of F make a group with M_k their sum and r_k the length of x on the group's span, projector P_k:
sum_k r_k^2 <= Lam, the largest eigenvalue of sum_k P_k, and r_k <= 1. For p >= 2 the sum of M_k r_k^p is
convex in the squares and largest with the floor(Lam) largest M_k at r = 1 and the rest of Lam on the next
one, and at most the largest eigenvalue of sum_k M_k P_k, since r^p <= r^2; for p < 2, Hoelder's inequality.
Groups that are orthogonal (centres turned into fresh directions) have Lam = 1, and for p >= 2 the bound is
the supremum.

**The circle.** g(phi) = a relu(cos phi)^p - b relu(cos(phi - theta))^p is taken on a grid; its maximum has
slope 0 and is within half a spacing e of a grid point, where g is lower by at most e^2/2 times the largest
-g''. With q(phi) = relu(cos phi)^p: -q'' <= p; for p >= 2, |q''| <= p (p-1); for p >= 3, |q'''| <= p^3, so
that for a and b close |g''| <= |a-b| p (p-1) + min(a, b) theta p^3. For 1 < p < 2, q(phi + e) <= q + q' e + p
e^2 / 2 + e^p. For p = 1 the two-segment zonotopes give it in closed form: |a u - lam b m| with lam = a
cos(theta) / b, clipped to [0, 1].
"""

import math

import torch
from jaxtyping import Float
from scipy.optimize import lsq_linear
from torch import Tensor

from tacit.base.shapes import Numbers
from tacit.measure.distance.cells import cell_bound
from tacit.measure.distance.pieces import Pieces

MOST_SEGMENTS = 10
SWEEPS = 40
CONVERGED = 1e-14
MOST_SOLVED = 100
GRID = 4096
LEADING = 24
NEAR = 0.5  # the cosine of a pair: farther neurons would only widen the group's span


def upper_bound(pieces: Pieces, c: float) -> float:
    """A number that |c f - F| does not exceed on the unit ball, up to rounding."""
    best = pair_bound(pieces, c)
    both = _residuals_both_ways(pieces, c)
    if both is not None:
        best = min(best, max(float(rest.norm(dim=1).max()) for rest in both))
    cells = cell_bound(pieces, c)
    return best if cells is None else min(best, cells)


def zonotope_points(pieces: Pieces, c: float) -> Float[Tensor, "n r"] | None:
    """p = 1, few neurons: the x of the largest distances between the zonotopes, both ways; else None."""
    both = _residuals_both_ways(pieces, c)
    if both is None:
        return None
    rest = torch.cat(
        [side[side.norm(dim=1).topk(min(LEADING, len(side))).indices] for side in both]
    )
    length = rest.norm(dim=1)
    return rest[length > 0] / length[length > 0].unsqueeze(1)


def _residuals_both_ways(pieces: Pieces, c: float) -> tuple[Tensor, Tensor] | None:
    """What `_residuals` leaves of Z+ outside Z-, and of Z- outside Z+; None where these are too many sums."""
    a = pieces.weights(c)
    up, down = a > 0, a < 0
    if pieces.p != 1 or max(int(up.sum()), int(down.sum())) > MOST_SEGMENTS:
        return None
    segments = a.abs().unsqueeze(1) * pieces.u
    return _residuals(segments[up], segments[down]), _residuals(segments[down], segments[up])


def _residuals(one: Float[Tensor, "m r"], other: Float[Tensor, "k r"]) -> Float[Tensor, "s r"]:
    """For each of the 2^m sums of whole segments of `one`: that sum minus its nearest point of the zonotope
    of `other`.

    Coordinate descent on the box [0, 1]^k for all sums at once. Where it is slow (segments that depend on
    each other), the sum that is farthest is solved by an active-set method, until the farthest has been: the
    others are nearer still.
    """
    m = len(one)
    bits = torch.arange(2**m, device=one.device).unsqueeze(1) >> torch.arange(m, device=one.device)
    sums = (bits & 1).to(one.dtype) @ one
    if not len(other):
        return sums
    gram, target = other @ other.T, (sums @ other.T).T.contiguous()
    share = torch.zeros_like(target)
    for _ in range(SWEEPS):
        before = share.clone()
        for j in range(len(other)):
            rest = target[j] - gram[j] @ share + gram[j, j] * share[j]
            share[j] = (rest / gram[j, j]).clamp(0, 1)
        if float((share - before).abs().max()) <= CONVERGED:
            return sums - share.T @ other
    rest = sums - share.T @ other
    solved: set[int] = set()
    while (far := int(rest.norm(dim=1).argmax())) not in solved and len(solved) < MOST_SOLVED:
        solved.add(far)
        answer = lsq_linear(other.T.cpu().numpy(), sums[far].cpu().numpy(), (0, 1), method="bvls")
        exact = sums[far] - torch.as_tensor(answer.x.clip(0, 1)).to(other) @ other
        if exact.norm() < rest[far].norm():
            rest[far] = exact
    return rest


def pair_bound(pieces: Pieces, c: float) -> float:
    """The bound by pairs, at the head of this file."""
    mine, theirs = (pieces.f != 0).nonzero().squeeze(1), (pieces.F != 0).nonzero().squeeze(1)
    u, U = pieces.u[mine], pieces.u[theirs]
    A, B = c * pieces.f[mine], pieces.F[theirs]
    cosine = torch.where(A.sign().unsqueeze(1) == B.sign(), u @ U.T, -torch.inf)
    near, partner = cosine.max(1) if len(B) else (A - torch.inf, torch.zeros_like(mine))
    paired = near > NEAR
    weight = torch.where(paired, A.abs(), 0.0)
    taken = torch.zeros_like(B).index_add_(0, partner[paired], weight[paired])
    k = partner[paired]
    a, b = A[paired].abs(), B[k].abs() * weight[paired] / taken[k].clamp_min(1e-300)
    # an angle from its chord: the arc cosine loses half the digits where neurons nearly agree
    theta = 2 * torch.asin(((u[paired] - U[k]).norm(dim=1) / 2).clamp_max(1))
    ahead, behind = _circle(a, b, theta, pieces.p)
    flip = A[paired] < 0
    ahead, behind = torch.where(flip, behind, ahead), torch.where(flip, ahead, behind)

    alone = (taken == 0) if len(B) else torch.zeros(0, dtype=torch.bool, device=B.device)
    peak = torch.stack([ahead.new_zeros(len(B)), ahead.new_zeros(len(B))])
    peak[0].index_add_(0, k, ahead)
    peak[1].index_add_(0, k, behind)
    peak += torch.where(alone, torch.stack([(-B).clamp_min(0), B.clamp_min(0)]), 0.0)
    lonely = A[~paired]
    single = torch.stack([lonely.clamp_min(0), (-lonely).clamp_min(0)])
    groups = [torch.cat([U[i : i + 1], u[paired][k == i]]) for i in range(len(B))]
    frames = [_frame(rows) for rows in groups] + [row.unsqueeze(0) for row in u[~paired]]
    peak = torch.cat([peak, single], 1)
    if not frames:
        return 0.0
    overlap = _largest_eigenvalue(frames, torch.ones_like(peak[0]))
    bounds = [_together(side, overlap, pieces.p) for side in peak]
    if pieces.p >= 2:
        # r^p <= r^2, and the sum of M_k r_k^2 is a quadratic form
        bounds = [min(b, _largest_eigenvalue(frames, m)) for b, m in zip(bounds, peak, strict=True)]
    return max(bounds)


def _largest_eigenvalue(frames: list[Tensor], weight: Float[Tensor, " k"]) -> float:
    """Of sum_k M_k P_k, P_k the projector on the span of the k-th frame's rows."""
    scaled = torch.cat([m.sqrt() * rows for m, rows in zip(weight, frames, strict=True)])
    return float(torch.linalg.matrix_norm(scaled, ord=2)) ** 2 * (1 + 1e-12)


def _frame(rows: Float[Tensor, "n r"]) -> Float[Tensor, "k r"]:
    """Orthonormal rows with the same span (directions of rounding count: the span may only be too large)."""
    _, singular, axes = torch.linalg.svd(rows, full_matrices=False)
    return axes[singular > 0]


def _together(peak: Float[Tensor, " k"], overlap: float, p: float) -> float:
    """max sum_k M_k r_k^p over 0 <= r_k <= 1, sum_k r_k^2 <= overlap (a bound of it for p < 2)."""
    if p < 2:
        power = 2 / (2 - p)
        largest = max(float(peak.max()), 1e-300)
        total = float(((peak / largest) ** power).sum()) ** (1 / power) * largest
        return min(total * overlap ** (p / 2), float(peak.sum()))
    ordered = peak.sort(descending=True).values
    whole = min(math.floor(overlap), len(ordered))
    rest = float(ordered[whole]) * (overlap - whole) ** (p / 2) if whole < len(ordered) else 0.0
    return float(ordered[:whole].sum()) + rest


def _circle(a: Numbers, b: Numbers, theta: Numbers, p: float) -> tuple[Numbers, Numbers]:
    """M+ and M- of a relu(cos phi)^p - b relu(cos(phi - theta))^p, bounded from above; a, b > 0."""
    if p == 1:

        def beyond(long: Tensor, short: Tensor) -> Tensor:
            """The distance of the end of one segment from the other."""
            along = (long * theta.cos()).clamp_min(0).minimum(short)
            return ((long * theta.cos() - along) ** 2 + (long * theta.sin()) ** 2).sqrt()

        return beyond(a, b), beyond(b, a)
    phi = torch.arange(GRID, dtype=a.dtype, device=a.device) * (2 * math.pi / GRID)
    e = math.pi / GRID
    first = phi.cos().clamp_min(0) ** p
    second = (phi - theta.unsqueeze(1)).cos().clamp_min(0) ** p
    gap = a.unsqueeze(1) * first - b.unsqueeze(1) * second

    def between(plus: Tensor, minus: Tensor) -> Tensor:
        """How much higher than on the grid plus q(phi) - minus q(phi - theta) can be."""
        if p < 2:
            return plus * p * e**2 / 2 + minus * (p * e**2 / 2 + e**p)
        curve = plus * p + minus * p * (p - 1)
        if p >= 3:
            near = (a - b).abs() * p * (p - 1) + torch.minimum(a, b) * theta * p**3
            curve = torch.minimum(curve, near)
        return curve * e**2 / 2

    return gap.amax(1) + between(a, b), (-gap).amax(1) + between(b, a)
