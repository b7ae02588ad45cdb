"""One verb for all: the radius of each point under a classifier, as an interval."""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch

from tacit.attack.ball.task import known_labels
from tacit.attack.norms import L2, Norm, known_norm
from tacit.attack.shortest.minimal import minimal
from tacit.attack.shortest.reduce import reduce_net
from tacit.base.checks import check_finite, check_signs
from tacit.base.shapes import Inputs, Labels, Numbers, Rows
from tacit.certify.halfspaces import linear_radius, two_neuron_radius
from tacit.certify.interval import Radii, exactly, intersect, stack
from tacit.certify.logits.radius import logits_radius
from tacit.certify.nearest.radius import nearest_bounds, nearest_radius
from tacit.certify.poly.merge import shifted
from tacit.certify.poly.norm import norm_lower
from tacit.certify.poly.radius import poly_radius
from tacit.certify.poly.separable import separable_radius
from tacit.certify.relu.merge import merged_radius
from tacit.certify.softmax.bayes import bayes_radius, prop48_centres, prop48_radius
from tacit.certify.softmax.multiclass import multiclass_radius
from tacit.certify.symmetric.radius import symmetric_radius
from tacit.errors import CallError
from tacit.nets import (
    BayesRule,
    Head,
    Linear,
    MultiClassNet,
    NearestNeighbour,
    PolyReLUNet,
    SymmetricNet,
    TwoLayerNet,
)
from tacit.nets.head import head_of
from tacit.nets.kinds import asked_of, kind_of
from tacit.nets.tensors import TensorNet

MOST_EXACT = 400  # nearest neighbour: up to this many points get a quadratic program each
MOST_SEARCHED = 2000  # two-layer nets that are neither a pair nor orthogonal: branch and bound each
WORK = 32_000  # points times features of a PolyReLUNet that get a certificate: a minute or two on a core


@dataclass(frozen=True)
class Question:
    """What is asked of a certificate beside net, points and labels.

    `attacked`: where it knows no upper end, look for one by an attack (else inf). `searched`: branch and bound
    may be used. `upper`: upper ends that are known already, which some closed forms need.
    """

    norm: Norm = L2
    ties_break: bool = True
    up_to: float = math.inf
    attacked: bool = True
    searched: bool = True
    upper: Numbers | None = None


def radius(
    classifier: Any,
    x: Inputs,
    y: Labels,
    *,
    norm: float | str | Norm = 2,
    ties_break: bool = True,
    up_to: float = math.inf,
) -> Radii:
    """How far each point (x, y) is from being broken (margin <= 0), in l1, l2 or linf, as its kind registers it.

    y is in {-1, +1} for one output, 0 to C-1 for C logits. In any norm: exact for linear rules and for two
    neurons of opposite sign (F, f_FA, f_avg); exact up to 1e-9 for other ReLU nets of few neurons, an interval
    for wide ones and for PolyReLU nets. In l2 also exact for orthogonal neurons (F^(p), f_dec, Frei's net) and
    for the nearest neighbour of up to 400 points, an interval for the Bayes rule, multi-class nets, and more
    points. Nets with logits, symmetric nets and torch modules have a certified lower and an attacked upper end.
    With `ties_break=False` f = 0 does not break (ReLU nets only). The lower end of F^(p) is proved only `up_to`
    a radius, which takes less time (0: not at all). float64.
    """
    return answered(classifier, x, y, Question(known_norm(norm), ties_break, up_to))


def answered(classifier: Any, x: Inputs, y: Labels, question: Question) -> Radii:
    """The certificate of the classifier's kind, in float64, of an ensemble member by member."""
    check_finite("x", x)
    kind = kind_of(classifier)
    if not question.ties_break and not (kind is not None and kind.ties):
        raise CallError("ties_break=False is told apart only for ReLU nets")
    if isinstance(classifier, TensorNet):
        # a NaN in the weights would pass every test
        classifier.check_finite("no radius can be given")
        classifier = classifier.double()
        if classifier.ensemble:
            return stack([answered(member, x, y, question) for member in classifier.members()])
    return asked_of(classifier, "radius").certificate(classifier, x.to(torch.float64), y, question)


def signed(y: Labels) -> Numbers:
    """Labels of +-1, in float64."""
    check_signs(y)
    return y.to(torch.float64)


def only_l2(net: Any, question: Question) -> None:
    """A call error in other norms."""
    if question.norm is not L2:
        raise CallError(
            f"norm {question.norm.name}: the radius of a {type(net).__name__} is known in l2 only"
        )


