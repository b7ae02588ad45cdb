"""One verb for all: the radius of each point under a classifier, as an interval."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack.norms import L2, Norm, known_norm
from tacit.attack.shortest.minimal import members_of
from tacit.base.checks import check_finite
from tacit.certify.halfspaces import linear_radius, two_neuron_radius
from tacit.certify.interval import Radii, exactly, intersect, stack
from tacit.certify.nearest.radius import nearest_bounds, nearest_radius
from tacit.certify.poly.radius import poly_radius
from tacit.certify.poly.separable import separable_radius
from tacit.certify.relu.merge import merged_radius
from tacit.certify.softmax.bayes import bayes_radius, prop48_centres, prop48_radius
from tacit.certify.softmax.multiclass import multiclass_radius
from tacit.errors import CallError
from tacit.nets import BayesRule, Linear, MultiClassNet, NearestNeighbour, TwoLayerNet

Classifier = Linear | TwoLayerNet | MultiClassNet | BayesRule | NearestNeighbour

MOST_EXACT = 400  # nearest neighbour: up to this many points get a quadratic program each
MOST_SEARCHED = 2000  # two-layer nets that are neither a pair nor orthogonal: branch and bound each


def radius(
    classifier: Classifier,
    x: Float[Tensor, "n D"],
    y: Float[Tensor, " n"],
    *,
    norm: float | str | Norm = 2,
    ties_break: bool = True,
    up_to: float = math.inf,
) -> Radii:
    """How far each point (x, y), y in {-1, +1}, is from being broken (y f <= 0), in l1, l2 or linf.

    In any norm: exact for linear rules and for two neurons of opposite sign (F, f_FA, f_avg); exact up to
    1e-9 for other ReLU nets of few neurons, an interval for wide ones and for PolyReLU nets. In l2 also exact
    for orthogonal neurons (F^(p), f_dec, Frei's net) and for the nearest neighbour of up to 400 points, an
    interval for the Bayes rule, multi-class nets, and more points. With `ties_break=False` f = 0
    does not break (ReLU nets only). The lower end of F^(p) is proved only `up_to` a radius, which takes less time
    (0: not at all). float64.
    """
    x, y = check_points(x, y)
    classifier, norm = sound(classifier), known_norm(norm)
    if not ties_break and not (isinstance(classifier, TwoLayerNet) and classifier.p == 1):
        raise CallError("ties_break=False is told apart only for ReLU nets")
    if norm is not L2 and not isinstance(classifier, Linear | TwoLayerNet):
        raise CallError(
            f"norm {norm.name}: the radius of a {type(classifier).__name__} is known in l2 only"
        )
    match classifier:
        case Linear():
            return linear_radius(classifier.u, classifier.b, x, y, norm)
        case TwoLayerNet():
            return two_layer_radius(classifier, x, y, norm, ties_break=ties_break, up_to=up_to)
        case MultiClassNet():
            return many_class_radius(classifier, x, y)
        case BayesRule():
            return bayes_radius(classifier, x, y)
        case NearestNeighbour():
            few = len(x) <= MOST_EXACT
            return (nearest_radius if few else nearest_bounds)(classifier, x, y)


def two_layer_radius(
    net: TwoLayerNet,
    x: Float[Tensor, "n D"],
    y: Float[Tensor, " n"],
    norm: Norm,
    *,
    ties_break: bool,
    up_to: float,
) -> Radii:
    """By structure: two neurons of opposite sign, orthogonal neurons, anything else."""
    if net.w.dim() > 2:
        return stack(
            [
                two_layer_radius(member, x, y, norm, ties_break=ties_break, up_to=up_to)
                for member in members_of(net)
            ]
        )
    net = without_silent(net)
    if not len(net.v):
        return exactly(torch.zeros_like(y))  # f = 0 everywhere
    constant = bool((net.w.norm(dim=1) == 0).any())
    pair = net.v.sign().tolist() in ([1.0, -1.0], [-1.0, 1.0])
    if net.p == 1 and pair and ties_break and not constant:
        first = 0 if net.v[0] > 0 else 1
        order = [first, 1 - first]
        b = torch.zeros(2, dtype=x.dtype) if net.b is None else net.b[order]
        return two_neuron_radius(x, y, net.w[order], net.v[order].abs(), b, norm)
    known = None
    if norm is L2 and not constant:
        known = separable_radius(net, x, y, ties_break=ties_break, up_to=up_to)
        enough = Radii(known.lower, known.upper.clamp_max(up_to))
        if bool(enough.exact.all()) or len(x) > MOST_SEARCHED:
            return known
    found = searched(net, x, y, norm, ties_break=ties_break)
    return found if known is None else intersect(found, known)


def many_class_radius(net: MultiClassNet, x: Float[Tensor, "n D"], y: Float[Tensor, " n"]) -> Radii:
    """By structure: the net of li2025, Prop. 4.8, or any other; an ensemble member by member."""
    if net.w.dim() > 3:
        return stack([many_class_radius(replace(net, w=w), x, y) for w in net.w])
    find = multiclass_radius if prop48_centres(net) is None else prop48_radius
    return find(net, x, y)


def searched(
    net: TwoLayerNet,
    x: Float[Tensor, "n D"],
    y: Float[Tensor, " n"],
    norm: Norm,
    *,
    ties_break: bool,
) -> Radii:
    """By branch and bound, whatever the directions."""
    if net.p == 1:
        return merged_radius(net, x, y, norm, ties_break=ties_break)
    return poly_radius(net, x, y, norm=norm)


def without_silent(net: TwoLayerNet) -> TwoLayerNet:
    """The net without the neurons that say nothing: v = 0, or w = 0 and no constant (p = 1, b > 0)."""
    still = net.w.norm(dim=1) == 0
    constant = torch.zeros_like(still) if net.b is None or net.p > 1 else still & (net.b > 0)
    heard = (net.v != 0) & (~still | constant)
    return replace(net, w=net.w[heard], v=net.v[heard], b=None if net.b is None else net.b[heard])


def sound(classifier: Classifier) -> Classifier:
    """The classifier in float64; a NaN or inf in its weights is refused, for it would pass every test."""
    tensors = {
        field.name: value
        for field in fields(classifier)
        if isinstance(value := getattr(classifier, field.name), Tensor)
    }
    for name, tensor in tensors.items():
        check_finite(f"{type(classifier).__name__}.{name}", tensor, remedy="no radius can be given")
    doubles: dict[str, Any] = {name: t.to(torch.float64) for name, t in tensors.items()}
    return replace(classifier, **doubles)


def check_points(
    x: Float[Tensor, "n D"], y: Float[Tensor, " n"]
) -> tuple[Float[Tensor, "n D"], Float[Tensor, " n"]]:
    """Finite points, labels of +-1, in float64."""
    check_finite("x", x)
    if not ((y == 1) | (y == -1)).all():
        raise CallError("y: labels are -1 or +1")
    return x.to(torch.float64), y.to(torch.float64)
