r"""The exact radius of a two-layer ReLU net in l2, l1 or linf, with a move that attains it.

    f(x) = sum_j v_j relu(<w_j, x> + b_j)

Branch and bound over the neurons of the other class (`relu_tree.py`) with bounds that hold whatever the solver
did (`relu_node.py`). In l2 nothing outside span(W) matters, and nodes are solved together by ascent
(`relu_ascent.py`); in l1 and linf each is a linear program (`relu_program.py`), from l2's answer on.

**What is exact.** Where the search ends within its budget, `lower` is `upper` (1 - 1e-9), or less by rounding
(a radius far shorter than ||x||, a net that is nearly flat there). `upper` is the length
of a move that breaks the given net, evaluated in float64; where the broken set has no interior (f = |z|, say)
no float64 may hit it, and the move breaks up to rounding, 1e-12 of sum |v| (|b| + ||w|| ||x + delta||).

**Nothing breaks the point.** Then `upper` is inf. `lower` is inf too where every convex set of the union is
farther than FAR times the point's largest distance from a kink: beyond, float64 does not resolve the net.

**Ties.** Broken means y f <= 0. With `ties_break=False` it means y f < 0, and the radius is the distance to that
open set, which is not attained: `delta` lies just beyond. {y f < 0} is the union over T of
{sum_own relu(z) < sum_T z}; the closure of such a set, if it is not empty, is the same with <=. T empty is
dropped (unless a constant neuron speaks against the class): it says f = 0. A set that is empty only because the
strict inequality never holds still counts for `lower`, which is then too short, never too long.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.base.checks import check_finite, check_signs
from tacit.base.linalg import span_axes, unit_rows
from tacit.base.shapes import Numbers, Rows, Which
from tacit.certify.interval import Radii, between
from tacit.certify.relu.ascent import Ascent
from tacit.certify.relu.node import DUAL, Values, sides_of
from tacit.certify.relu.program import Program
from tacit.certify.relu.shapes import Chosen, Owners
from tacit.certify.relu.tree import Best, ClassTask, search
from tacit.errors import CallError
from tacit.nets import TwoLayerNet

BUDGET = 10_000  # nodes: 2^13, all sets of 12 opposite neurons and what leads to them, fit
NEAR = 10.0  # the first search without a known move: times the largest distance from a kink
FAR = 1e10  # and the last


def relu_radius(
    net: TwoLayerNet,
    x: Rows,
    y: Numbers,
    *,
    norm: float = 2.0,
    ties_break: bool = True,
    budget: int = BUDGET,
) -> Radii:
    """The distance of each point (x, y), y in {-1, +1}, from what breaks it, in l1, l2 or linf.

    `budget`: the most nodes a point may take; a search that needs more ends with an interval.
    """
    check_call(net, x, y, norm, budget)
    bias = torch.zeros_like(net.v) if net.b is None else net.b
    w, v, b, x, y = (t.detach().to(torch.float64) for t in (net.w, net.v, bias, x, y))
    lower, upper, delta = torch.zeros_like(y), torch.zeros_like(y), torch.zeros_like(x)
    for sign in (1.0, -1.0):
        seen = ClassView(w, sign * v, b, ties_break)
        mine = ((y == sign) & ~seen.breaks(x)).nonzero().squeeze(1)
        if len(mine):
            one = flat_radius(seen, x[mine], budget)
            if norm != 2:
                one = polyhedral_radius(seen, x[mine], one, norm, budget)
            lower[mine], upper[mine], delta[mine] = one.lower, one.upper, one.breaking
    if ties_break and not bool((b != 0).any()):
        # without biases f(0) = 0: -x breaks
        size = torch.linalg.vector_norm(x, ord=norm, dim=1)
        nearer = size < upper
        upper, delta = torch.where(nearer, size, upper), torch.where(nearer.unsqueeze(1), -x, delta)
        lower = torch.minimum(lower, upper)
    return Radii(lower, upper, delta)


def check_call(net: TwoLayerNet, x: Rows, y: Numbers, norm: float, budget: int) -> None:
    """Refuses what has no radius here."""
    if net.p != 1 or net.w.dim() != 2:
        raise CallError(
            f"p={net.p}, w of shape {tuple(net.w.shape)}: one ReLU net (p=1, w of (h, D))"
        )
    if norm not in DUAL:
        raise CallError(f"norm={norm}: 1, 2 or inf")
    if budget < 1:
        raise CallError(f"budget={budget}: at least one node")
    if x.shape[1] != net.w.shape[1]:
        raise CallError(f"x has {x.shape[1]} columns, the net takes {net.w.shape[1]}")
    check_finite("x or the net", x, net.w, net.v, net.b, remedy="no radius can be given")
    check_signs(y)


@dataclass(frozen=True)
class ClassView:
    """A net as one class sees it: v > 0 speaks for the class, f <= 0 (< 0 without ties) breaks."""

    w: Float[Tensor, "h D"]
    v: Float[Tensor, " h"]
    b: Float[Tensor, " h"]
    ties_break: bool

    @property
    def kinked(self) -> Bool[Tensor, " h"]:
        """The neurons that are not constant."""
        return (self.v != 0) & (self.w != 0).any(1)

    def sizes(self, x: Rows) -> Float[Tensor, "n h"]:
        """|v| (|b| + ||w|| ||x||): what a neuron's value is computed from."""
        length = x.norm(dim=1, keepdim=True)
        return self.v.abs() * (self.b.abs() + self.w.norm(dim=1) * length)

    def breaks(self, x: Rows, loose: float = 0.0) -> Which:
        """Whether the net itself is broken at x; up to rounding if asked, where f = 0 breaks."""
        f = TwoLayerNet(self.w, self.v, self.b)(x)
        return f <= loose * self.sizes(x).sum(1) if self.ties_break else f < 0

    def scale(self, x: Rows) -> Numbers:
        """The largest l2 distance from a kink (1 where a point sits on all of them)."""
        w, b = self.w[self.kinked], self.b[self.kinked]
        far = ((x @ w.T + b).abs() / w.norm(dim=1)).amax(1)
        return torch.where(far > 0, far, 1.0)

    def task(self, x: Rows, norm: float, axes: Float[Tensor, "D d"] | None = None) -> ClassTask:
        """The search for points x; with `axes`, moves are coordinates along them."""
        own, opp = (self.kinked & (s * self.v > 0) for s in (1, -1))
        w = self.v.abs().unsqueeze(1) * self.w
        constant = float((self.v * self.b.clamp_min(0))[~self.kinked].sum())
        sides = sides_of(w[own], w[opp], constant, axes)
        z, sizes = self.v.abs() * (x @ self.w.T + self.b), self.sizes(x)

        def breaks(point: Owners, delta: Float[Tensor, "N d"], loose: float) -> Chosen:
            return self.breaks(x[point] + (delta if axes is None else delta @ axes.T), loose)

        return ClassTask(
            sides,
            values=Values(z[:, own], z[:, opp], sizes[:, own], sizes[:, opp]),
            norm=norm,
            solver=Ascent(sides) if norm == 2 else Program(sides, norm),
            breaks=breaks,
            empty=self.ties_break or constant < 0,
        )


