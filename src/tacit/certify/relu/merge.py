"""Radii of wide ReLU nets: parallel neurons are merged for the search, the certificate is for the given net.

Within ||delta||_2 <= r the members of a group lie within d_k of it (`poly_merge`). With own groups lowered and
opposite ones raised by d_k, and a constant for what was pruned, the merged net is broken wherever the given one
is: its radius, cut at r, is a lower end. The upper end r is the length of a move seen to break the given net.
"""

import math
from dataclasses import replace

import torch

from tacit.attack.norms import L2, Norm
from tacit.attack.shortest.minimal import minimal, moved_on
from tacit.attack.shortest.reduce import Reduced, reduce_net
from tacit.attack.target import TwoLayerTarget
from tacit.base.shapes import Numbers, Rows
from tacit.certify.crown.radius import crown_radius
from tacit.certify.interval import Radii, between
from tacit.certify.poly.merge import merge_shift, pruned_mass
from tacit.certify.relu.radius import relu_radius
from tacit.nets import TwoLayerNet

# in l2, where nodes are cheap, branch and bound takes them as they are, parallel or not
FEW_NEURONS = 12
MOST_NEURONS = 64  # after merging; beyond, branch and bound gives way to one linear relaxation


def merged_radius(
    net: TwoLayerNet, x: Rows, y: Numbers, norm: Norm, *, ties_break: bool = True
) -> Radii:
    """The interval of each point, p = 1, float64; exact to 1e-9 for few neurons, in l2 if parallel too."""
    reduced = reduce_net(net)
    few = norm is L2 and len(net.v) <= FEW_NEURONS
    if few or len(net.v) == len(reduced.net.v) <= MOST_NEURONS or not ties_break:
        return relu_radius(net, x, y, norm=norm.order, ties_break=ties_break)
    attacked = minimal(net, x, y, norm=norm)
    upper, delta = attacked.radius, attacked.delta
    if len(reduced.net.v) > MOST_NEURONS:
        lower = crown_radius(net, x, y, norm=norm.order)
    else:
        lower = torch.zeros_like(upper)
        stretch = math.sqrt(x.shape[1]) if norm.order == math.inf else 1.0
        for sign in (1, -1):
            mine = (y == sign) & torch.isfinite(upper)
            if mine.any():
                worse = worst_net(net, reduced, x[mine], sign, upper[mine] * stretch)
                found = relu_radius(worse, x[mine], y[mine], norm=norm.order)
                lower[mine] = found.lower
                move = moved_on(TwoLayerTarget(net), x[mine], y[mine], norm, None, found.breaking)
                length = norm.size(move)
                nearer = (length > 0) & (length < upper[mine])  # 0: it breaks the merged net alone
                upper[mine] = torch.where(nearer, length, upper[mine])
                delta[mine] = torch.where(nearer.unsqueeze(1), move, delta[mine])
        lost = torch.isinf(upper)
        if lost.any():  # no radius bounds the search: merging cannot be accounted for
            lower[lost] = crown_radius(net, x[lost], y[lost], norm=norm.order)
    return between(lower, upper, delta)


def worst_net(
    net: TwoLayerNet, reduced: Reduced, x: Rows, sign: int, radius: Numbers
) -> TwoLayerNet:
    """A merged net that is broken wherever the given one is, for these points of class `sign` within `radius`."""
    small = reduced.net
    apart = merge_shift(net, reduced, x, radius).amax(0)
    y = torch.full_like(radius, sign)
    lost = pruned_mass(net, reduced, x, y, radius).amax(0, keepdim=True)
    shift = torch.zeros_like(small.v) if small.b is None else small.b
    return replace(
        small,
        w=torch.cat([small.w @ reduced.axes.T, torch.zeros_like(x[:1])]),
        v=torch.cat([small.v, -sign * lost]),
        b=torch.cat([shift - sign * small.v.sign() * apart, torch.ones_like(lost)]),
    )
