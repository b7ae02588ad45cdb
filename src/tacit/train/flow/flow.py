"""Gradient flow of two-layer nets from small weights, in directions and masses and loss-normalised time.

    flowed = gradient_flow(net, x, y, until=Until(log_loss=-11))
    flowed.net                    the trained net, neurons that have met merged
    flowed.contributions          |v_j| ||w_j|| of all h neurons
    flowed.exactness[0]           how far to trust it

The equations are in `neurons.py` and `field.py`, the step in `adams.py`, merging in `merge.py`, scouting in
`scout.py`. Units: time is that of theta' = -grad L, L = sum_i c_i l(y_i f(x_i)); by default c_i = 1/n (the mean).
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.errors import CallError
from tacit.nets.two_layer import TwoLayerNet
from tacit.train.flow.checks import FlowWarning, checked_points, complaint, warn_floor
from tacit.train.flow.field import Points, Power, outputs
from tacit.train.flow.history import History
from tacit.train.flow.loop import Ended, follow
from tacit.train.flow.neurons import Neurons, neurons_of
from tacit.train.flow.scout import confirmed, drift_of, scouted
from tacit.train.flow.until import Until
from tacit.train.losses import LossName

LEAST = {torch.float32: 1e-5, torch.float64: 1e-10}  # tolerances that rounding allows


@dataclass(frozen=True)
class Exactness:
    """How exact one member's flow was.

    `energy_error`: d log L = -||grad L||^2 / L dt must add up to the fall of the loss; the relative gap.
    `merge_error`: what merging and retiring changed in f, relative to its largest value, summed over all merges.
    `balance_error`: sum_j ||w_j||^2 - v_j^2 is conserved; what merging lost of it, relative to ||theta||^2 (0
    with a fixed second layer).
    `scout_drift`: the mean angle between the scouted directions and where all data led them (0: not scouted).
    `halving`: with `check`, the largest change of f at the points when the tolerance is halved, relative to the
    largest |f|; None without.
    """

    energy_error: float
    merge_error: float
    balance_error: float
    scout_drift: float
    halving: float | None


@dataclass(frozen=True)
class Flowed:
    """Where the flow of each member ended, the ensemble's shape flattened to E.

    `stopped` is "loss", "time" or "direction" (what was asked for), "rest" (nothing moves any more) or "budget".
    `group` (E, h): the neuron of the member's net that each first neuron became part of, -1 if it was retired.
    """

    ended: tuple[Ended, ...]
    powers: tuple[float, ...]
    biased: bool
    exactness: tuple[Exactness, ...]

    def member(self, i: int = 0) -> TwoLayerNet:
        """The trained net of one member, merged, in float64."""
        return self.ended[i].neurons.net(0, self.powers[i], self.biased)

    @property
    def net(self) -> TwoLayerNet:
        """The trained net, where there is one."""
        if len(self.ended) != 1:
            raise CallError(f"an ensemble of {len(self.ended)} nets: take .member(i)")
        return self.member(0)

    @property
    def contributions(self) -> Float[Tensor, "E h"]:
        """|v_j| ||w_j|| of all h first neurons; a merged one has its share."""
        rows = []
        for end in self.ended:
            none = end.neurons.u.new_zeros(0, end.neurons.u.shape[2])
            rows.append(end.book.all_neurons(end.neurons, none)[0].exp())
        return torch.cat(rows)

    @property
    def group(self) -> Int[Tensor, "E h"]:
        """Where each first neuron is now."""
        return torch.cat([end.book.place for end in self.ended])

    @property
    def stopped(self) -> list[str]:
        """Why each member stopped."""
        return [end.stopped for end in self.ended]

    @property
    def history(self) -> list[History]:
        """What was recorded of each member."""
        found = [end.history for end in self.ended if end.history is not None]
        if len(found) != len(self.ended):
            raise CallError("nothing was recorded: call gradient_flow with record=...")
        return found


def gradient_flow(
    net: TwoLayerNet,
    x: Float[Tensor, "*x n D"],
    y: Float[Tensor, "*y n"],
    *,
    until: Until,
    loss: LossName = "exp",
    sample_weight: Float[Tensor, "*c n"] | None = None,
    tolerance: float = 0.005,
    merge_angle: float = 0.02,
    scout: int = 0,
    record: int | Sequence[float] = 0,
    watch: Float[Tensor, "m D"] | None = None,
    powers: Float[Tensor, " E"] | None = None,
    check: bool = False,
    seed: int = 0,
) -> Flowed:
    """Follow the gradient flow of `net` (w (E, h, D) or (h, D)) on points x (shared, or one set a member).

    Computed in the dtype and on the device of x. `tolerance`: error of a step (angles, relative masses, margins).
    `merge_angle`: neurons of one sign closer than this become one (0: never). `scout`: number of weighted points
    on which the alignment phase is scouted (0: all data from the start); for weights that start small. `record`:
    times to keep, or about how many moments, with cosines to the directions `watch` (the axes keep it all).
    `powers`: one p a member in place of net.p. `sample_weight`: c_i, default 1/n; ones for a summed loss.
    `check`: follow it once more at half the tolerance, for `exactness`.
    """
    w, v = net.w.detach(), net.v.detach()
    E = math.prod(w.shape[:-2])
    points = checked_points(x, y, sample_weight, loss, E, w.shape[-1])
    warn_floor(points, until)
    dtype = points.x.dtype
    least = LEAST[dtype]
    if not least <= tolerance < 1:
        raise CallError(f"tolerance={tolerance}: from {least:g} ({dtype} allows no less) to 1")
    if not 0 <= merge_angle < 1:
        raise CallError(f"merge_angle={merge_angle}: an angle from 0 (never merge) to 1")
    w = w.reshape(E, *w.shape[-2:])
    v = v.reshape(E, v.shape[-1])
    if net.b is not None:
        if net.p != 1 or powers is not None:
            raise CallError(
                "biases with p > 1: append a column of ones to x instead (||(w, b)|| takes the place of ||w||)"
            )
        w = torch.cat([w, net.b.reshape(E, -1, 1)], -1)
        points = replace(points, x=torch.nn.functional.pad(points.x, (0, 1), value=1.0))
    # weights below 1e-38 exist in float64 alone: coordinates first, then the dtype of x
    start = cast(neurons_of(w, v, fixed_v=net.fixed_v), points.x)
    p: Power = float(net.p)
    if powers is not None:
        if powers.shape != (E,) or not bool((powers >= 1).all()):
            raise CallError(f"powers: {E} numbers p >= 1 are needed, one a member")
        p = powers.to(points.x).reshape(E, 1, 1)
    seen = points.x.new_zeros(0, points.x.shape[2]) if watch is None else watch.to(points.x)
    seen = seen / seen.norm(dim=1, keepdim=True).clamp_min(1e-30)
    columns = points.x.shape[2]
    if seen.shape[1] != columns:
        raise CallError(
            f"watch: directions of {columns} coordinates are needed (a bias is one more)"
        )
    if scout < 0:
        raise CallError(f"scout={scout}: a number of points, or 0")
    if record < 0 if isinstance(record, int) else not all(t > 0 for t in record):
        raise CallError(f"record={record}: times above 0, or a number of moments")
    if scout and (record or E > 1 or powers is not None):
        raise CallError("scout: one net at a time, without record and powers")
    frames = record if isinstance(record, int) else 0
    marks = () if isinstance(record, int) else tuple(math.log(t) for t in record)
    plan = Plan(until, merge_angle, scout, frames, marks, seen, seed)
    ends, drift = solved(start, points, p, plan, tolerance)
    halving: list[float | None] = [None] * E
    if check:
        again, _ = solved(start, points, p, plan, tolerance / 2)
        halving = [
            apart(one, two, points, i, p)
            for i, (one, two) in enumerate(zip(ends, again, strict=True))
        ]
    lost = [
        balance_lost(start.members(torch.tensor([i])), end.neurons) for i, end in enumerate(ends)
    ]
    exact = tuple(
        Exactness(end.energy_error, end.merge_error, b, d, half)
        for end, b, d, half in zip(ends, lost, drift, halving, strict=True)
    )
    each = tuple(powers.tolist()) if powers is not None else (float(net.p),) * E
    for i, end in enumerate(ends):
        text = complaint(end, points.members(torch.tensor([i])), each[i], until)
        if text:
            warnings.warn(FlowWarning(f"member {i}: {text}" if E > 1 else text), stacklevel=2)
    return Flowed(tuple(ends), each, net.b is not None, exact)


@dataclass(frozen=True)
class Plan:
    """What of a call does not depend on the tolerance."""

    until: Until
    merge_angle: float
    scout: int
    frames: int
    marks: tuple[float, ...]
    watch: Float[Tensor, "m D"]
    seed: int


def solved(
    start: Neurons, points: Points, p: Power, plan: Plan, tolerance: float
) -> tuple[list[Ended], list[float]]:
    """Every member at its end, scouted where that is asked for and shows something; and the scouts' drift."""
    if plan.scout:
        assert isinstance(p, float)
        generator = torch.Generator().manual_seed(plan.seed)
        ahead = scouted(start, points, p, plan.scout, tolerance, plan.until, generator)
        if ahead is not None:
            end = confirmed(ahead, points, p, plan.until, tolerance, plan.merge_angle)
            return [end], [drift_of(ahead, end)]
    ends = follow(
        start, points, p, plan.until, tolerance=tolerance, merge_angle=plan.merge_angle,
        frames=plan.frames, log_marks=plan.marks, watch=plan.watch,
    )  # fmt: skip
    return ends, [0.0] * len(ends)


def apart(one: Ended, two: Ended, points: Points, i: int, p: Power) -> float:
    """The largest difference of two ends of member i at its points, relative to the largest |f|."""
    mine = points.members(torch.tensor([i]))
    power = p if isinstance(p, float) else float(p[i])
    f, g = (outputs(end.neurons, mine.x, power) for end in (one, two))
    return float((f - g).abs().max() / f.abs().max().clamp_min(1e-300))


def balance_lost(start: Neurons, end: Neurons) -> float:
    """How much of sum_j ||w_j||^2 - v_j^2 one member lost, relative to ||theta||^2 at the end."""
    before, after = start.balance, end.balance
    size = ((2 * end.log_norm.double()).exp() * (1 + end.tilt.double().square())).sum()
    return float((after - before).abs().sum() / size.clamp_min(1e-300))


def cast(neurons: Neurons, like: Tensor) -> Neurons:
    """The neurons in the dtype and on the device of the points."""
    return Neurons(
        neurons.u.to(like),
        neurons.q.to(like),
        neurons.log_k.to(like),
        neurons.sign.to(like),
        neurons.kind.to(like.device),
    )
