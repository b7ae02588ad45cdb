r"""Gradient descent, stochastic gradient descent and Adam: the papers' own training loops.

What is lowered is the mean loss over a batch, (1/B) sum_i l(y_i f(x_i)). An epoch shows every point once, in a
new random order, batch by batch (the last may be smaller); without a batch size every step sees all points.

    min2024 (Section 5.1 and the released configuration)   exp, batch 100, step 0.2, 401 epochs, both layers
    li2025 (Section 3, Appendix E.1)                       logistic, all points, first layer and biases, T steps

A two-layer net is differentiated in closed form. With u = w/||w|| and r_ij = relu(<w_j, x_i> + b_j) / ||w_j||,
so that f = sum_j v_j ||w_j|| r_j^p, and c_i = dL/df(x_i),

    dL/dv_j = ||w_j|| q_j,   q_j = sum_i c_i r_ij^p
    dL/dw_j = v_j (p sum_i c_i r_ij^(p-1) x_i - (p-1) q_j u_j)
    dL/db_j = v_j p sum_i c_i r_ij^(p-1)

No power of a small number is taken, so an init of 1e-7 is safe in float32. Any leading dimensions of w are
members of an ensemble: one tensor program trains them all, each as it would be trained alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, Protocol, TypeVar, get_args, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tacit.errors import CallError, RunError
from tacit.nets import TwoLayerNet
from tacit.train.losses import LossName, loss_at, pull_at

Optimizer = Literal["sgd", "adam"]
Net = TypeVar("Net", bound=TwoLayerNet | nn.Module)
State = dict[str, Tensor]

BETAS, EPSILON = (0.9, 0.999), 1e-8  # Adam's own (Kingma & Ba 2015, Algorithm 1)
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


@dataclass(frozen=True)
class Objective:
    """The mean loss of a batch: which loss, its label smoothing, and relu' at 0 (two-layer nets)."""

    loss: LossName
    smoothing: float
    at_kink: float

    def mean(self, f: Float[Tensor, "*e n"], y: Float[Tensor, "*x n"]) -> Float[Tensor, "*e"]:
        """(1/n) sum_i l(y_i f_i)."""
        return loss_at(y * f, self.loss, self.smoothing).mean(-1)

    def slopes(self, f: Float[Tensor, "*e n"], y: Float[Tensor, "*x n"]) -> Float[Tensor, "*e n"]:
        """Its derivative by each f_i."""
        return pull_at(y * f, self.loss, self.smoothing) * y / -f.shape[-1]


@torch.no_grad()
def descend(
    net: Net,
    x: Float[Tensor, "*x n D"],
    y: Float[Tensor, "*labels"],
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
) -> Descended[Net]:
    """Train a copy of `net` on (x, y), y in {-1, +1}, for a number of `steps` or of `epochs`.

    `batch=None` is full-batch descent, which needs no `generator`. `weight_decay` adds that multiple of each
    trained parameter to its gradient. `record` lists the steps to keep (0: the start). A net with `fixed_v` keeps
    its second layer. `at_kink` is relu'(0) for two-layer nets with p = 1: 0 as in torch, 1 as in li2025. An
    ensemble of two-layer nets sees shared points, or points of its own with the same leading dimensions; all
    members see their points in the same order. A torch module has one output a point and is run as it is (call
    `.train()` or `.eval()` before); what it draws itself, as dropout does, is torch's global stream.
    """
    objective = Objective(loss, label_smoothing, at_kink)
    check_points(x, y)
    check_settings(objective, optimizer, step, weight_decay)
    trainee = trainee_of(net, x, objective)
    count = check_length(steps, epochs, batch, x.shape[-2], generator)
    if not all(0 <= k <= count for k in record):
        raise CallError(f"record={sorted(record)}: the steps that can be kept are 0 to {count}")
    update = updater(optimizer, step)
    history: list[Moment[Any]] = []
    seen: list[Tensor] = []
    for k, rows in enumerate(batches(x.shape[-2], batch, count, generator), 1):
        if k - 1 in record:
            history.append(moment(trainee, k - 1, x, y, objective))
        here = (x, y) if rows is None else (x[..., rows.to(x.device), :], y[..., rows.to(x.device)])
        value, gradients = trainee.gradients(*here)
        seen.append(value)
        for name, gradient in gradients.items():
            parameter = trainee.state[name]
            if weight_decay:
                gradient = gradient.add(parameter, alpha=weight_decay)
            update(name, parameter, gradient, k)
        if k % LOOK == 0 or k == count:
            look(trainee, seen, k)
            seen = []
    if count in record:
        history.append(moment(trainee, count, x, y, objective))
    return Descended(trainee.net(), tuple(history))


