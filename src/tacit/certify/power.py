r"""The exact l2 radius of F^(p) with orthogonal centres, any positive weights, any p > 1.

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
every lam a feasible point, so nothing below the true radius can ever be returned, and p = 2 with
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
s finds the basins, and the root of the slope the bottom of the two best. Cost: O(grid * K) a point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.certify.roots import falling_root, high_rising_root, low_rising_root, power
from tacit.errors import CallError

GRID = 24
SECANT_STEPS = 8
SETTLED = 1e-6  # the slope is a difference of logarithms: relative, and its square counts
BISECTION_STEPS = 42
CHUNK = 4096
MOST_UNEQUAL = 14
EQUAL = 1e-11  # weights that differ by rounding are equal


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


@dataclass(frozen=True)
class Separable:
    """Problem (*) for a chunk of points: projections and weights, float64."""

    own: Float[Tensor, "n K1"]
    opp: Float[Tensor, "n K2"]
    A_own: Float[Tensor, " K1"]
    A_opp: Float[Tensor, " K2"]
    p: float

    def at(self, here: Int[Tensor, " m"]) -> Separable:
        """The problem for some of the points."""
        return replace(self, own=self.own[here], opp=self.opp[here])


def power_radius(
    own: Float[Tensor, "n K1"],
    opp: Float[Tensor, "n K2"],
    A_own: Float[Tensor, " K1"],
    A_opp: Float[Tensor, " K2"],
    p: float,
) -> Shortest:
    """Solve (*) for every point: length 0 where it is broken already."""
    if not p > 1:
        raise CallError(f"p={p}: this radius is for p > 1; at p = 1 the net is piecewise linear")
    pieces = [
        chunk_radius(Separable(own[i : i + CHUNK], opp[i : i + CHUNK], A_own, A_opp, p))
        for i in range(0, max(len(own), 1), CHUNK)
    ]
    return Shortest(*(torch.cat([getattr(s, f) for s in pieces]) for f in ("square", "own", "opp")))


def chunk_radius(task: Separable) -> Shortest:
    """The least over risers (and rising sets), the end, and zero where nothing need move."""
    best = end(task)
    if task.opp.shape[1]:
        order = task.opp.argsort(dim=1, descending=True)
        equal = bool(task.A_opp.max() <= (1 + EQUAL) * task.A_opp.min())
        if task.p >= 2 and equal:
            best = best.better(scan(task, order[:, 0], risers=None))
        elif task.p >= 2:
            for j in range(task.opp.shape[1]):
                best = best.better(scan(task, torch.full_like(order[:, 0], j), risers=None))
        elif equal:
            place = order.argsort(dim=1)
            for m in range(task.opp.shape[1]):
                best = best.better(scan(task, order[:, m], risers=place <= m))
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
            part = task.at(here)
            for j in members:
                riser = torch.full((len(here),), j)
                found = scan(part, riser, risers=inside.expand(len(here), K2))
                best = best.better(spread(found, here, best))
    return best


def spread(found: Shortest, here: Int[Tensor, " m"], like: Shortest) -> Shortest:
    """`found` for the points `here`, and nothing (inf) for the others."""
    square = torch.full_like(like.square, torch.inf)
    own, opp = torch.zeros_like(like.own), torch.zeros_like(like.opp)
    square[here], own[here], opp[here] = found.square, found.own, found.opp
    return Shortest(square, own, opp)


def scan(task: Separable, j: Int[Tensor, " n"], risers: Bool[Tensor, "n K2"] | None) -> Shortest:
    """The shortest point on the curve of riser j: a grid in s, then its two best basins refined."""
    low, high = scan_range(task, j, risers)
    grid = torch.linspace(0, 1, GRID, dtype=low.dtype)
    s = low[:, None] + (high - low)[:, None] * grid
    length = move(task, j, risers, s).square
    padded = torch.nn.functional.pad(length, (1, 1), value=torch.inf)
    bottom = (length <= padded[:, :-2]) & (length <= padded[:, 2:])
    value, place = torch.where(bottom, length, torch.inf).topk(2, dim=1, largest=False)
    best = polish(task, j, risers, s, place[:, :1])
    twice = torch.isfinite(value[:, 1]).nonzero().squeeze(1)
    if len(twice):
        part = task.at(twice)
        part_risers = None if risers is None else risers[twice]
        second = polish(part, j[twice], part_risers, s[twice], place[twice, 1:])
        best = best.better(spread(second, twice, best))
    return best


def polish(
    task: Separable,
    j: Int[Tensor, " n"],
    risers: Bool[Tensor, "n K2"] | None,
    grid: Float[Tensor, "n g"],
    place: Int[Tensor, "n 1"],
) -> Shortest:
    """The bottom of the basin around grid point `place`, as the root of the slope between neighbours.

    Regula falsi with the Illinois rule; where that has not settled (close to a fold the slope is
    all but a step) bisection finishes. The length is flat at the root: an error e in s costs e^2.
    """
    left = grid.gather(1, (place - 1).clamp_min(0))
    right = grid.gather(1, (place + 1).clamp_max(grid.shape[1] - 1))
    f_left, f_right = (move(task, j, risers, s).slope for s in (left, right))
    side = torch.zeros_like(left)
    s = grid.gather(1, place)
    found = move(task, j, risers, s)
    for _ in range(SECANT_STEPS):
        secant = (left * f_right - right * f_left) / (f_right - f_left)
        s = torch.where((secant >= left) & (secant <= right), secant, (left + right) / 2)
        here = move(task, j, risers, s)
        up = here.slope > 0
        f_left = torch.where(up, torch.where(side > 0, f_left / 2, f_left), here.slope)
        f_right = torch.where(up, here.slope, torch.where(side < 0, f_right / 2, f_right))
        left, right = torch.where(up, left, s), torch.where(up, s, right)
        side = torch.where(up, 1.0, -1.0)
    best = found.shortest(task).better(here.shortest(task))
    rest = (here.slope.abs() > SETTLED).squeeze(1).nonzero().squeeze(1)
    if len(rest):
        part, part_risers = task.at(rest), None if risers is None else risers[rest]
        s = bisect(part, j[rest], part_risers, left[rest], right[rest])
        best = best.better(spread(move(part, j[rest], part_risers, s).shortest(part), rest, best))
    return best


def bisect(
    task: Separable,
    j: Int[Tensor, " n"],
    risers: Bool[Tensor, "n K2"] | None,
    left: Float[Tensor, "n 1"],
    right: Float[Tensor, "n 1"],
) -> Float[Tensor, "n 1"]:
    """Where the slope changes sign, to rounding."""
    for _ in range(BISECTION_STEPS):
        s = (left + right) / 2
        up = move(task, j, risers, s).slope > 0
        left, right = torch.where(up, left, s), torch.where(up, s, right)
    return (left + right) / 2


def multiplier(task: Separable, s: Float[Tensor, "n b"]) -> Float[Tensor, "n b"]:
    """lam that brings the largest own projection c_1 to (1 - s) c_1."""
    c, A = largest_own(task)
    remaining = (c * (1 - s)).clamp_min(1e-300)
    return (s * c / (task.p * A * remaining ** (task.p - 1))).clamp_max(1e250)


def largest_own(task: Separable) -> tuple[Float[Tensor, "n 1"], Float[Tensor, "n 1"]]:
    """The own coordinate that contributes most, and its weight."""
    first = (task.A_own * power(task.own.clamp_min(0), task.p)).argmax(1, keepdim=True)
    return task.own.gather(1, first).clamp_min(1e-12), task.A_own[first]


def scan_range(
    task: Separable, j: Int[Tensor, " n"], risers: Bool[Tensor, "n K2"] | None
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """The range of s in which the other opposite coordinates have their root (up to the first fold)."""
    p, A = task.p, task.A_opp
    others = torch.ones_like(task.opp, dtype=torch.bool).scatter(1, j[:, None], False)
    if risers is None:
        c = task.opp.clamp_min(1e-12)
        stretch = 1.0 if p == 2 else (c * (p - 1) / (p - 2)) ** (2 - p)
        fold = stretch / (p * (p - 1) * A)
        lam = torch.where(others & (task.opp > 0), fold, torch.inf).amin(1)
        return torch.zeros_like(lam), fraction(task, lam)
    q = p - 1
    fold = (-task.opp).clamp_min(0).mul(q / (1 - q)) ** (1 - q) / (p * q * A)
    lam = torch.where(others & risers, fold, 0.0).amax(1)
    return fraction(task, lam), torch.ones_like(lam) - 1e-9


def fraction(task: Separable, lam: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """s at which the multiplier is lam (1 where it is infinite)."""
    c, A = largest_own(task)
    k = (lam.unsqueeze(1) * task.p * A).clamp_max(1e250)
    return (1 - falling_root(c, k, task.p) / c).squeeze(1).clamp(0, 1 - 1e-9)


@dataclass(frozen=True)
class Move:
    """Points on a riser's curve: squared length, sign of its derivative in s, new projections."""

    square: Float[Tensor, "n b"]
    slope: Float[Tensor, "n b"]
    own: Float[Tensor, "n b K1"]
    opp: Float[Tensor, "n b K2"]

    def shortest(self, task: Separable) -> Shortest:
        """As a candidate, where one point was asked for (b = 1)."""
        return Shortest(
            self.square.squeeze(1), self.own.squeeze(1) - task.own, self.opp.squeeze(1) - task.opp
        )


