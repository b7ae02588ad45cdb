"""Epochs of minibatches until the loss, or the validation accuracy, no longer improves."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int64
from numpy.random import RandomState
from torch import Tensor

from tacit.base.shapes import Index, Numbers
from tacit.errors import RunError
from tacit.estimator.rows import Array, Rows
from tacit.nets import PolyReLUNet, poly_relu_start
from tacit.nets.head import Head
from tacit.train.descent.logits import LogitTraining, Points

MOST_LOSS = 1e30  # no training comes back from there


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


def epochs_of(
    training: LogitTraining,
    points: Points,
    random: RandomState,
    *,
    batch: int,
    last: int,
    first: int = 1,
) -> Iterator[float]:
    """The mean loss of each epoch, in orders that numpy draws."""

    def order() -> Index:
        """All rows, by chance."""
        return torch.from_numpy(random.permutation(len(points.x)))

    for epoch, losses in training.epochs(points, order, batch=batch, last=last, first=first):
        if float(losses) > MOST_LOSS:
            raise RunError(
                f"the loss is {float(losses):.3g} in epoch {epoch}, it blows up: take a smaller "
                "learning_rate, or scale X"
            )
        yield float(losses)


def fit_net(
    training: LogitTraining,
    points: Points,
    schedule: Schedule,
    random: RandomState,
    accuracy: Callable[[PolyReLUNet], float] | None,
) -> Fitted:
    """Train to the end of the schedule. With `accuracy` (of the points kept aside) the best net is returned."""
    losses: list[float] = []
    scores: list[float] = []
    best, waited, kept = -float("inf"), 0, None
    for loss in epochs_of(training, points, random, batch=schedule.batch, last=schedule.epochs):
        losses.append(loss)
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
    seed: int,
    width: int,
    p: float,
    normalize_input: bool,
) -> Head:
    """A head before training, in the type of the rows."""
    middle, generator = torch.from_numpy(centre), torch.Generator().manual_seed(seed)
    net = poly_relu_start(
        rows.x.shape[1],
        width,
        len(owner),
        p,
        [generator],
        centre=middle,
        normalize_input=normalize_input,
        unit=not normalize_input,
        dtype=middle.dtype,
    )
    assert net.b is not None
    net = replace(net, w=net.w[0], v=net.v[0], b=net.b[0])
    return Head(net, owner)


def own_outputs(head: Head, rows: Rows) -> Index:
    """The output of its class that each row stirs most."""
    x, _ = rows.tensors(head.owner.device, head.net.w.dtype)
    foreign = torch.from_numpy(rows.y).unsqueeze(1) != head.owner
    return head.net(x).masked_fill(foreign, -torch.inf).argmax(1)


def accuracy_of(
    head: Head, x: Float[Tensor, "n D"], y: Index, weights: Numbers | None, net: PolyReLUNet
) -> float:
    """The weighted share of rows that the head has right with this net in it."""
    right = (replace(head, net=net)(x).argmax(1) == y).to(x.dtype)
    return float(right.mean() if weights is None else (right * weights).mean())
