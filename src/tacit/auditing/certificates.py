"""Each point's radius from below: the certificate that suits the model, or the reason why there is none.

| model                                                       | certificate                                      |
| ----------------------------------------------------------- | ------------------------------------------------ |
| a net or rule of tacit                                      | `tacit.certify.radius`; else CROWN if it is ReLU |
| a PolyReLUNet                                               | `tacit.certify.logits_radius`, of some points    |
| Linear, ReLU, Linear with one output or two, few neurons    | the same, as a two-layer net                     |
| Sequential of ReLU, Linear, Conv2d, ...                     | linear relaxation (CROWN)                        |
| anything else                                               | none: 0                                          |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from tacit.auditing.subject import OURS, moved
from tacit.auditing.task import Task
from tacit.certify.crown.chain import crown_obstacle, flattened
from tacit.certify.crown.radius import crown_radius
from tacit.certify.interval import Radii, at_least
from tacit.certify.logits.radius import logits_radius
from tacit.certify.radius import radius
from tacit.errors import CallError
from tacit.nets import PolyReLUNet, TwoLayerNet

FEW = 24  # hidden neurons of a torch net for which the exact radius is practical
WORK = 32_000  # points times features of a PolyReLUNet that get a certificate: a minute or two on a core


@dataclass(frozen=True)
class Certificate:
    """`radii(x, y)` bounds each point's radius from below (0: no certificate), and from above where it can."""

    name: str
    radii: Callable[[Tensor, Tensor], Radii]


def certificate_of(task: Task, x: Float[Tensor, "n ..."], y: Shaped[Tensor, " n"]) -> Certificate:
    """The certificate for this kind of model, tried on points x; its name says why there is none."""
    model = task.subject.model
    if isinstance(model, PolyReLUNet):
        return of_poly_relu(model, task, x, y)
    net = moved(model, "cpu") if isinstance(model, OURS) else as_two_layer(model)
    candidates: list[Certificate] = []
    if net is not None:
        name = f"radius of a {type(net).__name__} (tacit.certify.radius)"
        candidates.append(Certificate(name, lambda x, y: by_structure(net, task, x, y)))
    obstacle = crown_obstacle(model)
    if obstacle is None:
        name = "linear relaxation (CROWN)"
        candidates.append(Certificate(name, lambda x, y: by_relaxation(task, x, y)))
    reason = obstacle
    for candidate in candidates:
        try:
            candidate.radii(x, y)
        except CallError as error:
            reason = str(error)
        else:
            return candidate
    return Certificate(f"none: {reason}", nothing_proved)


def of_poly_relu(net: PolyReLUNet, task: Task, x: Tensor, y: Tensor) -> Certificate:
    """Lower ends by `logits_radius`, which takes 0.1 s a point of 64 features and seconds a point of 784.

    So only the first right points of an audit get one, as many as `WORK` says; its name tells how many.
    """
    if task.subject.outputs == 1:
        return Certificate("none: the PolyReLUNet has one logit", nothing_proved)

    def proved(x: Tensor, y: Tensor) -> Float[Tensor, " n"]:
        """On the net's device."""
        return logits_radius(net, x.flatten(1), y.long(), norm=task.norm).lower.cpu()

    try:
        proved(x, y)
    except CallError as error:
        return Certificate(f"none: {error}", nothing_proved)
    most = max(1, WORK // net.w.shape[-1])
    left = most

    def radii(x: Tensor, y: Tensor) -> Radii:
        """Nothing is proved of the points beyond the first `most` of all batches."""
        nonlocal left
        found = nothing_proved(x, y)
        here = min(left, len(x))
        left -= here
        if here:
            found.lower[:here] = proved(x[:here], y[:here])
        return found

    name = "lower bounds of a PolyReLUNet (tacit.certify.logits_radius)"
    return Certificate(f"{name}, for the first {most} points that are right", radii)


def by_structure(net: Any, task: Task, x: Tensor, y: Tensor) -> Radii:
    """Both ends from the structure of the net, on the host."""
    signs = y if task.subject.outputs == 1 else 2 * y - 1
    found = radius(net, x.flatten(1).cpu(), signs.to(x.dtype).cpu(), norm=task.norm.order)
    # what breaks the point may lie outside a box
    return found if task.box is None else at_least(found.lower)


def by_relaxation(task: Task, x: Tensor, y: Tensor) -> Radii:
    """The lower end by CROWN."""
    model, norm = task.subject.model, task.norm.order
    return at_least(crown_radius(model, x, y, norm=norm, box=task.box).cpu())


def nothing_proved(x: Tensor, y: Tensor) -> Radii:  # noqa: ARG001
    """No certificate: 0 from below, nothing from above."""
    return at_least(torch.zeros(len(x), dtype=torch.float64))


def as_two_layer(model: Any) -> TwoLayerNet | None:
    """Linear, ReLU, Linear as a two-layer net in float64 on the host; None where the model is something else.

    Of two logits the net is z_1 - z_0. The bias of the output is a neuron with w = 0 and b = 1.
    """
    if not isinstance(model, nn.Module) or crown_obstacle(model) is not None:
        return None
    silent = (nn.Flatten, nn.Identity, nn.Dropout)
    match [part for part in flattened(model) if not isinstance(part, silent)]:
        case [nn.Linear() as first, nn.ReLU(), nn.Linear() as last]:
            if last.out_features > 2 or first.out_features > FEW:
                return None
        case _:
            return None
    w, v = (layer.weight.detach().double().cpu() for layer in (first, last))
    b, c = (
        torch.zeros(layer.out_features, dtype=torch.float64)
        if layer.bias is None
        else layer.bias.detach().double().cpu()
        for layer in (first, last)
    )
    v, c = (v[0], c[0]) if len(v) == 1 else (v[1] - v[0], c[1] - c[0])
    if float(c) == 0:
        return TwoLayerNet(w, v, b)
    one = torch.ones(1, dtype=torch.float64)
    return TwoLayerNet(
        torch.cat([w, torch.zeros_like(w[:1])]), torch.cat([v, c * one]), torch.cat([b, one])
    )
