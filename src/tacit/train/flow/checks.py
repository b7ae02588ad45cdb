"""Data on which the flow cannot do what it is asked: found before it starts, or named after it came to rest."""

import math
import warnings

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.base.checks import check_finite
from tacit.errors import CallError
from tacit.train.flow.field import Points, Power, outputs, products
from tacit.train.flow.loop import Ended
from tacit.train.flow.until import Until
from tacit.train.losses import LossName

LAGS = 3  # neighbours looked at on each side for an equal point


class FlowWarning(UserWarning):
    """The flow stopped before its goal, or cannot reach it; says when, why, and what to change."""


def checked_points(
    x: Float[Tensor, "*x n D"],
    y: Float[Tensor, "*y n"],
    sample_weight: Float[Tensor, "*c n"] | None,
    loss: LossName,
    members: int,
    dimension: int,
) -> Points:
    """The points of the flow, checked; one set for all members or one for each."""
    if loss not in ("exp", "logistic"):
        raise CallError(f"loss={loss!r}: 'exp' or 'logistic'")
    if x.dtype not in (torch.float32, torch.float64):
        raise CallError(f"x is {x.dtype}: the flow computes in float32 or float64")
    sets = math.prod(x.shape[:-2])
    if x.shape[-1] != dimension:
        raise CallError(f"x has {x.shape[-1]} columns, the net's weights {dimension}")
    if sets not in (1, members) or y.shape != x.shape[:-1]:
        raise CallError(
            f"x {tuple(x.shape)} and y {tuple(y.shape)}: one data set, or one for each of the {members} nets"
        )
    n = x.shape[-2]
    if n == 0:
        raise CallError("no points: the flow needs at least one")
    # a finite sum has finite terms; the look at each is for the sum that is not
    if not bool(x.sum().isfinite()):
        check_finite("x", x)
    if not bool((y.abs() == 1).all()):
        raise CallError("y: labels are +1 and -1")
    if sample_weight is not None and sample_weight.shape[-1] != n:
        raise CallError(f"sample_weight has {sample_weight.shape[-1]} numbers for {n} points")
    y = y.to(x)
    weight = torch.full_like(y, 1 / n) if sample_weight is None else sample_weight.expand_as(y)
    if not bool(torch.isfinite(weight).all() and (weight > 0).all()):
        raise CallError("sample_weight: positive numbers, one a point (drop points of weight 0)")
    return Points(
        x.reshape(sets, n, dimension),
        y.to(x).reshape(sets, n),
        weight.to(x).log().reshape(sets, n),
        loss,
    )


def warn_floor(points: Points, until: Until) -> None:
    """Warn where the loss cannot fall as low as asked: all-zero rows, equal points with opposite labels."""
    if until.log_loss is None:
        return
    zero = points.x[..., 0] == 0
    if bool(zero.any()):
        zero = torch.linalg.vector_norm(points.x, math.inf, dim=-1) == 0
    stuck, what = (
        zero,
        "all zero (f = 0 there, whatever the weights): drop them, or give the net biases",
    )
    if not bool(zero.any()):
        stuck = opposed(points)
        what = (
            "equal to a point with the other label: no classifier fits both; drop one of each pair"
        )
    if not bool(stuck.any()):
        return
    count = int(stuck.sum(-1).max())
    floor = max(least_loss(points, b, stuck[b]) for b in range(len(stuck)))
    if floor > until.log_loss:
        warnings.warn(
            FlowWarning(
                f"the loss cannot fall below exp({floor:.3g}), so never to exp({until.log_loss:.3g}): "
                f"{count} of {points.x.shape[1]} points are {what}"
            ),
            stacklevel=3,
        )


def least_loss(points: Points, b: int, stuck: Bool[Tensor, " n"]) -> float:
    """log of the least loss at the stuck points: one f(x) a place, the best for its labels.

    min_m a exp(-m) + b exp(m) = 2 sqrt(ab); logistic: the entropy of (a, b). f = 0 where x = 0.
    """
    if not bool(stuck.any()):
        return -math.inf
    x, y, c = points.x[b, stuck], points.y[b, stuck], points.log_c[b, stuck].double().exp()
    place, cell = torch.unique(x, dim=0, return_inverse=True)
    none = torch.zeros(len(place), dtype=c.dtype, device=c.device)
    plus, minus = (none.scatter_add(0, cell, torch.where(y == s, c, 0.0)) for s in (1, -1))
    total = plus + minus
    if points.loss == "exp":
        at_zero, best = total, 2 * (plus * minus).sqrt()
    else:
        at_zero = total * math.log(2)
        best = torch.special.entr(plus / total) + torch.special.entr(minus / total)
        best = best * total
    return float(torch.where((place == 0).all(-1), at_zero, best).sum().log())


def opposed(points: Points) -> Bool[Tensor, "B n"]:
    """Points that also occur with the other label: sought among neighbours along one random direction."""
    generator = torch.Generator().manual_seed(0)
    value = points.x @ torch.randn(points.x.shape[2], generator=generator).to(points.x)
    order = value.argsort(-1)
    ranked, label = value.gather(-1, order), points.y.gather(-1, order)
    # a product rounds equal rows differently, by their place: twins are close, not equal, along the direction
    close = 1e-5 * value.abs().amax(-1, keepdim=True)
    out = torch.zeros_like(value, dtype=torch.bool)
    for lag in range(1, min(LAGS, value.shape[-1] - 1) + 1):
        near = (ranked[:, lag:] - ranked[:, :-lag] <= close) & (label[:, lag:] != label[:, :-lag])
        b, i = near.nonzero(as_tuple=True)
        one, two = order[b, i], order[b, i + lag]
        same = (points.x[b, one] == points.x[b, two]).all(-1)
        out[b[same], one[same]] = True
        out[b[same], two[same]] = True
    return out


def complaint(end: Ended, points: Points, p: Power, until: Until) -> str:
    """What to tell the user of a member that stopped before its goal; nothing where it reached it."""
    if end.stopped not in ("rest", "budget"):
        return ""
    when = f"t = exp({end.log_time:.4g}), log-loss {end.log_loss:.4g}"
    if end.stopped == "budget":
        start = f"stopped at {when}: the budget of {until.evaluations} looks at the data is used up"
    else:
        start = f"came to rest at {when}: no weight moves any more"
    return f"{start}. {why(end, points, p)}"


def why(end: Ended, points: Points, p: Power) -> str:
    """The likeliest reason, and what to change."""
    z = products(end.neurons.u, points.x)
    reach = (z > 0) & (end.neurons.sign != 0).unsqueeze(-1)
    dark = ~reach.any(1)
    wrong = points.y * outputs(end.neurons, points.x, p) <= 0
    for label in (1.0, -1.0):
        mine = points.y == label
        helped = (reach & (end.neurons.side == label).unsqueeze(-1)).any(1)
        if bool(mine.any()) and not bool((helped & mine).any()):
            return (
                f"No neuron of sign {label:+.0f} is active on any point of class {label:+.0f}: "
                "use more neurons, or another seed"
            )
    if bool((dark & wrong).any()):
        return f"No neuron is active on {int(dark.sum())} points: use more neurons, or another seed"
    if bool(wrong.any()):
        return (
            f"{int(wrong.sum())} of {wrong.shape[-1]} points are still on the wrong side: opposite labels may "
            "coincide, or the net may be too small; use more neurons, another seed, or a larger budget"
        )
    return "Every point is on its right side: ask for a larger log_loss, or allow more evaluations"
