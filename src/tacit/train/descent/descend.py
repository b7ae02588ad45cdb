r"""Gradient descent, stochastic gradient descent and Adam: the papers' own training loops.

What is lowered is the mean loss over a batch, (1/B) sum_i l(y_i f(x_i)). An epoch shows every point once, in a
new random order, batch by batch (the last may be smaller); without a batch size every step sees all points.

    min2024 (Section 5.1 and the released configuration)   exp, batch 100, step 0.2, 401 epochs, both layers
    li2025 (Section 3, Appendix E.1)                       logistic, all points, first layer and biases, T steps

The gradients are in `trainees.py`. Any leading dimensions of w are
members of an ensemble: one tensor program trains them all, each as it would be trained alone.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.errors import CallError, RunError
from tacit.train.descent.checks import check_length, check_settings, trainee_of
from tacit.train.descent.replayed import may_record, replayed
from tacit.train.descent.trainees import Objective, Trainee
from tacit.train.descent.updates import Optimizer, Update, updater
from tacit.train.losses import LossName

Net = TypeVar("Net")
Perturb = Callable[[Any, Tensor, Tensor], Tensor]

ROWS = 2048  # of the data at once where all of it is measured
LOOK = 50  # steps between two looks at the losses: a look makes a GPU wait


@dataclass(frozen=True)
class Moment(Generic[Net]):
    """After `step` updates: mean loss and least margin over all points, and a copy of the net."""

    step: int
    loss: Float[Tensor, "*e"]
    margin: Float[Tensor, "*e"]
    net: Net


@dataclass(frozen=True)
class Descended(Generic[Net]):
    """The trained net, and what it was at the steps that were asked for."""

    net: Net
    history: tuple[Moment[Net], ...]


@torch.no_grad()
def descend(
    net: Net,
    x: Float[Tensor, "*x n D"],
    y: Float[Tensor, "*labels"] | Int[Tensor, "*labels"],
    *,
    step: float,
    steps: int | None = None,
    epochs: int | None = None,
    loss: LossName = "exp",
    optimizer: Optimizer = "sgd",
    batch: int | None = None,
    generator: torch.Generator | None = None,
    weight_decay: float = 0.0,
    label_smoothing: float = 0.0,
    at_kink: float = 0.0,
    record: Collection[int] = (),
    perturb: Perturb | None = None,
) -> Descended[Net]:
    """Train a copy of `net` on (x, y) for a number of `steps` or of `epochs`.

    The net is of any kind that registers a `trainee`. y is in {-1, +1}; for a net with logits (of a MultiClassNet
    those of its subclasses) it is 0 to k-1, and loss="logistic" is the cross-entropy.

    `batch=None` is full-batch descent, which needs no `generator`. `weight_decay` adds that multiple of each
    trained parameter to its gradient. `record` lists the steps to keep (0: the start). A net with `fixed_v` keeps
    its second layer. `at_kink` is relu'(0) for nets with p = 1: 0 as in torch, 1 as in li2025. An
    ensemble of two-layer nets sees shared points, or points of its own with the same leading dimensions; all
    members see their points in the same order. A torch module has one output a point and is run as it is (call
    `.train()` or `.eval()` before); what it draws itself, as dropout does, is torch's global stream. `perturb`
    moves the points of each step: called with (a copy of the net, x, y), it returns points in place of x
    (adversarial training, noise); what is recorded is of the points as given.
    """
    objective = Objective(loss, label_smoothing, at_kink)
    check_settings(objective, optimizer, step, weight_decay)
    trainee = trainee_of(net, x, y, objective)
    count = check_length(steps, epochs, batch, x.shape[-2], generator)
    if not all(0 <= k <= count for k in record):
        raise CallError(f"record={sorted(record)}: the steps that can be kept are 0 to {count}")
    plain = partial(one_step, trainee, updater(optimizer, step), weight_decay)
    move = (
        replayed(plain, trainee.state, x, y, batch)
        if may_record(trainee, optimizer, x.device.type, perturb)
        else lambda rows: plain(*shown(x, y, rows, trainee, perturb))
    )
    history: list[Moment[Any]] = []
    seen: list[Tensor] = []
    for k, rows in enumerate(batches(x.shape[-2], batch, count, generator, x.device), 1):
        if k - 1 in record:
            history.append(moment(trainee, k - 1, x, y))
        seen.append(move(rows))
        if k % LOOK == 0 or k == count:
            look(trainee, seen, k)
            seen = []
    if count in record:
        history.append(moment(trainee, count, x, y))
    return Descended(trainee.net(), tuple(history))


def one_step(trainee: Trainee, update: Update, weight_decay: float, x: Tensor, y: Tensor) -> Tensor:
    """Move the trainee once on these points; their mean loss before it."""
    value, gradients = trainee.gradients(x, y)
    if weight_decay:
        gradients = {
            name: gradient.add(trainee.state[name], alpha=weight_decay)
            for name, gradient in gradients.items()
        }
    update("net", [trainee.state[name] for name in gradients], list(gradients.values()))
    return value


def shown(
    x: Tensor, y: Tensor, rows: Tensor | None, trainee: Trainee, perturb: Perturb | None
) -> tuple[Tensor, Tensor]:
    """The points of a step: all, or these rows; as given, or moved."""
    if rows is not None:
        x, y = x[..., rows, :], y[..., rows]
    return (x, y) if perturb is None else (moved(perturb(trainee.net(), x, y), x), y)


def batches(
    n: int, batch: int | None, count: int, generator: torch.Generator | None, device: torch.device
) -> Iterator[Int[Tensor, " B"] | None]:
    """The rows of each of `count` steps: all (None), or the next batch of a fresh order in each epoch."""
    if batch is None:
        yield from [None] * count
        return
    left = count
    while left > 0:
        order = torch.randperm(
            n, generator=generator, device=generator.device if generator else None
        )
        parts = order.to(device).split(batch)[:left]
        left -= len(parts)
        yield from parts


def moment(trainee: Trainee, step: int, x: Tensor, y: Tensor) -> Moment[Net]:
    """Measured on all points, a chunk at a time."""
    parts = zip(x.split(ROWS, dim=-2), y.split(ROWS, dim=-1), strict=True)
    seen = [trainee.seen(*part) for part in parts]
    loss, margin = (torch.cat(values, -1) for values in zip(*seen, strict=True))
    return Moment(step, loss.mean(-1), margin.amin(-1), trainee.net())


def moved(points: Tensor, x: Tensor) -> Tensor:
    """What `perturb` returned, if it can take the place of x."""
    if points.shape != x.shape or points.dtype != x.dtype:
        raise CallError(
            f"perturb returned {points.dtype} of shape {tuple(points.shape)} for points of {x.dtype} and "
            f"{tuple(x.shape)}: it returns as many points of the same kind"
        )
    return points


def look(trainee: Trainee, seen: list[Tensor], done: int) -> None:
    """A loss or a parameter that is not finite ends the run, with the step and the member it is seen at."""
    losses = torch.stack(seen)
    bad = (~torch.isfinite(losses)).nonzero()
    remedy = "take a smaller step, or a smaller init"
    if len(bad):
        at, *member = bad[0].tolist()
        whose = f" of member {member}" if member else ""
        value = float(losses[tuple(bad[0])])
        raise RunError(f"the loss{whose} is {value} at step {done - len(seen) + at}: {remedy}")
    for name, parameter in trainee.state.items():
        if not torch.isfinite(parameter).all():
            raise RunError(f"{name} holds NaN or inf after step {done}: {remedy}")
