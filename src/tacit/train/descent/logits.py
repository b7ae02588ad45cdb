r"""Training of PolyReLU nets with one output a class, many at once (min2024, Sections 5.2.1 and 5.2.2).

A training holds groups of nets; a group shares p and is one set of tensors. All see the same batches of points,
which are prepared once. With u the point as the neurons see it, s its scale (1 where it has none), z = <w, u>,
r = relu(z)/||w||,

    hidden = s ||w|| r^p,   logits = v hidden + b,   c = d(mean loss)/d(logits),   g = s v'c
    dL/dv = ||w|| c (s r^p)',   dL/db = sum c,   dL/dw = (p r^(p-1) g) u - (p-1) q w/||w||,   q_j = <g_j, r_j^p>

so that a step of a net costs two products of h x D with the batch, and no graph is kept. Loss of a point:

    logistic   log sum_k exp(z_k) - z_y           (softmax cross-entropy, the papers' choice)
    exp        sum_{k != y} exp(z_k - z_y)        (the same tail; one term of the logistic one's series)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, get_args, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tacit.base.checks import check_finite
from tacit.base.linalg import power
from tacit.base.shapes import Column, Index, Numbers, Rows
from tacit.base.threads import side_by_side
from tacit.errors import CallError, RunError
from tacit.nets.poly_relu import PolyReLUNet, without_dust
from tacit.train.descent.updates import Optimizer, updater
from tacit.train.losses import LossName

State = dict[str, Tensor]
PREPARED_AT_ONCE = 2**28  # numbers: a GB

Watch = Callable[[int, tuple[PolyReLUNet, ...]], bool | None]


@runtime_checkable
class Checkpoints(Protocol):
    """Where a training leaves, after an epoch, all that it needs to go on from there."""

    def last(self) -> tuple[int, State] | None:
        """The last finished epoch that was kept, and the state after it."""

    def offer(self, epoch: int, state: Callable[[], State]) -> None:
        """An epoch is finished: keep its state, or let it pass."""


class LogitTraining:
    """Nets on their way: `show` moves them by one batch. Copies go in and come out; it can be pickled.

    On a CPU each member is worked on alone, by one of `workers` threads: its numbers stay in the cache of a core,
    and no thread waits for another within an operation (which is slow where cores are shared).
    """

    def __init__(
        self,
        nets: Sequence[PolyReLUNet],
        *,
        step: float = 1e-3,
        optimizer: Optimizer = "adam",
        loss: LossName = "logistic",
        weight_decay: float = 0.0,
        workers: int = 1,
    ) -> None:
        check_settings(nets, step, optimizer, loss, weight_decay)
        self.start, self.loss, self.weight_decay = tuple(nets), loss, weight_decay
        self.states: list[State] = [trained_parts(net) for net in nets]
        self.update, self.workers = updater(optimizer, step), workers

    def nets(self) -> tuple[PolyReLUNet, ...]:
        """Copies of the nets as they are now, without dust."""
        copies: list[dict[str, Any]] = [
            {name: t.clone() for name, t in state.items()} | {"w": without_dust(state["w"])}
            for state in self.states
        ]
        return tuple(replace(net, **state) for net, state in zip(self.start, copies, strict=True))

    def shown(self) -> tuple[PolyReLUNet, ...]:
        """The nets themselves, which move with the next step: to look at and not to keep."""
        held: list[dict[str, Any]] = [dict(state) for state in self.states]
        return tuple(replace(net, **state) for net, state in zip(self.start, held, strict=True))

    def parts(self) -> list[tuple[str, float, State]]:
        """Name, p and tensors of what is moved together: a member (views of its group's tensors), or a group."""
        found = []
        for i, (net, state) in enumerate(zip(self.start, self.states, strict=True)):
            members = net.w.shape[:-2]
            if net.w.is_cuda or not members:
                found.append((f"{i}", net.p, state))
                continue
            flat = {name: t.flatten(0, len(members) - 1) for name, t in state.items()}
            for e in range(math.prod(members)):
                found.append((f"{i}.{e}", net.p, {name: t[e] for name, t in flat.items()}))
        return found

    def state(self) -> State:
        """Copies of all that moves: weights, and what the update remembers of its steps."""
        held = {
            f"{i}.{name}": t for i, state in enumerate(self.states) for name, t in state.items()
        }
        return {name: t.clone() for name, t in (held | self.update.state()).items()}

    def restore(self, state: State) -> None:
        """Go on from there: what follows is, bit for bit, what would have followed then."""
        for i, own in enumerate(self.states):
            for name, t in own.items():
                t.copy_(state[f"{i}.{name}"])
        self.update.restore(state, self.start[0].w.device)

    def epochs(
        self, points: Points, order: Callable[[], Index], *, batch: int, last: int, first: int = 1
    ) -> Iterator[tuple[int, Float[Tensor, " members"]]]:
        """Every point once an epoch, in a new order: the epoch, and the mean of the losses on the way."""
        for epoch in range(first, last + 1):
            rows = order().to(points.y.device).split(batch)
            losses = self.show_each(partial(points.batches, rows))
            bad = losses[~torch.isfinite(losses)]
            if len(bad):
                raise RunError(f"the loss is {float(bad[0])} in epoch {epoch}: take a smaller step")
            yield epoch, losses

    @torch.no_grad()
    def show(self, x: Rows, y: Index, weights: Numbers | None = None) -> Float[Tensor, " members"]:
        """One step of every net on the mean loss of the batch; the losses before it, net after net."""
        batch = Batch.of(*self.start[0].prepared(x), y, weights)
        return self.show_each(lambda: [batch])

    @torch.no_grad()
    def show_each(self, batches: Callable[[], Iterable[Batch]]) -> Float[Tensor, " members"]:
        """A step on each of the batches in turn, by every net alone; the mean of the losses before each.

        A net takes all of them before its thread goes on to another: no thread waits for a slower one after each
        batch, and the net stays in the cache.
        """

        def move(part: tuple[str, float, State]) -> Tensor:
            """One part, by its own gradients."""
            name, p, state = part
            total = state["w"].new_zeros(state["w"].shape[:-2])
            with torch.no_grad():  # a thread has a gradient mode of its own
                for batch in batches():
                    loss, gradients = gradients_of(state, p, batch, self.loss)
                    total += loss * batch.share
                    if self.weight_decay:
                        for key, gradient in gradients.items():
                            gradient.add_(state[key], alpha=self.weight_decay)
                    self.update(name, list(state.values()), list(gradients.values()))
            return total.flatten()

        return torch.cat(side_by_side(move, self.parts(), self.workers))


@dataclass(frozen=True)
class Batch:
    """Points as the neurons see them (n, D), their scales (1, n), labels, weights of mean 1, share of all."""

    u: Rows
    scale: Float[Tensor, "one n"] | None
    y: Index
    weights: Numbers | None
    share: float = 1.0

    @staticmethod
    def of(
        u: Rows, scale: Column | None, y: Index, weights: Numbers | None, share: float = 1.0
    ) -> Batch:
        """From points as `PolyReLUNet.prepared` gives them."""
        return Batch(u, None if scale is None else scale.T, y, weights, share)

    def slopes(
        self, logits: Float[Tensor, "*e C n"], loss: LossName
    ) -> tuple[Float[Tensor, "*e"], Float[Tensor, "*e C n"]]:
        """The mean loss and its derivative in the logits."""
        n = logits.shape[-1]
        own = self.y.expand(*logits.shape[:-2], 1, n)
        if loss == "logistic":
            chance = torch.log_softmax(logits, -2)
            losses = -chance.gather(-2, own).squeeze(-2)
            c = chance.exp_().scatter_(-2, own, 0.0)
        else:
            c = (logits - logits.gather(-2, own)).exp_().scatter_(-2, own, 0.0)
            losses = c.sum(-2)
        # p_y - 1 would lose the digits of a small loss
        c.scatter_(-2, own, -c.sum(-2, keepdim=True))
        weights = 1 / n if self.weights is None else self.weights / n
        return (losses * weights).sum(-1), c.mul_(weights)


@dataclass(frozen=True)
class Points:
    """All points, their labels and weights of mean 1 (None: all 1), and the points as the net's neurons see them.

    They are prepared once, unless a second copy of them is too much.
    """

    net: PolyReLUNet
    x: Rows
    y: Index
    weights: Numbers | None = None
    known: tuple[Rows, Column | None] | None = field(init=False)

    def __post_init__(self) -> None:
        known = self.net.prepared(self.x) if self.x.numel() <= PREPARED_AT_ONCE else None
        object.__setattr__(self, "known", known)

    def batches(self, orders: Sequence[Int64[Tensor, " _"]]) -> Iterator[Batch]:
        """The batches of these rows."""
        for rows in orders:
            u, scale = (
                self.net.prepared(self.x[rows]) if self.known is None else chosen(*self.known, rows)
            )
            weights = None if self.weights is None else self.weights[rows]
            yield Batch.of(u, scale, self.y[rows], weights, len(rows) / len(self.x))


def gradients_of(
    state: State, p: float, batch: Batch, loss: LossName
) -> tuple[Float[Tensor, "*e"], State]:
    """The mean loss, and its gradient by the closed form of the module's docstring; neurons are rows, as in w."""
    w, v = state["w"], state["v"]
    r = (w @ batch.u.mT).clamp_min_(0)
    if p == 1:
        size = inverse = torch.ones_like(w[..., 0])
    else:
        size = w.norm(dim=-1)
        inverse = torch.where(size > 0, 1 / size, 0.0)
        r.mul_(inverse.unsqueeze(-1))
    slope, powered = powers(r, p)
    outer = v * size.unsqueeze(-2)
    logits = outer @ powered
    if batch.scale is not None:
        logits = logits.mul_(batch.scale)
    if "b" in state:
        logits = logits + state["b"].unsqueeze(-1)
    mean, c = batch.slopes(logits, loss)
    by_b = c.sum(-1)
    if batch.scale is not None:
        c = c.mul_(batch.scale)
    heard = c @ powered.mT
    pulls = (p * v).mT @ c
    by_w = pulls.mul_(slope) @ batch.u
    if p > 1:
        q = (v * heard).sum(-2)
        by_w.addcmul_(((p - 1) * q * inverse).unsqueeze(-1), w, value=-1)
    found = {"w": by_w, "v": heard * size.unsqueeze(-2), "b": by_b}
    return mean, {name: found[name] for name in state}


def powers(
    r: Float[Tensor, "*any"], p: float
) -> tuple[Float[Tensor, "*any"], Float[Tensor, "*any"]]:
    """r^(p-1) (0 at 0) and r^p for r >= 0; r itself becomes one of them: each pass over a hidden layer counts."""
    if p == 1:
        return r.sign(), r
    if p == 2:
        return r, r.square()
    if p == 4:
        square = r.square()
        return r.mul_(square), square.square_()
    slope = power(r, p - 1)
    return slope, r.mul_(slope)


@torch.no_grad()
def train_logits(
    nets: Sequence[PolyReLUNet],
    x: Rows,
    y: Int64[Tensor, " labels"],
    *,
    epochs: int,
    batch: int,
    generator: torch.Generator,
    step: float = 1e-3,
    optimizer: Optimizer = "adam",
    loss: LossName = "logistic",
    weights: Float[Tensor, " weights"] | None = None,
    weight_decay: float = 0.0,
    watch: Watch | None = None,
    workers: int = 1,
    checkpoints: Checkpoints | None = None,
) -> tuple[PolyReLUNet, ...]:
    """Train copies of the nets, all on the same batches, in a new random order each epoch.

    `weights` of the points are scaled to mean 1. `watch(epoch, nets)` is called at 0 and after each epoch with
    the nets themselves, which move on: it may measure them, and stops the training by returning True.
    `workers` threads share the nets; the result does not depend on their number. From the last of `checkpoints`
    it goes on, and epochs up to that one are not watched again.
    """
    check_data(nets, x, y, weights)
    if epochs < 0 or batch < 1:
        raise CallError(f"epochs={epochs}, batch={batch}: epochs are 0 or more, a batch at least 1")
    training = LogitTraining(
        nets, step=step, optimizer=optimizer, loss=loss, weight_decay=weight_decay, workers=workers
    )
    share = None if weights is None else weights / weights.mean()

    def order() -> Index:
        """All rows, by chance."""
        return torch.randperm(len(x), generator=generator, device=generator.device)

    def state() -> State:
        """After an epoch: the nets, the update, and the orders that are still to come."""
        return training.state() | {"generator": generator.get_state()}

    begun = 0
    if checkpoints is not None and (found := checkpoints.last()) is not None:
        begun, known = found
        training.restore(known)
        generator.set_state(known["generator"])
    elif watch is not None and watch(0, training.shown()):
        return training.nets()
    points = Points(nets[0], x, y, share)
    for epoch, _ in training.epochs(points, order, batch=batch, last=epochs, first=begun + 1):
        if watch is not None and watch(epoch, training.shown()):
            break
        if checkpoints is not None:
            checkpoints.offer(epoch, state)
    return training.nets()


def chosen(
    u: Rows, scale: Column | None, rows: Int64[Tensor, " k"]
) -> tuple[Float[Tensor, "k D"], Float[Tensor, "k 1"] | None]:
    """Some of the prepared points."""
    return u.index_select(0, rows), None if scale is None else scale.index_select(0, rows)


def vars_of(net: PolyReLUNet) -> State:
    """What moves in training, by name."""
    held = {"w": net.w, "v": net.v, "b": net.b}
    return {name: t for name, t in held.items() if t is not None}


def trained_parts(net: PolyReLUNet) -> State:
    """Copies of what moves."""
    return {
        name: t.detach().clone(memory_format=torch.contiguous_format)
        for name, t in vars_of(net).items()
    }


def check_settings(
    nets: Sequence[PolyReLUNet],
    step: float,
    optimizer: Optimizer,
    loss: LossName,
    weight_decay: float,
) -> None:
    """Nets that can share batches, and numbers and names that have a meaning."""
    if not nets:
        raise CallError("nets: give at least one")
    if len({(net.normalize_input, net.unit) for net in nets}) > 1:
        raise CallError("nets trained together read their points in one way: normalize_input, unit")
    centres = [net.centre for net in nets if net.centre is not None]
    if len(centres) not in (0, len(nets)) or not all(torch.equal(c, centres[0]) for c in centres):
        raise CallError("nets trained together have one centre")
    if not (math.isfinite(step) and step > 0):
        raise CallError(f"step={step}: it is a finite positive number")
    if optimizer not in get_args(Optimizer):
        raise CallError(f"optimizer={optimizer!r}: one of {', '.join(get_args(Optimizer))}")
    if loss not in get_args(LossName):
        raise CallError(f"loss={loss!r}: one of {', '.join(get_args(LossName))}")
    if not (math.isfinite(weight_decay) and weight_decay >= 0):
        raise CallError(f"weight_decay={weight_decay}: it is a finite number >= 0")


def check_data(
    nets: Sequence[PolyReLUNet],
    x: Rows,
    y: Int64[Tensor, " labels"],
    weights: Float[Tensor, " weights"] | None,
) -> None:
    """Finite points with one label each, of the nets' dimension, type, device and classes."""
    if len(x) != len(y) or not len(x):
        raise CallError(f"{len(x)} points with {len(y)} labels: one label a point, at least one")
    check_finite("x", x)
    for net in nets:
        w, classes = net.w, net.v.shape[-2]
        if w.shape[-1] != x.shape[1] or (w.dtype, w.device) != (x.dtype, x.device):
            raise CallError(
                f"w is {w.dtype} {tuple(w.shape)} on {w.device}, x {x.dtype} {tuple(x.shape)} on {x.device}: "
                "they share dimension, type and device"
            )
        if int(y.min()) < 0 or int(y.max()) >= classes:
            raise CallError(f"labels run from {int(y.min())} to {int(y.max())}: 0 to {classes - 1}")
    if weights is not None and not (
        weights.shape == y.shape
        and bool(torch.isfinite(weights).all())
        and bool((weights >= 0).all())
        and float(weights.sum()) > 0
    ):
        raise CallError("weights: one finite number >= 0 a point, not all of them 0")