def move(
    task: Separable,
    j: Int[Tensor, " n"],
    risers: Bool[Tensor, "n K2"] | None,
    s: Float[Tensor, "n b"],
) -> Move:
    """The points at each s: feasible by construction.

    With S the others' half squared length, dS = -lam dG (envelope), and u_j = (G/A_j)^(1/p), so
    d(length^2 / 2) = [(u_j - c_j) / (p A_j u_j^(p-1)) - lam] dG with dG < 0: the slope has the sign of
    lam p A_j u_j^(p-1) - (u_j - c_j), zero exactly where j obeys its own multiplier equation.
    """
    p = task.p
    lam = multiplier(task, s)
    c_own, c_opp = task.own.unsqueeze(1), task.opp.unsqueeze(1)
    k_own, k_opp = (p * A * lam.unsqueeze(2) for A in (task.A_own, task.A_opp))
    own = torch.where(c_own > 0, falling_root(c_own, k_own, p), c_own)
    if risers is None:
        opp = low_rising_root(c_opp, k_opp, p)
    else:
        opp = torch.where(risers.unsqueeze(1), high_rising_root(c_opp, k_opp, p), c_opp)
    at_j = j[:, None, None].expand(*s.shape, 1)
    opp = opp.expand(*s.shape, -1).scatter(2, at_j, 0.0)
    needed = (power(own.clamp_min(0), p) @ task.A_own) - (power(opp.clamp_min(0), p) @ task.A_opp)
    c_j, A_j = task.opp.gather(1, j[:, None]), task.A_opp[j][:, None]
    enough = A_j * power(c_j.clamp_min(0), p) >= needed
    u_j = torch.where(enough, c_j, (needed.clamp_min(0) / A_j) ** (1 / p))
    opp = opp.scatter(2, at_j, u_j.unsqueeze(2))
    square = (own - c_own).square().sum(2) + (opp - c_opp).square().sum(2)
    # as a difference of logarithms, which is nearly straight in s for any p
    pull = log(lam * p * A_j) + (p - 1) * log(u_j)
    slope = (pull - log(u_j - c_j)).clamp(-50, 50)
    return Move(square, slope, own, opp)


def log(u: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
    """log with a floor in place of -inf."""
    return u.clamp_min(1e-300).log()