def flat_radius(seen: ClassView, x: Rows, budget: int) -> Radii:
    """In l2, within span(W)."""
    never = torch.full_like(x[:, 0], torch.inf)
    if not seen.kinked.any():  # f is a constant
        return Radii(never, never, torch.zeros_like(x))
    # unit rows: a small neuron beside a large one must not be lost
    w = seen.w[seen.kinked]
    # unit rows are scaled first, for one too small or too large cannot be squared
    axes, scale = span_axes(unit_rows(w / w.abs().amax(1, keepdim=True))[0]), seen.scale(x)
    still = torch.zeros(len(x), axes.shape[1], dtype=x.dtype)
    lower, best = search(seen.task(x, 2.0, axes), Best(never, still, NEAR * scale), budget)
    upper, delta = best.upper.clone(), best.delta @ axes.T
    lost = torch.isinf(upper).nonzero().squeeze(1)
    if len(lost):
        reach = FAR * scale[lost]
        start = Best(never[lost], still[lost], reach)
        farther, late = search(seen.task(x[lost], 2.0, axes), start, budget)
        nothing = torch.isinf(late.upper) & (farther >= reach / 2)
        lower[lost] = torch.maximum(lower[lost], torch.where(nothing, torch.inf, farther))
        upper[lost], delta[lost] = late.upper, late.delta @ axes.T
    return between(lower, upper, delta)


def polyhedral_radius(seen: ClassView, x: Rows, flat: Radii, norm: float, budget: int) -> Radii:
    """In l1 or linf: l2's move is the first, and what nothing breaks in l2 nothing breaks."""
    # ||.||_2 <= ||.||_1, and ||.||_2 <= sqrt(D) ||.||_inf
    lower = flat.lower / (1 if norm == 1 else math.sqrt(x.shape[1]))
    length = torch.linalg.vector_norm(flat.breaking, ord=norm, dim=1)
    upper, delta = torch.where(torch.isinf(flat.upper), torch.inf, length), flat.breaking.clone()
    here = torch.isfinite(upper).nonzero().squeeze(1)
    if len(here):
        start = Best(upper[here], delta[here], upper[here])
        found, best = search(seen.task(x[here], norm), start, budget)
        lower[here] = torch.maximum(lower[here], found)
        upper[here], delta[here] = best.upper, best.delta
    return between(lower, upper, delta)
