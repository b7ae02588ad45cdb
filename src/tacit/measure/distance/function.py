r"""How far a trained net is from a classifier that theory predicts, up to scale.

    dist(f, F) = inf_{c > 0} sup_{|x| = 1} |c f(x) - F(x)|            (min2024, Section 5.1, Appendix A.1)

**Where the supremum is.** f and F have no bias and one p, so c f - F is a sum of a_j relu(<u_j, x>)^p with
unit u_j. It depends on x through the joint span of the u_j alone and is homogeneous of degree p: over the
unit ball of that span the supremum of its modulus is reached on the sphere. So D = 1000 becomes the number of
merged neurons.

**The scale.** c -> sup |c f - F| is convex, a supremum of |c f(x) - F(x)|. On a finite set of points it is
piecewise linear with a minimum that is found exactly (`best_scale`), and that minimum is a lower bound of
dist: this is `lower`. New maximisers at that c join the set until it predicts the supremum at its own c
(cutting planes: fewer searches than a golden section needs).

**The bound from above.** sup |c f - F| at the c found, bounded by `tacit.measure.distance.upper`: exact for p
= 1 and few neurons, to a part in a million for p >= 2 in a span of at most 3 dimensions, else by pairs of
neurons; this is `upper`.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.measure.distance.pieces import Pieces, merge_pieces, net_pieces, to_span
from tacit.measure.distance.search import LARGE as LARGE_SEARCH
from tacit.measure.distance.search import STEPS, ascend, first_points
from tacit.measure.distance.upper import MOST_SEGMENTS, upper_bound, zonotope_points
from tacit.nets import TwoLayerNet

ROUNDS = 40  # cutting planes: each is one search; 4 to 10 are enough as a rule
FEW_ROUNDS = 4  # where hundreds of neurons point everywhere and cannot be bundled
AGREES = 1e-7  # the set of points predicts the supremum to this part of it
KEPT = 16  # maximisers of each kind from which the next search starts
LARGE = 96  # more neurons than this are searched by groups first, then as they are
POLISHED = 4  # maximisers of each kind that are followed on the net as it is
FULL_STEPS = 40
ROUNDING = 1e-12
SPAN_ROUNDING = 1e-10  # the span is cut at 1e-12 of the largest singular value, sqrt(m) at most


@dataclass(frozen=True)
class Distance:
    """lower <= dist(f, F) <= upper; at scale `c` the point `x` of the sphere has |c f(x) - F(x)| >= lower.

    `lower` is what the search found: a certified lower bound, and as a rule dist itself. `upper` is certified
    too.
    """

    lower: float
    upper: float
    c: float
    x: Float[Tensor, " D"]


def function_distance(
    f: TwoLayerNet, F: TwoLayerNet, *, generator: torch.Generator | None = None
) -> Distance:
    """dist(f, F) between two nets without bias and of one p, from below and from above.

    Neurons are merged where they agree (what that changes is added to `upper`); `lower` is read off the nets
    as they were given. `generator` draws the random ones among the starts (seed 0 without one). Float64, on
    the nets' device.
    """
    full, unit = net_pieces(f, F)
    fine, coarse = merge_pieces(full, coarse=False), merge_pieces(full, coarse=True)
    bundled = _many(fine[0])
    small, axes = to_span(coarse[0] if bundled else fine[0])
    x, c = _search(small, generator or torch.Generator().manual_seed(0))
    x = x @ axes.T
    if bundled:
        x, c = _polish(fine[0], x, c)
    values = full.values(x)
    lower, _ = best_scale(*values)
    gap = (c * values[0] - values[1]).abs()
    same = len(fine[0].u) == len(coarse[0].u)
    bounded = [fine] if same else [coarse] if len(fine[0].u) > LARGE else [fine, coarse]
    upper = min(upper_bound(to_span(pieces)[0], c) + c * lost for pieces, lost in bounded)
    mass = c * float(full.f.abs().sum()) + float(full.F.abs().sum())
    low, high = max(lower - ROUNDING * mass, 0.0), max(upper, lower) + SPAN_ROUNDING * full.p * mass
    return Distance(low, high, c / unit, x[gap.argmax()])


def _many(pieces: Pieces) -> bool:
    """Whether the search runs on bundles of neurons: where these are many, or (p = 1) too many to be exact."""
    sides = (int((pieces.weights(1.0) * sign > 0).sum()) for sign in (1, -1))
    return len(pieces.u) > LARGE or (pieces.p == 1 and max(sides) > MOST_SEGMENTS)


def _search(pieces: Pieces, generator: torch.Generator) -> tuple[Tensor, float]:
    """Points of the sphere that hold the supremum up, and the best scale for them."""
    x = first_points(pieces, generator)
    start, sign = torch.cat([x, x]), torch.cat([x.new_ones(len(x)), -x.new_ones(len(x))])
    found, c = best_scale(*pieces.values(x))
    least, best = float("inf"), c
    large = pieces.u.numel() > LARGE_SEARCH
    for _ in range(FEW_ROUNDS if large else ROUNDS):
        fresh = zonotope_points(pieces, c)
        if fresh is None:
            steps = FULL_STEPS if large else STEPS
            fresh = ascend(pieces, pieces.weights(c), start, sign, steps)
        f, F = pieces.values(fresh)
        supremum = max((c * f - F).abs().tolist(), default=0.0)
        if supremum < least:
            least, best = supremum, c
        x = torch.cat([x, fresh])
        if supremum <= found * (1 + AGREES) + ROUNDING:
            break
        found, c = best_scale(*pieces.values(x))
        start = x = _leading(pieces, x, c, POLISHED if large else KEPT)
        f, F = pieces.values(x)
        sign = torch.where(c * f > F, 1.0, -1.0).to(x.dtype)
    return x, best


def _leading(pieces: Pieces, x: Float[Tensor, "n r"], c: float, most: int) -> Float[Tensor, "m r"]:
    """The points with the largest |c f - F|, `most` for each sign of it and each sign of f.

    Each sign of each, because the least scale is held by a line that rises with c and one that falls.
    """
    f, F = pieces.values(x)
    gap = c * f - F
    order = gap.abs().argsort(descending=True)
    kind = (2 * (gap > 0) + (f > 0))[order]
    return x[torch.cat([order[kind == k][:most] for k in range(4)])]


def _polish(pieces: Pieces, x: Float[Tensor, "n D"], c: float) -> tuple[Tensor, float]:
    """The leading points followed on the net as it is, where the search ran on groups of its neurons."""
    for _ in range(2):
        start = _leading(pieces, x, c, POLISHED)
        f, F = pieces.values(start)
        sign = torch.where(c * f > F, 1.0, -1.0).to(x.dtype)
        x = torch.cat([x, ascend(pieces, pieces.weights(c), start, sign, FULL_STEPS)])
        _, c = best_scale(*pieces.values(x))
    return x, c


def best_scale(f: Float[Tensor, " n"], F: Float[Tensor, " n"]) -> tuple[float, float]:
    """min_{c >= 0} max_i |c f_i - F_i| and its c, exactly: the lower end of an envelope of lines.

    The minimum lies in [0, 2 max|F| / max|f|], for beyond c = 0 is better. From both ends the lines on top are
    intersected; the top line there takes the place of the end with its slope, until no line is above the two.
    """
    slope, height = torch.cat([f, -f]), torch.cat([-F, F])
    if not float(slope.abs().max()) > 0:
        return float(height.max()), 0.0

    def top(c: float) -> tuple[float, float, float]:
        """The value at c, and the slope and height of the line that gives it."""
        line = int((c * slope + height).argmax())
        return (
            c * float(slope[line]) + float(height[line]),
            float(slope[line]),
            float(height[line]),
        )

    left, right = top(0.0), top(2 * float(height.max()) / float(slope.max()))
    if left[1] >= 0:
        return left[0], 0.0
    c = 0.0
    for _ in range(200):
        if not right[1] > left[1]:
            break
        c = (left[2] - right[2]) / (right[1] - left[1])
        here = top(c)
        below = c * left[1] + left[2]
        if here[0] <= below + 1e-15 * (abs(c * here[1]) + abs(here[2])):
            return here[0], c
        left, right = (here, right) if here[1] < 0 else (left, here)
    value, _, _ = top(c)
    return value, c