@runtime_checkable
class Trainee(Protocol):
    """Parameters that move in place, their gradients on a batch, and the net they make."""

    state: State

    def gradients(self, x: Tensor, y: Tensor) -> tuple[Tensor, State]:
        """The mean loss of the batch (*e), and its gradient by each parameter."""

    def output(self, x: Tensor) -> Tensor:
        """f (*e, n)."""

    def net(self) -> Any:
        """A copy of the net as it is now."""


class TwoLayerTrainee:
    """The closed form of the module's docstring."""

    def __init__(self, net: TwoLayerNet, objective: Objective) -> None:
        self.start, self.objective = net, objective
        held = {"w": net.w, "v": net.v, "b": net.b}
        self.state = {
            name: tensor.detach().clone(memory_format=torch.contiguous_format)
            for name, tensor in held.items()
            if tensor is not None and not (name == "v" and net.fixed_v)
        }

    def net(self) -> TwoLayerNet:
        """The weights copied, since they move in place."""
        copies: dict[str, Any] = {name: tensor.clone() for name, tensor in self.state.items()}
        return replace(self.start, **copies)

    def output(self, x: Float[Tensor, "*x n D"]) -> Float[Tensor, "*e n"]:
        """f, from ||w_j|| r_ij^p."""
        size, r, slope = self.scaled(x)
        return rows_times(self.v * size, r * slope)

    @property
    def v(self) -> Float[Tensor, "*e h"]:
        """The second layer, trained or not."""
        return self.state.get("v", self.start.v)

    def scaled(
        self, x: Float[Tensor, "*x n D"]
    ) -> tuple[Float[Tensor, "*e h"], Float[Tensor, "*e h n"], Float[Tensor, "*e h n"]]:
        """||w_j||, r_ij and r_ij^(p-1); for p = 1, where the norm drops out, 1, relu(z_ij) and relu'(z_ij).

        Neurons are rows, as in w: the product with x that follows is then one of contiguous rows.
        """
        w, p = self.state["w"], self.start.p
        z = w @ x.mT
        if "b" in self.state:
            z += self.state["b"].unsqueeze(-1)
        if p == 1:
            slope = (z > 0).to(z.dtype)
            if self.objective.at_kink:
                slope += self.objective.at_kink * (z == 0)
            return torch.ones_like(self.start.v), z.clamp_min_(0), slope
        size = w.norm(dim=-1)
        r = z.clamp_min_(0).mul_(inverse(size).unsqueeze(-1))
        return size, r, r ** (p - 1)

    def gradients(
        self, x: Float[Tensor, "*x n D"], y: Float[Tensor, "*x n"]
    ) -> tuple[Float[Tensor, "*e"], State]:
        """Two products of the size of w, and no graph."""
        p, v = self.start.p, self.v
        size, r, slope = self.scaled(x)
        powered = r * slope
        f = rows_times(v * size, powered)
        c = self.objective.slopes(f, y)
        q = (powered @ c.unsqueeze(-1)).squeeze(-1)
        pulls = slope.mul_(c.unsqueeze(-2)).mul_((p * v).unsqueeze(-1))
        by_w = pulls @ x
        if p > 1:
            along = (p - 1) * v * q * inverse(size)
            by_w.addcmul_(along.unsqueeze(-1), self.state["w"], value=-1)
        found = {"w": by_w, "v": size * q, "b": pulls.sum(-1)}
        return self.objective.mean(f, y), {name: found[name] for name in self.state}


