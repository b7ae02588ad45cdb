"""A feed-forward net as a chain of affine steps and ReLUs, in float64: what `crown.py` can bound.

An affine step is a torch module with module(z) = L z + c for each point on its own. Its transpose L'
is needed, never L itself: a product with the weights for `Linear`, the vector-Jacobian product of torch for
everything else (convolution, average pooling, batch normalisation with its running statistics).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tacit.errors import CallError
from tacit.nets import TwoLayerNet
from tacit.nets.kinds import kind_of

DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
AFFINE = (
    nn.Linear,
    nn.Flatten,
    nn.Unflatten,
    nn.Identity,
    nn.Conv1d,
    nn.Conv2d,
    nn.AvgPool1d,
    nn.AvgPool2d,
    nn.AdaptiveAvgPool2d,
    nn.ZeroPad2d,
    *DROPOUTS,
    *BATCH_NORMS,
)


@dataclass(frozen=True)
class Chain:
    """Steps in order; `shapes[i]` enters step i (without the batch), the last shape leaves the net.

    `shift[i]` is c of an affine step, None where it is 0 and for a ReLU.
    """

    steps: tuple[nn.Module, ...]
    shapes: tuple[torch.Size, ...]
    shift: tuple[Tensor | None, ...]

    def __call__(self, x: Tensor) -> Float[Tensor, "n k"]:
        """The net's outputs, one column for a one-output net."""
        for step in self.steps:
            x = x.clamp_min(0) if isinstance(step, nn.ReLU) else step(x)
        return x.flatten(1) if x.dim() > 1 else x.unsqueeze(1)

    @property
    def outputs(self) -> int:
        """How many numbers leave the net."""
        return self.shapes[-1].numel()

    @property
    def width(self) -> int:
        """The most numbers between two steps."""
        return max(shape.numel() for shape in self.shapes)

    def pull(self, i: int, a: Float[Tensor, "b s ..."]) -> Float[Tensor, "b s ..."]:
        """L'a for affine step i: coefficients of what leaves the step, to those of what enters it."""
        step, shape = self.steps[i], self.shapes[i]
        if isinstance(step, nn.Linear):
            return a @ step.weight
        transpose = torch.func.vjp(step, a.new_zeros(a.shape[0] * a.shape[1], *shape))[1]
        (back,) = transpose(a.flatten(0, 1))
        return back.reshape(*a.shape[:2], *shape)

    def rows(
        self, i: int, part: Int[Tensor, " s"]
    ) -> tuple[int, Float[Tensor, "1 s ..."], Float[Tensor, "1 s"]]:
        """Some numbers that enter step i as <a, z> + const of what enters an earlier step: (that step, a, const).

        A row of weights is at hand where a unit vector times the weights would cost a matrix product.
        """
        before, shape = i - 1, self.shapes[i]
        if i > 0 and isinstance(step := self.steps[before], nn.Linear) and len(shape) == 1:
            bias = self.shift[before]
            const = step.weight.new_zeros(len(part)) if bias is None else bias[part]
            return before, step.weight[part].unsqueeze(0), const.unsqueeze(0)
        unit = torch.zeros(len(part), shape.numel(), dtype=torch.float64, device=part.device)
        unit[torch.arange(len(part)), part] = 1
        return i, unit.reshape(1, len(part), *shape), unit.new_zeros(1, len(part))


def crown_obstacle(model: object) -> str | None:
    """Why CROWN bounds cannot be had for this model, in one line; None where they can.

    Understood: `TwoLayerNet` with p = 1, and `Sequential` (nested too) of ReLU, Linear, Flatten, Unflatten,
    Identity, Conv1d/2d, AvgPool1d/2d, AdaptiveAvgPool2d, ZeroPad2d, and in eval mode Dropout and BatchNorm.
    A module with its own `forward` is opaque: nothing says in which order its parts are used.
    """
    model = as_modules(model)
    if isinstance(model, str):
        return model
    if not (is_plain(model, nn.Sequential) or is_plain(model, nn.ReLU) or is_affine(model)):
        return f"{type(model).__name__} is not among the modules that CROWN understands"
    for part in model.children() if is_plain(model, nn.Sequential) else ():
        if (reason := crown_obstacle(part)) is not None:
            return reason
    if isinstance(model, (*DROPOUTS, *BATCH_NORMS)) and model.training:
        return f"{type(model).__name__} in train mode: call model.eval() first"
    if isinstance(model, BATCH_NORMS) and model.running_mean is None:
        return f"{type(model).__name__} without running statistics mixes the points of a batch"
    return None