def rule_radius(rule: Linear, x: Rows, y: Labels, question: Question) -> Radii:
    """Exact, in any norm."""
    return linear_radius(rule.u, rule.b, x, signed(y), question.norm)


def bayes_rule_radius(rule: BayesRule, x: Rows, y: Labels, question: Question) -> Radii:
    """An interval in l2."""
    only_l2(rule, question)
    return bayes_radius(rule, x, signed(y))


def neighbour_radius(rule: NearestNeighbour, x: Rows, y: Labels, question: Question) -> Radii:
    """Exact in l2 for few points, else an interval."""
    only_l2(rule, question)
    return (nearest_radius if len(x) <= MOST_EXACT else nearest_bounds)(rule, x, signed(y))


def many_class_radius(net: MultiClassNet, x: Rows, y: Labels, question: Question) -> Radii:
    """By structure: the net of li2025, Prop. 4.8, any other of ReLU, or, with other powers, a head."""
    if net.p > 1:
        return head_radius(head_of(net), x, (signed(y) < 0).long(), question)
    only_l2(net, question)
    find = multiclass_radius if prop48_centres(net) is None else prop48_radius
    return find(net, x, signed(y))


def poly_relu_radius(net: PolyReLUNet, x: Rows, y: Labels, question: Question) -> Radii:
    """As a head whose classes are one output each."""
    if len(net.v) == 1:
        raise CallError("the PolyReLUNet has one logit")
    return head_radius(Head(net, torch.arange(len(net.v), device=x.device)), x, y, question)


def head_radius(head: Head, x: Rows, y: Labels, question: Question) -> Radii:
    """Certified from below; from above the shortest perturbation that was found."""
    y, norm = known_labels(y, x, False, int(head.owner.max()) + 1), question.norm
    proved = logits_radius(head.net, x, y, norm=norm, labels=None if head.whole else head.owner)
    if not question.attacked:
        return proved
    found = minimal(head.net if head.whole else head, x, y, norm=norm)
    return Radii(proved.lower, found.radius, found.delta)


def proved_points(net: PolyReLUNet | Head) -> int:
    """How many points of an audit get a certificate: one of 64 features takes 0.1 s, one of 784 seconds."""
    return max(1, WORK // (net.inputs or 1))


def two_layer_radius(net: TwoLayerNet, x: Rows, y: Labels, question: Question) -> Radii:
    """By structure: two neurons of opposite sign, orthogonal neurons, anything else."""
    y, norm, ties_break, up_to = signed(y), question.norm, question.ties_break, question.up_to
    if not ties_break and net.p != 1:
        raise CallError("ties_break=False is told apart only for ReLU nets")
    if not question.searched:
        return closed_form(net, x, y, question)
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
    if net.p == 1:
        found = merged_radius(net, x, y, norm, ties_break=ties_break)
    else:
        found = poly_radius(net, x, y, norm=norm)
    return found if known is None else intersect(found, known)


def smoothed_radius(net: SymmetricNet, x: Rows, y: Labels, question: Question) -> Radii:
    """Certified from below, in any norm; from above the shortest perturbation that was found."""
    proved = symmetric_radius(net, x, signed(y), norm=question.norm)
    if not question.attacked:
        return proved
    found = minimal(net, x, signed(y), norm=question.norm)
    # an upper end below the lower one would be an error of the proof: it is not hidden
    return Radii(proved.lower.to(found.radius), found.radius, found.delta)


def closed_form(net: TwoLayerNet, x: Rows, y: Numbers, question: Question) -> Radii:
    """The lower end of `poly.norm` alone: branch and bound over a hundred neurons takes a minute."""
    if net.p == 1 or net.b is not None or question.norm is not L2:
        raise CallError("a closed form is known for PolyReLU nets (p > 1) without biases, in l2")
    upper = minimal(net, x, y).radius if question.upper is None else question.upper
    reduced, lower = reduce_net(net), torch.zeros_like(upper)
    for sign in (1, -1):
        mine = (y == sign) & (upper > 0)
        problem = shifted(net, reduced, x[mine], sign, upper[mine], 1.0, span=True)
        lower[mine] = norm_lower(problem, L2)
    return Radii(lower, upper)


def without_silent(net: TwoLayerNet) -> TwoLayerNet:
    """The net without the neurons that say nothing: v = 0, or w = 0 and no constant (p = 1, b > 0)."""
    still = net.w.norm(dim=1) == 0
    constant = torch.zeros_like(still) if net.b is None or net.p > 1 else still & (net.b > 0)
    heard = (net.v != 0) & (~still | constant)
    return replace(net, w=net.w[heard], v=net.v[heard], b=None if net.b is None else net.b[heard])