def rows_times(
    weights: Float[Tensor, "*e h"], rows: Float[Tensor, "*e h n"]
) -> Float[Tensor, "*e n"]:
    """sum_j weights_j rows_j."""
    return (weights.unsqueeze(-2) @ rows).squeeze(-2)


def inverse(size: Float[Tensor, "*e h"]) -> Float[Tensor, "*e h"]:
    """1/||w_j||; 0 where w_j = 0, which contributes nothing."""
    return torch.where(size > 0, 1 / size, 0.0)


class ModuleTrainee:
    """Any torch module with one output a point, by autograd."""

    def __init__(self, module: nn.Module, objective: Objective) -> None:
        self.module, self.objective = deepcopy(module), objective
        named = self.module.named_parameters()
        self.state: State = {
            name: parameter for name, parameter in named if parameter.requires_grad
        }

    def net(self) -> nn.Module:
        """The module copied, since it moves in place."""
        return deepcopy(self.module)

    def output(self, x: Float[Tensor, "n D"]) -> Float[Tensor, " n"]:
        """f, whether the module gives (n,) or (n, 1)."""
        f = self.module(x)
        if f.shape not in ((len(x),), (len(x), 1)):
            raise CallError(
                f"the module's output has shape {tuple(f.shape)} for {len(x)} points: it must be one number each"
            )
        return f.reshape(len(x))

    def gradients(
        self, x: Float[Tensor, "n D"], y: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, ""], State]:
        """A parameter that the output does not depend on has gradient 0."""
        with torch.enable_grad():
            value = self.objective.mean(self.output(x), y)
            found = torch.autograd.grad(
                value, list(self.state.values()), allow_unused=True, materialize_grads=True
            )
        return value.detach(), dict(zip(self.state, found, strict=True))


def trainee_of(net: TwoLayerNet | nn.Module, x: Tensor, objective: Objective) -> Trainee:
    """The net, checked against the data."""
    if isinstance(net, TwoLayerNet):
        check_two_layer(net, x)
        return TwoLayerTrainee(net, objective)
    if objective.at_kink:
        raise CallError(
            f"at_kink={objective.at_kink}: relu'(0) can be chosen for a TwoLayerNet only"
        )
    if x.dim() != 2:
        raise CallError(f"x has shape {tuple(x.shape)}: a module is trained on points (n, D)")
    trainee = ModuleTrainee(net, objective)
    if not trainee.state:
        raise CallError("the module has no parameter that requires a gradient: nothing to train")
    return trainee


def updater(optimizer: Optimizer, step: float) -> Callable[[str, Tensor, Tensor, int], None]:
    """How a parameter moves in place, given its name, its gradient and the step k = 1, 2, ..."""
    means: dict[str, tuple[Tensor, Tensor]] = {}

    def sgd(_name: str, parameter: Tensor, gradient: Tensor, _k: int) -> None:
        """Against the gradient."""
        parameter.sub_(gradient, alpha=step)

    def adam(name: str, parameter: Tensor, gradient: Tensor, k: int) -> None:
        """Kingma & Ba 2015, Algorithm 1."""
        first, second = means.setdefault(
            name, (torch.zeros_like(parameter), torch.zeros_like(parameter))
        )
        first.lerp_(gradient, 1 - BETAS[0])
        second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        size = (second / (1 - BETAS[1] ** k)).sqrt_().add_(EPSILON)
        parameter.addcdiv_(first, size, value=-step / (1 - BETAS[0] ** k))

    return sgd if optimizer == "sgd" else adam


