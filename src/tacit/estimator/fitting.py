"""Epochs of minibatches until the loss, or the validation accuracy, no longer improves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int64
from numpy.random import RandomState
from torch import Tensor

from tacit.errors import RunError
from tacit.estimator.rows import Array, Rows
from tacit.nets import PolyReLUNet, poly_relu_start
from tacit.nets.head import Head
from tacit.train.descent.logits import LogitTraining, check_losses

MOST_LOSS = 1e30  # no training comes back from there


@dataclass(frozen=True)
class Sample:
    """Points as the net takes them, their outputs 0..K-1, and weights of mean 1 (None: all 1)."""

    x: Float[Tensor, "n D"]
    z: Int64[Tensor, " n"]
    weights: Float[Tensor, " n"] | None = None


@dataclass(frozen=True)
class Schedule:
    """At most `epochs`, of batches of `batch`; stop after `patience` epochs that gained less than `tol`."""

    epochs: int
    batch: int
    tol: float
    patience: int


@dataclass(frozen=True)
class Fitted:
    """The net, the mean loss of each epoch, the validation accuracy after each, and did it stop by itself?"""

    net: PolyReLUNet
    losses: list[float]
    scores: list[float]
    converged: bool


def one_epoch(
    training: LogitTraining, sample: Sample, batch: int, random: RandomState, epoch: int
) -> float:
    """Every point once, in a new order; the mean of the losses on the way."""
    n = len(sample.x)
    order = torch.from_numpy(random.permutation(n)).to(sample.x.device)
    total = sample.x.new_zeros(1)
    for rows in order.split(batch):
        weights = None if sample.weights is None else sample.weights[rows]
        total += training.show(sample.x[rows], sample.z[rows], weights) * (len(rows) / n)
    check_losses(total, epoch)
    if float(total) > MOST_LOSS:
        raise RunError(
            f"the loss is {float(total):.3g} in epoch {epoch}, it blows up: take a smaller "
            "learning_rate, or scale X"
        )
    return float(total)


def fit_net(
    training: LogitTraining,
    sample: Sample,
    schedule: Schedule,
    random: RandomState,
    accuracy: Callable[[PolyReLUNet], float] | None,
) -> Fitted:
    """Train to the end of the schedule. With `accuracy` (of the points kept aside) the best net is returned."""
    losses: list[float] = []
    scores: list[float] = []
    best, waited, kept = -float("inf"), 0, None
    for epoch in range(1, schedule.epochs + 1):
        losses.append(one_epoch(training, sample, schedule.batch, random, epoch))
        if accuracy is not None:
            scores.append(accuracy(training.shown()[0]))
        now = -losses[-1] if accuracy is None else scores[-1]
        waited = 0 if now > best + schedule.tol else waited + 1
        if now > best:
            best, kept = now, None if accuracy is None else training.nets()[0]
        if waited >= schedule.patience:
            break
    return Fitted(
        training.nets()[0] if kept is None else kept, losses, scores, waited >= schedule.patience
    )


def start_head(
    rows: Rows,
    centre: Array,
    owner: Int64[Tensor, " K"],
    *,
    p: float,
    width: int,
    normalize_input: bool,
    seed: int,
) -> Head:
    """A head before training, in the type of the rows."""
    middle = torch.from_numpy(centre)
    net = poly_relu_start(
        rows.x.shape[1],
        width,
        len(owner),
        p,
        [torch.Generator().manual_seed(seed)],
        centre=middle,
        normalize_input=normalize_input,
        unit=not normalize_input,
        dtype=middle.dtype,
    )
    assert net.b is not None
    net = replace(net, w=net.w[0], v=net.v[0], b=net.b[0])
    return Head(net, owner)


def own_outputs(head: Head, rows: Rows) -> Int64[Tensor, " n"]:
    """The output of its class that each row stirs most."""
    x, _ = rows.tensors(head.owner.device, head.net.w.dtype)
    foreign = torch.from_numpy(rows.y).unsqueeze(1) != head.owner
    return head.net(x).masked_fill(foreign, -torch.inf).argmax(1)


def accuracy_of(
    head: Head,
    x: Float[Tensor, "n D"],
    y: Int64[Tensor, " n"],
    weights: Float[Tensor, " n"] | None,
    net: PolyReLUNet,
) -> float:
    """The weighted share of rows that the head has right with this net in it."""
    right = (replace(head, net=net)(x).argmax(1) == y).to(x.dtype)
    return float(right.mean() if weights is None else (right * weights).mean())
