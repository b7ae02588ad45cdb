r"""A proof that no breaking move of the separable problem (*) of `power.py` is shorter, p >= 2; a bound below.

The scan of `power.py` finds a short move; here the whole range of the multiplier is covered by cells and each
gets a bound, so that nothing depends on a grid having seen every basin.

**What is covered.** A shortest breaking move exists. It is the end (all own projections at 0), or it has a
multiplier lam and a riser j with every other coordinate on its root at lam (`power.py`). Let S(lam) be the
squared length of these others, G(lam) = sum_own A u^p - sum_{opp, not j} A u^p - tau what the riser must supply
(tau >= 0 is a threshold: broken means margin <= tau; where tau > 0 the boundary has no point without a
multiplier, and the end is only one more breaking move). Own roots fall and lower opposite roots rise with lam,
so S increases and G decreases. With v = (G/A_j)^(1/p) the length is

    2 E(lam) = S + (v - c_j)_+^2   where G > 0,      S   where G = 0 (the riser need not move).

**A cell** lam in [a, b] has three bounds. By monotony, 2 E >= S(a) + (v(b) - c_j)_+^2. And since
dS / 2 = -lam dG (envelope), dE = (psi - lam) dG with psi(v) = (v - c_j)_+ / (p A_j v^(p-1)), so

    E >= E(a) - (max psi - a)_+ (G(a) - G(b)),      E >= E(b) - (b - min psi)_+ (G(a) - G(b)),

which is second order in the width of the cell where E is flat: cells as wide as their distance to the bottom
lose no more than E has risen there. Cells that are not above the move found are split.

Roots are enclosed: a relative 1e-9 to both sides with the sign of the residual checked, and where that
fails (at a fold) 1e-5, or the trivial bound. What is returned is a lower bound whether or not all cells closed.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base.shapes import Numbers
from tacit.certify.poly.curve import Curve, Separable
from tacit.certify.poly.power import CHUNK, Shortest, normalised
from tacit.certify.poly.roots import falling_root, low_rising_root, power

NARROWEST = 5e-5  # of the range: cells shrink to this towards the move found
PIECES = 4
ROUNDS = 8
MOST_CELLS = 200_000  # open cells of a chunk beyond which splitting stops
ELEMENTS = 2**21  # numbers in one tensor of a pass
ENCLOSURE = 1e-9
NEAR_FOLD = (
    1e-5,
    ENCLOSURE,
)  # relative widths tried for a lower root, which is ill-conditioned at its fold
ROUNDING = 1e-14
CLOSED = 1e-8  # relative gap of the squared length at which a cell needs no splitting
SLACK = 1e-9  # taken off the squared length at the end, for rounding


@dataclass(frozen=True)
class Edges:
    """At the edges of cells: lam, S from below, G from both sides."""

    lam: Float[Tensor, "m e"]
    square: Float[Tensor, "m e"]
    low: Float[Tensor, "m e"]
    high: Float[Tensor, "m e"]


def power_lower(task: Separable, found: Shortest, tau: Numbers | None = None) -> Numbers:
    """A squared length that no move with margin <= tau undercuts (tau = 0 where None); at most found.square.

    `found` is what `power_radius` found for the problem; a smaller `square` in it asks for less. Point by point,
    tau in the units of the margin.
    """
    pieces = []
    for i in range(0, len(found.square), CHUNK):
        here = slice(i, i + CHUNK)
        unit, size, heaviest = normalised(replace(task, own=task.own[here], opp=task.opp[here]))
        if not unit.own.shape[1]:
            pieces.append(torch.zeros_like(found.square[here]))  # no neuron speaks for the class
            continue
        scale = size.squeeze(1)
        first = (unit.A_own * power(unit.own.clamp_min(0), unit.p)).argmax(1, keepdim=True)
        largest, _ = unit.largest_own()
        fall = -found.own[here].gather(1, first) / (size * largest)
        some = torch.zeros_like(scale) if tau is None else tau[here]
        threshold = some / (heaviest * scale**task.p)
        square = found.square[here] / scale**2
        pieces.append(unit_lower(unit, square, fall.squeeze(1), threshold) * scale**2)
    return torch.cat(pieces) if pieces else found.square


def unit_lower(task: Separable, found: Numbers, fall: Numbers, tau: Numbers) -> Numbers:
    """`power_lower` for projections and weights of at most 1.

    `found` is the squared length of a breaking move (of the problem with tau = 0, so of this one), `fall` the
    fraction by which that move lowers the largest own projection: cells are finest there. A bad `fall`
    costs time, never truth.
    """
    if not task.opp.shape[1]:
        # sum_own A u^p <= tau keeps every own u below (tau / A)^(1/p)
        rest = (tau.unsqueeze(1) / task.A_own) ** (1 / task.p)
        alone = (task.own - rest * (1 + ROUNDING)).clamp_min(0).square().sum(1)
        return torch.minimum(found, alone * (1 - SLACK))
    known = minkowski(task, tau)
    todo = known < found * (1 - CLOSED)
    lower = torch.where(todo, found, known)
    open_points = todo.nonzero().squeeze(1)
    if task.equal_opposite:
        risers = task.opp.argmax(1, keepdim=True)
    else:
        risers = torch.arange(task.opp.shape[1]).expand(len(found), -1)
    for j in risers.T:
        here = open_points
        curve = Curve(task.at(here), j[here])
        last = curve.last_multiplier() * (1 + ROUNDING)
        grid = graded(fall[here], curve.fraction(last), task.p)
        lam = torch.minimum(curve.multiplier(grid), last.unsqueeze(1))
        lam[:, 0], lam[:, -1] = 0.0, last
        for left_over in reversed(range(ROUNDS)):
            width = max(1, ELEMENTS // (lam.shape[1] * sum(task.A_own.shape + task.A_opp.shape)))
            bound = torch.cat(
                [
                    cell_bounds(Curve(task.at(i), j[i]), tau[i], some)
                    for i, some in zip(here.split(width), lam.split(width), strict=True)
                ]
            )
            goal = found[here].unsqueeze(1) * (1 - CLOSED)
            unsettled = bound < goal
            row, cell = unsettled.nonzero(as_tuple=True)
            if not left_over or len(row) > MOST_CELLS:
                unsettled = torch.zeros_like(unsettled)  # what is open counts with its bound
            lower.scatter_reduce_(0, here, torch.where(unsettled, torch.inf, bound).amin(1), "amin")
            if not unsettled.any():
                break
            here, last = here[row], last[row]
            lam = split(lam[row, cell], lam[row, cell + 1], last)
    return torch.minimum(torch.maximum(lower, known), found) * (1 - SLACK)


def minkowski(task: Separable, tau: Numbers) -> Numbers:
    """A first bound of the squared length, often the truth at p = 2: `poly_norm` for orthogonal directions.

    There L^2 = max A_own^(2/p) + max A_opp^(2/p), at the best s.
    """
    p = task.p
    mine, theirs = (
        (power(c.clamp_min(0), p) @ A) ** (1 / p)
        for c, A in ((task.own, task.A_own), (task.opp, task.A_opp))
    )
    size = task.A_own.max() ** (2 / p) + task.A_opp.max() ** (2 / p)
    head = mine - theirs - tau ** (1 / p) - ROUNDING * (mine + theirs)
    return head.clamp_min(0).square() / (size * (1 + ROUNDING))


def below_two(task: Separable) -> Numbers:
    """A squared length that no breaking move undercuts, 1 < p < 2: `minkowski` on the heaviest own coordinates.

    N(u) = (sum A relu(u)^p)^(1/p) moves by at most L a unit of length, L^2 = (sum A^(2/(2-p)))^((2-p)/p) by
    Hoelder's inequality, and leaving out own coordinates only lowers N: for every m the first m of them, in the
    order of A c^p, give (N_m - N_opp)_+^2 / (L_m^2 + L_opp^2). Tight at a centre.
    """
    p = task.p
    mine, theirs = (
        A * power(c.clamp_min(0), p) for c, A in ((task.own, task.A_own), (task.opp, task.A_opp))
    )
    order = mine.argsort(dim=1, descending=True)
    held = mine.gather(1, order).cumsum(1) ** (1 / p)
    dual = 2 / (2 - p)
    steep = (task.A_own**dual)[order].cumsum(1) ** (2 / (p * dual))
    against = theirs.sum(1, keepdim=True) ** (1 / p)
    size = steep + (task.A_opp**dual).sum() ** (2 / (p * dual))
    head = (held - against - ROUNDING * (held + against)).clamp_min(0)
    return (head.square() / size).amax(1) * (1 - SLACK)


def graded(fall: Numbers, high: Numbers, p: float) -> Float[Tensor, "n g"]:
    """Edges in s over [0, high], finer towards `fall`; the ratio 1 + 4/p closes most cells at once."""
    levels = math.ceil(-math.log(NARROWEST) / math.log(1 + 4 / p))
    widths = (1 + 4 / p) ** -torch.arange(levels + 1, dtype=fall.dtype)
    centre = torch.minimum(fall.clamp_min(0), high)
    left = centre.unsqueeze(1) * (1 - widths)
    right = centre.unsqueeze(1) + (high - centre).unsqueeze(1) * widths.flip(0)
    return torch.cat([left, right], 1)


def split(
    left: Float[Tensor, " m"], right: Float[Tensor, " m"], last: Float[Tensor, " m"]
) -> Float[Tensor, "m e"]:
    """Each cell in `PIECES`: evenly; by factors where it spans several sizes, or towards a fold at its end."""
    part = torch.linspace(0, 1, PIECES + 1, dtype=left.dtype)
    to_fold = 1 - 10 ** (-PIECES * part)
    low, high = left.clamp_min(1e-30).log(), right.clamp(1e-30, 1e250).log()
    factors = (low.unsqueeze(1) + (high - low).unsqueeze(1) * part).exp()
    wide = right > 16 * left
    at_fold = (right == last) & torch.isfinite(last) & ~wide
    share = torch.where(at_fold.unsqueeze(1), to_fold, part)
    even = left.unsqueeze(1) + (right - left).unsqueeze(1) * share
    inner = torch.where(wide.unsqueeze(1), factors, even)
    inner[:, 0], inner[:, -1] = left, right
    return inner.cummax(1).values


def cell_bounds(
    curve: Curve, tau: Float[Tensor, " m"], lam: Float[Tensor, "m e"]
) -> Float[Tensor, "m c"]:
    """Lower bounds of the squared length over the cells between neighbouring edges."""
    task, p = curve.task, curve.task.p
    edges = enclose(curve, tau, lam)
    c, A = task.opp.gather(1, curve.j[:, None]), task.A_opp[curve.j][:, None]
    v_low, v_high = ((G.clamp_min(0) / A) ** (1 / p) for G in (edges.low, edges.high))
    rises = edges.low > 0
    cost = torch.where(rises, (v_low - c).clamp_min(0).square(), 0.0)
    a, b = edges.lam[:, :-1], edges.lam[:, 1:]
    drop = edges.high[:, :-1] - edges.low[:, 1:]
    least, most = pull_range(v_low[:, 1:], v_high[:, :-1], c, A, p)
    start, stop = edges.square[:, :-1], edges.square[:, 1:]
    monotone = start + cost[:, 1:]
    from_a = start + cost[:, :-1] - 2 * (most - a).clamp_min(0) * drop
    from_b = stop + cost[:, 1:] - 2 * (b - least).clamp_min(0) * drop
    smooth = torch.maximum(from_a, from_b)
    # G may reach 0 in the cell: the riser then costs nothing, and only monotony speaks
    return torch.where(rises[:, 1:], torch.maximum(monotone, smooth), monotone)


def pull_range(
    low: Float[Tensor, "m c"],
    high: Float[Tensor, "m c"],
    c: Float[Tensor, "m 1"],
    A: Float[Tensor, "m 1"],
    p: float,
) -> tuple[Float[Tensor, "m c"], Float[Tensor, "m c"]]:
    """Least and largest psi(v) = (v - c)_+ / (p A v^(p-1)) for low <= v <= high.

    psi rises up to v = c (p-1)/(p-2), where c > 0 and p > 2, and falls from there.
    """

    def psi(v: Float[Tensor, "m c"]) -> Float[Tensor, "m c"]:
        v = v.clamp_min(1e-150)
        return (v - c).clamp_min(0) / (p * A * power(v, p - 1)).clamp_min(1e-300)

    top = c.clamp_min(0) * (p - 1) / (p - 2) if p > 2 else torch.where(c > 0, torch.inf, c)
    return torch.minimum(psi(low), psi(high)), psi(torch.minimum(torch.maximum(top, low), high))


def enclose(curve: Curve, tau: Float[Tensor, " m"], lam: Float[Tensor, "m e"]) -> Edges:
    """S from below and G from both sides at each lam; lam = inf puts own projections at 0."""
    task, p = curve.task, curve.task.p
    c_own, c_opp = task.own.unsqueeze(1), task.opp.unsqueeze(1)
    k_own, k_opp = (p * A * lam.clamp_max(1e250).unsqueeze(2) for A in (task.A_own, task.A_opp))
    own_low, own_high = enclose_falling(c_own.clamp_min(0), k_own, p)
    own_low = torch.where(torch.isinf(lam).unsqueeze(2), 0.0, own_low)
    opp_low, opp_high = enclose_rising(c_opp.clamp_min(0), k_opp, p)
    riser = torch.zeros_like(task.opp).scatter(1, curve.j[:, None], 1.0).unsqueeze(1)
    others = 1 - riser
    fallen = (c_own.clamp_min(0) - own_high).square().sum(2)
    risen = ((opp_low - c_opp.clamp_min(0)) * others).square().sum(2)
    mine = [power(u, p) @ task.A_own for u in (own_low, own_high)]
    theirs = [power(torch.where(others > 0, u, 0.0), p) @ task.A_opp for u in (opp_low, opp_high)]
    rounding = ROUNDING * (mine[1] + theirs[0])
    low = mine[0] - theirs[1] - tau.unsqueeze(1) - rounding
    high = mine[1] - theirs[0] - tau.unsqueeze(1) + rounding
    return Edges(lam, fallen + risen, low, high)


def enclose_falling(
    c: Float[Tensor, "*c"], k: Float[Tensor, "*k"], p: float
) -> tuple[Float[Tensor, "*s"], Float[Tensor, "*s"]]:
    """Both sides of the root of u + k u^(p-1) = c, c >= 0 (increasing in u)."""
    u = falling_root(c, k, p)
    low, high = u * (1 - ENCLOSURE), u * (1 + ENCLOSURE)
    below = low + k * power(low, p - 1) <= c * (1 - ROUNDING)
    above = high + k * power(high, p - 1) >= c * (1 + ROUNDING)
    return torch.where(below, low, 0.0), torch.where(above, torch.minimum(high, c), c)


def enclose_rising(
    c: Float[Tensor, "*c"], k: Float[Tensor, "*k"], p: float
) -> tuple[Float[Tensor, "*s"], Float[Tensor, "*s"]]:
    """Both sides of the lower root of u - k u^(p-1) = c, c >= 0; past the fold, of the fold itself."""
    u = low_rising_root(c, k, p)
    if p == 2:
        fold = torch.full_like(u, torch.inf)
    else:
        fold = ((p - 1) * k).clamp_min(1e-300) ** (-1 / (p - 2)) * (1 + ENCLOSURE)
    outer_low, outer_high = c, torch.maximum(fold, c)
    for width in NEAR_FOLD:  # the narrowest that the residual confirms
        low, high = u * (1 - width), u * (1 + width)
        below = (low - k * power(low, p - 1) <= c * (1 - ROUNDING)) & (low <= fold)
        above = (high - k * power(high, p - 1) >= c * (1 + ROUNDING)) & (high <= fold)
        outer_low = torch.where(below, torch.maximum(low, c), outer_low)
        outer_high = torch.where(above, high, outer_high)
    return outer_low, torch.where(c > 0, outer_high, 0.0)