def is_affine(module: nn.Module) -> bool:
    """Whether the module is one of AFFINE and nothing more."""
    return any(is_plain(module, kind) for kind in AFFINE)


def is_plain(module: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether the module computes what `kind` computes: no forward of its own, no hooks."""
    if not isinstance(module, kind):  # a traced module has no forward to compare
        return False
    hooks = bool(module._forward_hooks or module._forward_pre_hooks)
    own = "forward" in vars(module) or type(module).forward is not kind.forward
    return not own and not hooks


def as_modules(model: Any) -> nn.Module | str:
    """A module itself, a net as its kind registers it, or why there is none."""
    kind = kind_of(model)
    made = None if kind is None else kind.relaxed
    return f"{type(model).__name__} is not a torch module" if made is None else made(model)


def itself(module: nn.Module) -> nn.Module:
    """How a torch module is relaxed."""
    return module


def sequential_of(net: TwoLayerNet) -> nn.Sequential | str:
    """The same ReLU net as Linear, ReLU, Linear, in its own dtype."""
    if net.p != 1:
        return f"a two-layer net with p={net.p:g}: linear relaxations are for ReLU (p = 1)"
    if net.ensemble:
        return f"an ensemble of shape {net.ensemble}: bound one member at a time"
    h, D = net.w.shape
    first = nn.Linear(D, h, bias=net.b is not None)
    last = nn.Linear(h, 1, bias=False)
    first.weight, last.weight = nn.Parameter(net.w), nn.Parameter(net.v.unsqueeze(0))
    if net.b is not None:
        first.bias = nn.Parameter(net.b)
    return nn.Sequential(first, nn.ReLU(), last)


def chain_of(model: Any, x: Float[Tensor, "n ..."]) -> Chain:
    """The model as a chain for points shaped like x, in float64 on the device of x; the model is copied."""
    if (reason := crown_obstacle(model)) is not None:
        raise CallError(f"no CROWN bound: {reason}")
    module: Any = as_modules(model)
    module = copy.deepcopy(module).to(x.device, torch.float64).requires_grad_(False)
    steps = tuple(flattened(module))
    # two points at zero: a step that mixes the points of a batch shows, and module(0) is the shift
    z = torch.zeros(2, *x.shape[1:], dtype=torch.float64, device=x.device)
    shapes, shifts = [z.shape[1:]], []
    for step in steps:
        z, before = apply(step, torch.zeros_like(z)), z
        if not z.shape or z.shape[0] != 2 or z[0].numel() * before[0].numel() == 0:
            raise CallError(
                f"no CROWN bound: {step} turns points of shape {tuple(before.shape[1:])} into a batch of shape "
                f"{tuple(z.shape)}, so points are mixed or lost; keep dimension 0 for the batch"
            )
        shapes.append(z.shape[1:])
        shifts.append(z[0] if z.any() else None)
    if len(shapes[-1]) > 1:
        raise CallError(
            f"no CROWN bound: the outputs have shape {tuple(shapes[-1])} a point; one number or a row of "
            "logits is needed (end with Flatten)"
        )
    return Chain(steps, tuple(shapes), tuple(shifts))


def apply(step: nn.Module, z: Tensor) -> Tensor:
    """step(z), with a word on shapes that do not fit."""
    try:
        return step(z)
    except (RuntimeError, ValueError, IndexError) as error:
        raise CallError(
            f"no CROWN bound: {step} does not take points of shape {tuple(z.shape[1:])}; "
            "give x with the shape that the model expects"
        ) from error


def flattened(module: nn.Module) -> list[nn.Module]:
    """The steps of nested Sequentials in order."""
    if isinstance(module, nn.Sequential):
        return [step for part in module for step in flattened(part)]
    return [module]
