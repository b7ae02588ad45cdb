"""Does a model average features? Cosines of its neurons with class means against subclass means.

A ReLU net trained by gradient flow turns its neurons to the class means, a PolyReLU net to the centres of the
subclasses (min2024, Section 3; li2025, Section 4). A neuron at a class mean of m orthogonal subclasses has cosine
1 with it and 1/sqrt(m) with each subclass mean, one at a subclass mean the other way round. Here each neuron's
largest cosine with a class mean, and with a subclass mean, are averaged over neurons by mass, |v_j| ||w_j||.

The neurons: hidden weights w of tacit's nets (of a PolyReLU net, where the points are centred first, the mass is
||w_j|| times the norm of column j of v); of a torch module the rows of its first Linear layer where that
reads the input itself (mass: times the norm of what the next Linear layer gives it), else the rows of its last
Linear layer, with the means taken of the features it reads.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tacit.auditing.subject import Subject
from tacit.base.shapes import Index, Inputs, Labels, Rows
from tacit.measure.averaging import nearness
from tacit.measure.subclasses import find_subclasses
from tacit.nets import Head, MultiClassNet, PolyReLUNet, TwoLayerNet
from tacit.nets.kinds import kind_of
from tacit.nn.poly_head import PolyHeadResNet18

NEAR = 0.5  # a mean cosine below this is near nothing
APART = 0.05  # a difference of mean cosines below this decides nothing


@dataclass(frozen=True)
class Averaging:
    """What was compared and what came out; `verdict` is averages, subclasses, neither or unknown."""

    verdict: str
    reason: str
    neurons: int = 0
    of: str | None = None
    class_cosine: float | None = None
    subclass_cosine: float | None = None
    subclasses: tuple[int, ...] = ()
    found_by: str | None = None


@dataclass(frozen=True)
class Neurons:
    """Rows w (h, D) with masses (h,), the layer whose input they live in (None: the model's, less `origin`)."""

    w: Float[Tensor, "h D"]
    mass: Float[Tensor, " h"]
    layer: nn.Module | None
    name: str
    origin: Float[Tensor, " D"] | None = None


def averaging(
    subject: Subject, x: Inputs, y: Labels, subclass: Index | None, batch: int
) -> Averaging:
    """Whether the neurons point at class means or at subclass means of the points x."""
    neurons = neurons_of(subject.model, subject.shape)
    if isinstance(neurons, str):
        return Averaging("unknown", neurons)
    features = _inputs_of(subject, neurons, x, batch)
    if features is None or features.shape[1] != neurons.w.shape[1]:
        return Averaging("unknown", "the last Linear layer reads no single vector a point")
    if subclass is None:
        generator = torch.Generator().manual_seed(0)
        groups, found_by = find_subclasses(features, y, generator), "spherical k-means"
    else:
        groups, found_by = subclass, "given"
    return compared(neurons, features, y, groups, found_by)


def compared(
    neurons: Neurons, features: Rows, y: Labels, groups: Index, found_by: str
) -> Averaging:
    """Mean largest cosines with class means and with subclass means, and what they say."""
    near = nearness(neurons.w, neurons.mass, features, y, groups)
    several = max(near.subclasses) > 1
    verdict, reason = judged(near.to_class, near.to_subclass, several=several, found_by=found_by)
    return Averaging(
        verdict, reason, len(neurons.w), neurons.name, near.to_class, near.to_subclass,
        near.subclasses, found_by,
    )  # fmt: skip


def judged(to_class: float, to_subclass: float, *, several: bool, found_by: str) -> tuple[str, str]:
    """The verdict and its reason, from the two mean cosines."""
    if not several:
        return (
            "unknown",
            f"no class has more than one subclass ({found_by}): there is nothing to tell apart",
        )
    if max(to_class, to_subclass) < NEAR:
        return "neither", f"both mean cosines are below {NEAR}"
    if abs(to_class - to_subclass) < APART:
        return "unknown", f"the mean cosines differ by less than {APART}"
    if to_class > to_subclass:
        return "averages", "neurons are nearer to class means than to subclass means"
    return "subclasses", "neurons are nearer to subclass means than to class means"


def neurons_of(model: Any, shape: tuple[int, ...]) -> Neurons | str:
    """The model's neurons, as its kind registers them, or the reason why there are none to look at."""
    kind = kind_of(model)
    if kind is None or kind.hidden_weights is None:
        return f"a {type(model).__name__} has no hidden weights at hand"
    return kind.hidden_weights(model, shape)


def two_layer_neurons(net: TwoLayerNet, _shape: tuple[int, ...]) -> Neurons | str:
    """w, with mass |v_j| ||w_j||."""
    return weighted(net.w, net.v.abs() * net.w.norm(dim=1))


def multi_class_neurons(net: MultiClassNet, _shape: tuple[int, ...]) -> Neurons | str:
    """The neurons of all subclasses."""
    w = net.w.flatten(0, 1)
    return weighted(w, w.norm(dim=1))


def poly_relu_neurons(net: PolyReLUNet, _shape: tuple[int, ...]) -> Neurons | str:
    """w among the centred points, with mass ||w_j|| times the norm of column j of v."""
    return weighted(net.w, net.v.norm(dim=0) * net.w.norm(dim=1), origin=net.centre)


def head_neurons(head: Head, shape: tuple[int, ...]) -> Neurons | str:
    """Those of its net."""
    return poly_relu_neurons(head.net, shape)


def module_neurons(model: nn.Module, shape: tuple[int, ...]) -> Neurons | str:
    """The rows of the first Linear layer where it reads the input, else of the last."""
    owners = [part for part in model.modules() if list(part.parameters(recurse=False))]
    linear = [layer for layer in owners if isinstance(layer, nn.Linear)]
    if not linear:
        return "the model has no Linear layer"
    first = linear[0]
    if len(linear) > 1 and first is owners[0] and first.in_features == math.prod(shape):
        mass = first.weight.norm(dim=1)
        if linear[1].in_features == first.out_features:
            mass = mass * linear[1].weight.norm(dim=0)
        return weighted(first.weight, mass, name="first layer's weights")
    w = linear[-1].weight
    return weighted(w, w.norm(dim=1), linear[-1], name="last layer's weights, among its features")


def poly_head_neurons(model: PolyHeadResNet18, _shape: tuple[int, ...]) -> Neurons | str:
    """The PolyReLU layer's, among the centred features that it reads, with mass as of a PolyReLU net."""
    w = model.poly.weight
    mass = w.norm(dim=1) * model.head.weight.norm(dim=0)
    return weighted(w, mass, model.poly, name="PolyReLU layer's weights, among its features")


def weighted(
    w: Float[Tensor, "h D"],
    mass: Float[Tensor, " h"],
    layer: nn.Module | None = None,
    *,
    name: str = "hidden weights",
    origin: Float[Tensor, " D"] | None = None,
) -> Neurons | str:
    """The neurons in float64 on the host, their masses as shares."""
    w, mass = w.detach().double().cpu(), mass.detach().double().cpu()
    if not float(mass.sum()) > 0:
        return "all neurons have no mass"
    origin = None if origin is None else origin.double().cpu()
    return Neurons(w, mass / mass.sum(), layer, name, origin)


def _inputs_of(subject: Subject, neurons: Neurons, x: Inputs, batch: int) -> Rows | None:
    """What the layer reads at each point (the points themselves where there is no layer); None if no rows."""
    if neurons.layer is None:
        rows = x.flatten(1).double()
        return rows if neurons.origin is None else rows - neurons.origin
    seen: list[Tensor] = []
    hook = neurons.layer.register_forward_pre_hook(
        lambda _, inputs: seen.append(inputs[0].detach().cpu())
    )
    try:
        for part in x.split(batch):
            subject.scores(part.to(subject.device, subject.dtype))
    finally:
        hook.remove()
    single = all(part.dim() == 2 for part in seen) and sum(map(len, seen)) == len(x)
    return torch.cat(seen).double() if single else None
