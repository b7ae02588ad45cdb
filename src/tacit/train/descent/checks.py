"""What `descend` refuses, in the user's words."""

import math
from typing import Any, get_args

import torch
from torch import Tensor, nn

from tacit.base.checks import check_finite, check_signs
from tacit.base.shapes import Sets
from tacit.errors import CallError
from tacit.nets import MultiClassNet, TensorNet, TwoLayerNet
from tacit.nets.kinds import asked_of, kind_of
from tacit.train.descent.trainees import (
    ModuleTrainee,
    MultiClassTrainee,
    Objective,
    TensorTrainee,
    Trainee,
    TwoLayerTrainee,
)
from tacit.train.descent.updates import Optimizer
from tacit.train.losses import LossName


def trainee_of(net: Any, x: Tensor, y: Tensor, objective: Objective) -> Trainee:
    """The net as its kind registers how it is trained, checked against the data."""
    check_points(x, y)
    return asked_of(net, "descend").trainee(net, x, y, objective)


def two_layer_trainee(net: TwoLayerNet, x: Tensor, y: Tensor, objective: Objective) -> Trainee:
    """By the closed form."""
    check_signs(y)
    check_two_layer(net, x)
    return TwoLayerTrainee(net, objective)


def multi_class_trainee(net: MultiClassNet, x: Tensor, y: Tensor, objective: Objective) -> Trainee:
    """By the closed form, on subclasses."""
    check_classes(net.w.shape[-3], y, objective)
    check_fit({"w": net.w}, x, net.ensemble)
    return MultiClassTrainee(net, objective)


def tensor_trainee(net: TensorNet, x: Tensor, y: Tensor, objective: Objective) -> Trainee:
    """Any net of tensors by autograd: those that its kind names as `trained`, else all floating-point ones."""
    no_kink(objective)
    held = net.tensors()
    floating = tuple(name for name, tensor in held.items() if tensor.is_floating_point())
    kind = kind_of(net)
    named = floating if kind is None or kind.trained is None else kind.trained
    last = next((t for t in held.values() if t.shape[-1:] == (net.inputs,)), held[floating[0]])
    check_fit({"w": last, **{name: held[name] for name in floating}}, x, net.ensemble)
    trainee = TensorTrainee(net, objective, named)
    scores = net(x[..., :1, :])
    if trainee.logits(scores):
        check_classes(scores.shape[-1], y, objective)
    else:
        check_signs(y)
    return trainee


def module_trainee(net: nn.Module, x: Tensor, y: Tensor, objective: Objective) -> Trainee:
    """A torch module with one output, by autograd."""
    check_signs(y)
    no_kink(objective)
    if x.dim() != 2:
        raise CallError(f"x has shape {tuple(x.shape)}: a module is trained on points (n, D)")
    trainee = ModuleTrainee(net, objective)
    if not trainee.state:
        raise CallError("the module has no parameter that requires a gradient: nothing to train")
    return trainee


def no_kink(objective: Objective) -> None:
    """Autograd has relu'(0) = 0."""
    if objective.at_kink:
        raise CallError(
            f"at_kink={objective.at_kink}: relu'(0) can be chosen for a TwoLayerNet or a MultiClassNet only"
        )


def check_points(x: Sets, y: Tensor) -> None:
    """At least one point, finite, each with a label."""
    if x.shape[:-1] != y.shape or not y.numel():
        raise CallError(
            f"x has shape {tuple(x.shape)} and y {tuple(y.shape)}: one label a point, at least one point"
        )
    check_finite("x", x)


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


def check_fit(tensors: dict[str, Tensor], x: Sets, members: tuple[int, ...]) -> None:
    """Weights of the dimension, dtype and device of the points."""
    w = tensors["w"]
    if w.shape[-1] != x.shape[-1] or tuple(x.shape[:-2]) not in ((), tuple(members)):
        raise CallError(
            f"w has shape {tuple(w.shape)} and x {tuple(x.shape)}: both end in the dimension, and x is "
            "shared by all members or has their leading dimensions"
        )
    for name, tensor in tensors.items():
        if tensor.dtype != x.dtype or tensor.device != x.device:
            raise CallError(
                f"{name} is {tensor.dtype} on {tensor.device}, x {x.dtype} on {x.device}: convert one of them"
            )
        check_finite(name, tensor, remedy="a start must be finite")


def check_two_layer(net: TwoLayerNet, x: Sets) -> None:
    """Weights that fit the points and can be divided by their norm."""
    check_fit(net.tensors(), x, net.ensemble)
    if net.p > 1 and bool(((net.w.norm(dim=-1) == 0) & net.w.any(-1)).any()):
        wider = "" if net.w.dtype == torch.float64 else "take float64, or "
        raise CallError(
            f"||w|| underflows in {net.w.dtype} at so small an init: {wider}follow the flow, which keeps "
            "logarithms (gradient_flow)"
        )
    moving = net.w.flatten(-2).any(-1) | net.v.any(-1)
    if net.b is not None:
        moving |= net.b.any(-1)
    if not bool(moving.all()):
        least = torch.finfo(net.w.dtype).tiny
        raise CallError(
            f"all weights are 0: no step ever leaves that start; draw weights of {least:.2g} or more, which "
            f"{net.w.dtype} keeps"
        )


def check_classes(k: int, z: Tensor, objective: Objective) -> None:
    """Labels 0 to k-1 of the net's outputs, and the loss that is meant."""
    if z.dtype not in (torch.int32, torch.int64) or int(z.min()) < 0 or int(z.max()) >= k:
        raise CallError(
            f"a multi-class net is trained on subclasses: whole numbers 0 to {k - 1}, int64"
        )
    if objective.loss != "logistic" or objective.smoothing:
        raise CallError(
            "a multi-class net has one loss, softmax cross-entropy: say loss='logistic', without label_smoothing"
        )