def batches(
    n: int, batch: int | None, count: int, generator: torch.Generator | None
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
        parts = order.split(batch)[:left]
        left -= len(parts)
        yield from parts


def moment(trainee: Trainee, step: int, x: Tensor, y: Tensor, objective: Objective) -> Moment[Net]:
    """Measured on all points, a chunk at a time."""
    f = torch.cat([trainee.output(part) for part in x.split(ROWS, dim=-2)], -1)
    return Moment(step, objective.mean(f, y), (y * f).amin(-1), trainee.net())


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


def check_points(x: Float[Tensor, "*x n D"], y: Float[Tensor, "*labels"]) -> None:
    """At least one point, finite, labelled +-1."""
    if x.shape[:-1] != y.shape or not y.numel():
        raise CallError(
            f"x has shape {tuple(x.shape)} and y {tuple(y.shape)}: one label a point, at least one point"
        )
    if not torch.isfinite(x).all():
        raise CallError("x holds NaN or inf: drop or impute those points first")
    if not ((y == 1) | (y == -1)).all():
        raise CallError("y: labels are -1 or +1")


def check_settings(objective: Objective, optimizer: str, step: float, weight_decay: float) -> None:
    """Names and numbers that have a meaning."""
    if objective.loss not in get_args(LossName):
        raise CallError(f"loss={objective.loss!r}: one of {', '.join(get_args(LossName))}")
    if optimizer not in get_args(Optimizer):
        raise CallError(
            f"optimizer={optimizer!r}: one of {', '.join(get_args(Optimizer))} "
            "(sgd without a batch is full-batch descent)"
        )
    if not (math.isfinite(step) and step > 0):
        raise CallError(f"step={step}: it is a finite positive number")
    if not (math.isfinite(weight_decay) and weight_decay >= 0):
        raise CallError(f"weight_decay={weight_decay}: it is a finite number >= 0")
    if not 0 <= objective.smoothing < 1:
        raise CallError(f"label_smoothing={objective.smoothing}: it lies in [0, 1)")
    if objective.smoothing and objective.loss != "logistic":
        raise CallError("label_smoothing is defined for loss='logistic'")
    if not 0 <= objective.at_kink <= 1:
        raise CallError(f"at_kink={objective.at_kink}: a subgradient of relu at 0 lies in [0, 1]")


def check_length(
    steps: int | None,
    epochs: int | None,
    batch: int | None,
    n: int,
    generator: torch.Generator | None,
) -> int:
    """How many steps there are."""
    given = [number for number in (steps, epochs) if number is not None]
    if len(given) != 1 or given[0] < 1:
        raise CallError(f"steps={steps}, epochs={epochs}: give one of them, at least 1")
    if batch is not None and not 1 <= batch <= n:
        raise CallError(f"batch={batch}: it is 1 to {n}, the number of points")
    if batch is not None and generator is None:
        raise CallError(
            f"batch={batch}: batches are drawn; give generator=torch.Generator().manual_seed(0)"
        )
    return steps if steps is not None else given[0] * math.ceil(n / (batch or n))


def check_two_layer(net: TwoLayerNet, x: Float[Tensor, "*x n D"]) -> None:
    """Weights that fit the points and can be divided by their norm."""
    if net.w.shape[-1] != x.shape[-1] or x.shape[:-2] not in ((), net.w.shape[:-2]):
        raise CallError(
            f"w has shape {tuple(net.w.shape)} and x {tuple(x.shape)}: both end in the dimension, and x is "
            "shared by all members or has their leading dimensions"
        )
    for name, tensor in net.state()[0].items():
        if tensor.dtype != x.dtype or tensor.device != x.device:
            raise CallError(
                f"{name} is {tensor.dtype} on {tensor.device}, x {x.dtype} on {x.device}: convert one of them"
            )
        if not torch.isfinite(tensor).all():
            raise CallError(f"{name} holds NaN or inf: a start must be finite")
    if net.p > 1 and bool(((net.w.norm(dim=-1) == 0) & net.w.any(-1)).any()):
        raise CallError(f"||w|| underflows in {net.w.dtype}: take float64 for so small an init")
