"""The certificate of any model: which there is, in what order they are tried, and what it is called.

| model                                                       | certificate                                      |
| ----------------------------------------------------------- | ------------------------------------------------ |
| a net whose kind registers `certificate`                    | `tacit.certify.radius`; else CROWN if it is ReLU |
| Linear, or Linear, ReLU, Linear with few neurons, and one   | the same, as a linear rule or two-layer net      |
| output or two                                               |                                                  |
| Sequential of ReLU, Linear, Conv2d, ...                     | linear relaxation (CROWN)                        |
| anything else                                               | none                                             |
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tacit.attack.shortest.minimal import minimal
from tacit.base.shapes import Inputs, Labels
from tacit.certify.crown.chain import crown_obstacle, flattened
from tacit.certify.crown.radius import crown_radius
from tacit.certify.interval import Radii, at_least
from tacit.certify.radius import Question, answered
from tacit.errors import CallError
from tacit.nets import Linear, TwoLayerNet
from tacit.nets.kinds import kind_of

FEW = 24  # hidden neurons of a torch net for which the exact radius is practical


@dataclass(frozen=True)
class Certificate:
    """`radii(x, y)` bounds the radius of each point from both sides (inf from above where it does not know).

    It raises a call error where it does not fit the points. `points`: how many are sensible, where one takes
    long.
    """

    name: str
    radii: Callable[[Inputs, Labels], Radii]
    points: int | None = None


def chosen(
    model: Any, x: Inputs, y: Labels, question: Question, box: tuple[float, float] | None = None
) -> tuple[Certificate | None, Radii | None, str]:
    """The first certificate that can say something of these points, and what it says; else why none can."""
    obstacle = crown_obstacle(model)
    relaxed = Certificate("linear relaxation (CROWN)", _relaxed(model, question, box))
    reason = obstacle or ""
    for certificate in (_by_kind(model, question, box), None if obstacle else relaxed):
        try:
            if certificate is not None:
                return certificate, certificate.radii(x, y), ""
        except CallError as error:
            reason = str(error)
    return None, None, reason


def module_radius(model: nn.Module, x: Inputs, y: Labels, question: Question) -> Radii:
    """`tacit.certify.radius` of a torch module: the first certificate that fits, and an attack from above."""
    certificate, ends, reason = chosen(model, x, y, question)
    if certificate is None or ends is None:
        raise CallError(f"radius: no certificate of this {type(model).__name__}: {reason}")
    if question.attacked and bool(ends.upper.isinf().all()):
        dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), x.dtype)
        found = minimal(model, x.to(dtype), y, norm=question.norm)
        return Radii(ends.lower, found.radius.to(ends.lower))
    return ends


def _by_kind(model: Any, question: Question, box: tuple[float, float] | None) -> Certificate | None:
    """By the structure of the net, or of a simpler one that computes the same."""
    kind = kind_of(model)
    if kind is None:
        return None
    simple = None if kind.structure is None else kind.structure(model)
    if simple is None and kind.certificate in (None, module_radius):
        return None
    net = model if simple is None else simple
    points = None if kind.proved_points is None else kind.proved_points(model)

    def radii(x: Inputs, y: Labels) -> Radii:
        """On the host, but for those that take long."""
        here, rows, labels = net, x.flatten(1), y
        if points is None:
            here, rows, labels = net.to("cpu"), rows.cpu(), y.cpu()
        if simple is not None:  # of two logits 0 and 1 it is the sign that the simpler net gives
            labels = torch.where(labels == 0, -1, labels)
        found = answered(here, rows, labels, question)
        # what breaks the point may lie outside a box
        lower = found.lower.cpu()
        return Radii(lower, found.upper.cpu()) if box is None else at_least(lower)

    what = "radius" if points is None else "lower bounds"
    return Certificate(f"{what} of a {type(net).__name__} (tacit.certify.radius)", radii, points)


def _relaxed(
    model: Any, question: Question, box: tuple[float, float] | None
) -> Callable[[Tensor, Tensor], Radii]:
    def radii(x: Inputs, y: Labels) -> Radii:
        """The lower end."""
        return at_least(crown_radius(model, x, y, norm=question.norm.order, box=box).cpu())

    return radii


def simpler_net(model: nn.Module) -> Linear | TwoLayerNet | None:
    """Linear as a rule; Linear, ReLU, Linear as a two-layer net, in float64 on the host; None for anything else.

    Of two logits the net is z_1 - z_0. The bias of the output is a neuron with w = 0 and b = 1.
    """
    if crown_obstacle(model) is not None:
        return None
    silent = (nn.Flatten, nn.Identity, nn.Dropout)
    match [part for part in flattened(model) if not isinstance(part, silent)]:
        case [nn.Linear() as last] if last.out_features <= 2:
            v, c = _one_output(last)
            return Linear(v, float(c))
        case [nn.Linear() as first, nn.ReLU(), nn.Linear() as last]:
            if last.out_features > 2 or first.out_features > FEW:
                return None
        case _:
            return None
    (w, b), (v, c) = _weights(first), _one_output(last)
    if float(c) == 0:
        return TwoLayerNet(w, v, b)
    one = torch.ones(1, dtype=torch.float64)
    return TwoLayerNet(
        torch.cat([w, torch.zeros_like(w[:1])]), torch.cat([v, c * one]), torch.cat([b, one])
    )


def _weights(layer: nn.Linear) -> tuple[Float[Tensor, "h D"], Float[Tensor, " h"]]:
    """Weights and biases in float64 on the host."""
    w = layer.weight.detach().double().cpu()
    return w, torch.zeros_like(w[:, 0]) if layer.bias is None else layer.bias.detach().to(w)


def _one_output(layer: nn.Linear) -> tuple[Float[Tensor, " h"], Float[Tensor, ""]]:
    """The weights and the bias of the output; of two outputs the second less the first."""
    v, c = _weights(layer)
    return (v[0], c[0]) if len(v) == 1 else (v[1] - v[0], c[1] - c[0])
