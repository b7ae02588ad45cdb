r"""Certified radii of PolyReLU nets as they are given: any directions, any number of neurons, l1, l2 and linf.

The upper end is a perturbation that was seen to break (`attack.minimal`, or x itself: f(0) = 0 breaks). The lower
end is proved, in this order and only where the interval is still open:

1. parallel neurons are merged, and what that changes over the ball is added (`poly_merge`);
2. l2, p >= 2: a closed form (`poly_norm`), and the separable minorant (`poly_tangent`), tight where
   directions are near-orthogonal;
3. branch and bound (`poly_tree`), in any norm.

**Critical radii at the centres** (alpha = 0; orthonormal centres along the coordinate axes, K1 of the point's
class and K2 of the other), broken being f <= 0. With q the exponent of the norm's dual and e the move of one
axis:

|        | F (p = 1: class sums)      | F^(p), p >= 2                      | f_dec (thresholds 1/2)          |
| ------ | -------------------------- | ---------------------------------- | ------------------------------- |
| l2     | 1 / sqrt(K1 + K2)          | 1 / sqrt(2)                        | 1/2 (own neuron off)            |
| l1     | 1                          | 1                                  | 1/2                             |
| linf   | 1 / (K1 + K2)              | 1 / (1 + K2^(1/p))                 | 1/2                             |

F: {<S+ - S-, x> <= 0}, the margin 1 over the dual norm of the normal (+-1 on K axes); the other half-space, S+
x <= 0, is farther. F^(p), linf: all own coordinates fall to 1 - e (the others go below 0) and all opposite ones
rise to e, (1 - e)^p = K2 e^p. l1: (1 - a)^p <= sum b_k^p with a + sum b least: for p >= 1 the sum is convex in
b, so one b = 1 - a, and the cost is 1 for every a. l2: the same with a^2 + b^2, a = b = 1/2, p >= 2. For p < 2
opposite neurons rise together in l2: with q = K2^(1 - 2/p) the square is q / (1 + q). f_dec: switching the own
neuron off moves one axis by 1/2; f = 0 there, and the opposite neurons are off until theirs has moved by 1/2
too.
"""

import math

import torch

from tacit.attack.norms import Norm, known_norm
from tacit.attack.shortest.minimal import minimal
from tacit.attack.shortest.reduce import Reduced, reduce_net
from tacit.base.checks import check_finite, check_signs
from tacit.base.shapes import Numbers, Rows
from tacit.certify.interval import Radii, between
from tacit.certify.poly.merge import shifted
from tacit.certify.poly.norm import norm_lower
from tacit.certify.poly.tangent import tangent_lower
from tacit.certify.poly.tree import tree_lower
from tacit.errors import CallError
from tacit.nets import TwoLayerNet

BUDGET = 2000  # nodes a point


def poly_radius(
    net: TwoLayerNet, x: Rows, y: Numbers, *, norm: float | str | Norm = 2, budget: int = BUDGET
) -> Radii:
    """The radius of each point (x, y), y in {-1, +1}, in `norm`, as a proved interval; float64, p > 1, no biases.

    `budget` is the number of nodes that branch and bound may spend on a point: where it ends the
    interval is what was proved so far.
    """
    norm = known_norm(norm)
    check(net, x, y, budget)
    x, y = x.to(torch.float64), y.to(torch.float64)
    net = TwoLayerNet(net.w.to(torch.float64), net.v.to(torch.float64), p=net.p)
    upper, delta = breaking(net, x, y, norm)
    reduced = reduce_net(net)
    lower = torch.zeros_like(upper)
    for sign in (1, -1):
        mine = ((y == sign) & (upper > 0)).nonzero().squeeze(1)
        if len(mine):
            lower[mine] = one_class(
                net, reduced, x[mine], sign, upper[mine], delta[mine], norm, budget
            )
    return between(lower, upper, delta)


def one_class(
    net: TwoLayerNet,
    reduced: Reduced,
    x: Rows,
    sign: int,
    upper: Numbers,
    delta: Rows,
    norm: Norm,
    budget: int,
) -> Numbers:
    """The lower ends of points of one class that are not broken already."""
    flat = norm.order == 2
    stretch = math.sqrt(x.shape[1]) if norm.order == math.inf else 1.0
    problem = shifted(net, reduced, x, sign, upper, stretch, span=flat)
    lower = norm_lower(problem, norm)
    if flat:
        delta = delta @ reduced.axes
        if net.p >= 2:
            lower = torch.maximum(lower, tangent_lower(problem, delta))
    return tree_lower(problem, norm, delta, lower, budget)


def breaking(net: TwoLayerNet, x: Rows, y: Numbers, norm: Norm) -> tuple[Numbers, Rows]:
    """The shortest breaking perturbation found, no longer than -x (f(0) = 0)."""
    found = minimal(net, x, y, norm=norm)
    size = norm.size(x)
    to_zero = found.radius > size
    return torch.minimum(found.radius, size), torch.where(to_zero.unsqueeze(1), -x, found.delta)


def check(net: TwoLayerNet, x: Rows, y: Numbers, budget: int) -> None:
    """One net without biases, p > 1, finite numbers, labels of +-1."""
    if net.w.dim() != 2:
        raise CallError("an ensemble is certified member by member: pass one net at a time")
    if net.p <= 1:
        raise CallError(f"p={net.p:g}: a ReLU net has exact radii, see `radius`; here p > 1")
    if net.b is not None and bool((net.b != 0).any()):
        raise CallError(
            "PolyReLU with biases: no certificate is known here; drop the biases or attack"
        )
    check_finite("the net", net.w, net.v, remedy="no radius can be given")
    check_finite("x", x)
    check_signs(y)
    if budget < 1:
        raise CallError(f"budget={budget}: branch and bound needs at least one node a point")
