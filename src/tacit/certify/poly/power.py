r"""The shortest breaking move of F^(p) with orthogonal centres, any positive weights, any p > 1, in l2.

In coordinates c_k = <e_k, x> along the unit centres the problem is separable. Write `own` for the
centres of the point's class and `opp` for the others; the new projections are u:

    minimise  sum_k (u_k - c_k)^2 / 2   s.t.   sum_own A_k relu(u_k)^p <= sum_opp A_k relu(u_k)^p.   (*)

**At a minimiser** (for a point that is not broken) the constraint is active. Either no u_k is
positive, which the *end* covers: all own projections at min(c_k, 0), the opposite ones unmoved,
length^2 = sum_own relu(c_k)^2. Or the constraint's gradient is not zero, so a multiplier lam >= 0
exists with

    own:  u + lam p A relu(u)^(p-1) = c      (u = c where c <= 0; else one root, decreasing in lam)
    opp:  u - lam p A relu(u)^(p-1) = c      (u = c is a root where c <= 0)

and the Hessian of the Lagrangian, which is diagonal, is non-negative on the tangent hyperplane. A
diagonal matrix with two negative entries is negative somewhere on every hyperplane, so **at most one
coordinate has negative curvature**; own coordinates never do.

**p >= 2.** u - lam p A u^(p-1) is concave: an opposite coordinate with c > 0 has a lower root
(curvature >= 0) and an upper one (< 0); one with c <= 0 stays, or sits at its only positive root
(< 0). So all opposite coordinates but one, the *riser* j, lie on their lower root or stay. Given lam,
everything but u_j is known and u_j follows from the constraint itself,

    A_j u_j^p = sum_own A u^p - sum_{opp, not j} A u^p =: G(lam)

(u_j = c_j where that is enough). Taking u_j from the constraint rather than from its multiplier makes
every lam a feasible point, so nothing shorter than the true radius can be returned, and p = 2 with
c_j = 0 is no special case. The radius is the least length over j, over lam in [0, Lam_j] (the first
fold of another opposite coordinate) and the end. If the opposite weights are equal, swapping two
opposite coordinates keeps (*), so by rearrangement the riser is the largest c_j.

**1 < p < 2.** u - lam p A u^(p-1) is convex on u > 0: an opposite coordinate may also sit at its
upper root (curvature >= 0), whatever the sign of c, so several rise together. Let R be the set that
rises; one of R, the riser j, may be at its lower root, so again u_j comes from the constraint. If k
rises and i does not, with c_i >= c_k and A_i >= A_k, then raising i in place of k is no longer and
breaks no less: R is an up-set of that order. With equal weights it is a prefix of the order by c and
j is its last; otherwise up-sets are enumerated, and those with sum_R relu(-c)^2 >= best^2 pruned
(a riser ends above 0).

**The scan.** lam is driven by the largest own coordinate, c_1 -> (1 - s) c_1, s in [0, 1); a grid in
s finds the basins, and the root of the slope the bottom of the two best. That the grid separates the basins is
not proved here: `poly_cells` bounds the radius from below, for p >= 2 to 1e-8. For 1 < p < 2 a basin can be
missed (seen at p = 1.5). Cost:
O(grid * K) a point.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.certify.poly.curve import Curve, Move, Separable
from tacit.certify.poly.roots import power
from tacit.errors import CallError

GRID = 24
SECANT_STEPS = 8
SETTLED = 1e-6  # the slope is a difference of logarithms: relative, and its square counts
BISECTION_STEPS = 42
CHUNK = 4096
MOST_UNEQUAL = 14
LARGEST_P = 100


@dataclass(frozen=True)
class Shortest:
    """The shortest breaking move found: its squared length and the moves of all coordinates."""

    square: Float[Tensor, " n"]
    own: Float[Tensor, "n K1"]
    opp: Float[Tensor, "n K2"]

    def better(self, other: Shortest) -> Shortest:
        """Point by point the shorter of two."""
        wins = other.square < self.square
        mine = wins.unsqueeze(1)
        return Shortest(
            torch.where(wins, other.square, self.square),
            torch.where(mine, other.own, self.own),
            torch.where(mine, other.opp, self.opp),
        )


def power_radius(
    own: Float[Tensor, "n K1"],
    opp: Float[Tensor, "n K2"],
    A_own: Float[Tensor, " K1"],
    A_opp: Float[Tensor, " K2"],
    p: float,
) -> Shortest:
    """Solve (*) for every point: length 0 where it is broken already."""
    if not 1 < p <= LARGEST_P:
        raise CallError(
            f"p={p}: this radius is for 1 < p <= {LARGEST_P}, beyond which powers underflow"
        )
    pieces = [
        chunk_radius(Separable(own[i : i + CHUNK], opp[i : i + CHUNK], A_own, A_opp, p))
        for i in range(0, max(len(own), 1), CHUNK)
    ]
    return Shortest(*(torch.cat([getattr(s, f) for s in pieces]) for f in ("square", "own", "opp")))


def chunk_radius(task: Separable) -> Shortest:
    """The least over risers (and rising sets), the end, and zero where nothing need move."""
    unit, size, _ = normalised(task)
    best = unit_radius(unit)
    return Shortest(best.square * size.squeeze(1) ** 2, best.own * size, best.opp * size)


def normalised(
    task: Separable,
) -> tuple[Separable, Float[Tensor, "n 1"], Float[Tensor, ""]]:
    """The same problem with projections and weights of at most 1; the size of each point, the heaviest weight.

    (*) is homogeneous: projections are divided by the largest of their point and weights by the
    largest weight, so that no power over- or underflows whatever the scale.
    """
    size = torch.cat([task.own, task.opp], 1).abs().amax(1, keepdim=True).clamp_min(1e-300)
    heaviest = torch.cat([task.A_own, task.A_opp]).max()
    unit = Separable(
        task.own / size, task.opp / size, task.A_own / heaviest, task.A_opp / heaviest, task.p
    )
    return unit, size, heaviest


def unit_radius(task: Separable) -> Shortest:
    """`chunk_radius` for projections and weights of at most 1."""
    best = end(task)
    if task.own.shape[1] and task.opp.shape[1]:
        order = task.opp.argsort(dim=1, descending=True)
        equal = task.equal_opposite
        if task.p >= 2 and equal:
            best = best.better(scan(Curve(task, order[:, 0])))
        elif task.p >= 2:
            for j in range(task.opp.shape[1]):
                best = best.better(scan(Curve(task, torch.full_like(order[:, 0], j))))
        elif equal:
            place = order.argsort(dim=1)
            for m in range(task.opp.shape[1]):
                best = best.better(scan(Curve(task, order[:, m], place <= m)))
        else:
            best = scan_up_sets(task, best)
    mine, theirs = (power(c.clamp_min(0), task.p) for c in (task.own, task.opp))
    broken = mine @ task.A_own <= theirs @ task.A_opp
    still = Shortest(
        torch.where(broken, 0.0, torch.inf), torch.zeros_like(task.own), torch.zeros_like(task.opp)
    )
    return best.better(still)


def end(task: Separable) -> Shortest:
    """All own projections down to zero, the opposite ones unmoved."""
    move = -task.own.clamp_min(0)
    return Shortest(move.square().sum(1), move, torch.zeros_like(task.opp))


def scan_up_sets(task: Separable, best: Shortest) -> Shortest:
    """1 < p < 2 with unequal weights: every rising set that domination and the bound allow."""
    K2 = task.opp.shape[1]
    if K2 > MOST_UNEQUAL:
        raise CallError(
            f"{K2} opposite centres of unequal weight at p={task.p}: rising sets are enumerated up to "
            f"{MOST_UNEQUAL}; use equal weights or p >= 2"
        )
    # above[n, i, k]: i dominates k, so that k cannot rise alone (ties by index, to keep an order)
    c, A = task.opp, task.A_opp
    index = torch.arange(K2)
    more = (c[:, :, None] >= c[:, None, :]) & (A[:, None] >= A[None, :])
    tie = (c[:, :, None] == c[:, None, :]) & (A[:, None] == A[None, :])
    above = more & ~(tie & (index[:, None] >= index[None, :]))
    for size in range(1, K2 + 1):
        for members in combinations(range(K2), size):
            inside = torch.zeros(K2, dtype=torch.bool)
            inside[list(members)] = True
            closed = ~(above[:, ~inside][:, :, inside]).flatten(1).any(1)
            cheap = (-c[:, inside]).clamp_min(0).square().sum(1) < best.square
            here = (closed & cheap).nonzero().squeeze(1)
            if not len(here):
                continue
            for j in members:
                riser = torch.full((len(here),), j)
                found = scan(Curve(task.at(here), riser, inside.expand(len(here), K2)))
                best = best.better(spread(found, here, best))
    return best


def spread(found: Shortest, here: Int[Tensor, " m"], like: Shortest) -> Shortest:
    """`found` for the points `here`, and nothing (inf) for the others."""
    square = torch.full_like(like.square, torch.inf)
    own, opp = torch.zeros_like(like.own), torch.zeros_like(like.opp)
    square[here], own[here], opp[here] = found.square, found.own, found.opp
    return Shortest(square, own, opp)


def scan(curve: Curve) -> Shortest:
    """The shortest point on the curve: a grid in s, then its two best basins polished."""
    low, high = curve.range()
    # denser towards the upper end, a fold for p >= 2, where basins are narrow when noise is small
    part = 1 - torch.linspace(1, 0, GRID, dtype=low.dtype) ** 2
    grid = low[:, None] + (high - low)[:, None] * part
    length = curve.move(grid).square
    padded = torch.nn.functional.pad(length, (1, 1), value=torch.inf)
    bottom = (length <= padded[:, :-2]) & (length <= padded[:, 2:])
    value, place = torch.where(bottom, length, torch.inf).topk(2, dim=1, largest=False)
    best = polish(curve, grid, place[:, :1])
    twice = torch.isfinite(value[:, 1]).nonzero().squeeze(1)
    if len(twice):
        second = polish(curve.at(twice), grid[twice], place[twice, 1:])
        best = best.better(spread(second, twice, best))
    return best


def polish(curve: Curve, grid: Float[Tensor, "n g"], place: Int[Tensor, "n 1"]) -> Shortest:
    """The bottom of the basin around grid point `place`, as the root of the slope between neighbours.

    Regula falsi with the Illinois rule; where that has not settled (close to a fold the slope is
    all but a step) bisection finishes. The length is flat at the root: an error e in s costs e^2.
    """
    left = grid.gather(1, (place - 1).clamp_min(0))
    right = grid.gather(1, (place + 1).clamp_max(grid.shape[1] - 1))
    f_left, f_right = curve.move(left).slope, curve.move(right).slope
    side = torch.zeros_like(left)
    best = shortest(curve.move(grid.gather(1, place)))
    for _ in range(SECANT_STEPS):
        secant = (left * f_right - right * f_left) / (f_right - f_left)
        s = torch.where((secant >= left) & (secant <= right), secant, (left + right) / 2)
        here = curve.move(s)
        up = here.slope > 0
        f_left = torch.where(up, torch.where(side > 0, f_left / 2, f_left), here.slope)
        f_right = torch.where(up, here.slope, torch.where(side < 0, f_right / 2, f_right))
        left, right = torch.where(up, left, s), torch.where(up, s, right)
        side = torch.where(up, 1.0, -1.0)
    best = best.better(shortest(here))
    rest = (here.slope.abs() > SETTLED).squeeze(1).nonzero().squeeze(1)
    if len(rest):
        found = bisect(curve.at(rest), left[rest], right[rest])
        best = best.better(spread(shortest(found), rest, best))
    return best


def bisect(curve: Curve, left: Float[Tensor, "n 1"], right: Float[Tensor, "n 1"]) -> Move:
    """The point where the slope changes sign, to rounding."""
    for _ in range(BISECTION_STEPS):
        s = (left + right) / 2
        up = curve.move(s).slope > 0
        left, right = torch.where(up, left, s), torch.where(up, s, right)
    return curve.move((left + right) / 2)


def shortest(move: Move) -> Shortest:
    """One point of a curve (b = 1) as a candidate."""
    return Shortest(move.square.squeeze(1), move.own.squeeze(1), move.opp.squeeze(1))
