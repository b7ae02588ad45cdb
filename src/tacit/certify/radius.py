"""One verb for all: the l2 radius of each point under a classifier, as an interval."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.certify.halfspaces import plane_distance, two_neuron_radius
from tacit.certify.interval import Radii, exactly
from tacit.certify.nearest import nearest_bounds, nearest_radius
from tacit.certify.separable import separable_radius
from tacit.certify.softmax import bayes_radius, prop48_radius
from tacit.errors import CallError
from tacit.nets import BayesRule, Linear, MultiClassNet, NearestNeighbour, TwoLayerNet

Classifier = Linear | TwoLayerNet | MultiClassNet | BayesRule | NearestNeighbour

MOST_EXACT = 400  # nearest neighbour: up to this many points get a quadratic program each


def radius(
    classifier: Classifier,
    x: Float[Tensor, "n D"],
    y: Float[Tensor, " n"],
    *,
    ties_break: bool = True,
) -> Radii:
    """How far each point (x, y), y in {-1, +1}, is from being broken (y f <= 0), in l2.

    Exact for linear rules, for two neurons of opposite sign (F, f_FA, f_avg), for orthogonal neurons
    (F^(p) with any p > 1, f_dec, Frei's net) and for the nearest neighbour of up to 400 points;
    an interval for the Bayes rule, the net of li2025 Prop. 4.8, near-orthogonal neurons, and more
    points. With `ties_break=False` f = 0 does not break (orthogonal ReLU neurons only). float64.
    """
    x, y = check_points(x, y)
    classifier = sound(classifier)
    if not ties_break and not (isinstance(classifier, TwoLayerNet) and classifier.p == 1):
        raise CallError(
            "ties_break=False is told apart only for ReLU nets with one neuron a centre"
        )
    match classifier:
        case Linear():
            return exactly(plane_distance(y * classifier(x), classifier.u))
        case TwoLayerNet():
            return two_layer_radius(classifier, x, y, ties_break=ties_break)
        case MultiClassNet():
            return prop48_radius(classifier, x, y)
        case BayesRule():
            return bayes_radius(classifier, x, y)
        case NearestNeighbour():
            few = len(x) <= MOST_EXACT
            return (nearest_radius if few else nearest_bounds)(classifier, x, y)


def two_layer_radius(
    net: TwoLayerNet, x: Float[Tensor, "n D"], y: Float[Tensor, " n"], *, ties_break: bool
) -> Radii:
    """By structure: two neurons of opposite sign, or one neuron a centre."""
    if net.w.dim() > 2:
        members = [
            two_layer_radius(
                TwoLayerNet(w, v, None if net.b is None else net.b[i], net.p),
                x,
                y,
                ties_break=ties_break,
            )
            for i, (w, v) in enumerate(zip(net.w, net.v, strict=True))
        ]
        return Radii(
            *(torch.stack([getattr(m, end) for m in members]) for end in ("lower", "upper"))
        )
    net = without_silent(net)
    pair = net.v.sign().tolist() in ([1.0, -1.0], [-1.0, 1.0])
    if net.p == 1 and pair and ties_break:
        first = 0 if net.v[0] > 0 else 1
        order = [first, 1 - first]
        b = torch.zeros(2, dtype=x.dtype) if net.b is None else net.b[order]
        return exactly(two_neuron_radius(x, y, net.w[order], net.v[order].abs(), b))
    return separable_radius(net, x, y, ties_break=ties_break)


def without_silent(net: TwoLayerNet) -> TwoLayerNet:
    """The net without the neurons that say nothing: v = 0, or w = 0 and no positive bias."""
    still = net.w.norm(dim=1) == 0
    if net.p == 1 and net.b is not None and bool((still & (net.v * net.b.clamp_min(0) != 0)).any()):
        raise CallError(
            "a neuron with w = 0 and b > 0 adds a constant: no exact radius is known here"
        )
    heard = (net.v != 0) & ~still
    return replace(net, w=net.w[heard], v=net.v[heard], b=None if net.b is None else net.b[heard])


def sound(classifier: Classifier) -> Classifier:
    """The classifier in float64; a NaN or inf in its weights is refused, for it would pass every test."""
    tensors = {
        field.name: value
        for field in fields(classifier)
        if isinstance(value := getattr(classifier, field.name), Tensor)
    }
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise CallError(
                f"{type(classifier).__name__}.{name} holds NaN or inf: no radius can be given"
            )
    doubles: dict[str, Any] = {name: t.to(torch.float64) for name, t in tensors.items()}
    return replace(classifier, **doubles)


def check_points(
    x: Float[Tensor, "n D"], y: Float[Tensor, " n"]
) -> tuple[Float[Tensor, "n D"], Float[Tensor, " n"]]:
    """Finite points, labels of +-1, in float64."""
    if not torch.isfinite(x).all():
        raise CallError("x holds NaN or inf: drop or impute those points first")
    if not ((y == 1) | (y == -1)).all():
        raise CallError("y: labels are -1 or +1")
    return x.to(torch.float64), y.to(torch.float64)
