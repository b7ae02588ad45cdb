r"""Radii of two-layer nets with one neuron a centre: exact for orthogonal neurons, else an interval.

With U the unit normals of the neurons (rows) a perturbation delta moves the projections by U delta. For
orthonormal rows every move t of the projections costs ||t||, and the separable problems of `power`
(p > 1, no biases) and `decoupled` (p = 1, biases) are the whole truth; for p >= 2 the lower end is
what `poly_cells` proves, a few 1e-9 below the move found; for 1 < p < 2 it is a bound that is tight at the
centres only, for the scan may miss the shortest move (seen at p = 1.5, .3% too long). Otherwise
||delta|| >= ||U delta|| / sigma_max(U): the separable radius over sigma_max bounds from below, and the
attack along the least-norm delta with U delta = t from above. At p = 1 with unequal weights in a class, the
least own and the largest opposite weight give a net that is broken wherever this one is: again a bound.
"""

import math
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack import first_crossing
from tacit.base.linalg import span_axes
from tacit.base.shapes import Numbers, Rows
from tacit.certify.interval import Radii
from tacit.certify.poly.cells import below_two, power_lower
from tacit.certify.poly.curve import Separable
from tacit.certify.poly.decoupled import decoupled_radius
from tacit.certify.poly.power import Shortest, normalised, power_radius
from tacit.errors import CallError
from tacit.nets import TwoLayerNet

ORTHOGONAL = 1e-10  # largest cosine between neurons that counts as rounding
EQUAL = 1e-9  # largest relative difference of weights, likewise
REACH = 4.0


def separable_radius(
    net: TwoLayerNet, x: Rows, y: Numbers, *, ties_break: bool = True, up_to: float = math.inf
) -> Radii:
    """The radius of each point; one net, of one neuron or more, none of them zero.

    For p > 1 the lower end is proved only `up_to` a radius.
    """
    axes = span_axes(net.w / net.w.norm(dim=1, keepdim=True))
    x, net = x @ axes, replace(net, w=net.w @ axes)
    norm = net.w.norm(dim=1)
    unit = net.w / norm.unsqueeze(1)
    shift = torch.zeros_like(norm) if net.b is None else net.b / norm
    exact = bool((unit @ unit.T - torch.eye(len(unit), dtype=x.dtype)).abs().max() <= ORTHOGONAL)
    square, proved = torch.zeros_like(y), torch.zeros_like(y)
    move = torch.zeros(len(x), len(norm), dtype=x.dtype)
    for sign in (1, -1):
        mine = (y * sign > 0).nonzero().squeeze(1)
        own, opp = (net.v * s > 0 for s in (sign, -sign))
        # v relu(<w,x>+b)^p / |w|^(p-1) = v |w| relu(<unit,x> + shift)^p
        weight = net.v.abs() * norm
        projections = x[mine] @ unit.T + shift
        if net.p > 1:
            if net.b is not None and bool((net.b != 0).any()):
                raise CallError(
                    "PolyReLU with biases: no exact radius is known here; drop the biases or attack"
                )
            task = Separable(
                projections[:, own], projections[:, opp], weight[own], weight[opp], net.p
            )
            best = power_radius(task.own, task.opp, task.A_own, task.A_opp, net.p)
            goal = replace(best, square=best.square.clamp_max(up_to**2))
            if up_to > 0:
                proved[mine] = power_lower(task, goal) if net.p >= 2 else some_lower(task, goal)
        else:
            a = float(weight[own].min()) if own.any() else 1.0
            b = float(weight[opp].max()) if opp.any() else 1.0
            best = decoupled_radius(
                projections[:, own], projections[:, opp], a, b, ties_break=ties_break
            )
            exact &= spread_of(weight[own]) <= EQUAL and spread_of(weight[opp]) <= EQUAL
            proved[mine] = best.square
        square[mine] = best.square
        move[mine] = together(best, own, opp)
    radius = Radii(proved.sqrt(), square.sqrt())
    return radius if exact else stretched(net, x, y, unit, radius.lower, move, ties_break)


def stretched(
    net: TwoLayerNet,
    x: Rows,
    y: Numbers,
    unit: Float[Tensor, "h D"],
    radius: Numbers,
    move: Float[Tensor, "n h"],
    ties_break: bool,
) -> Radii:
    """The interval where the separable solution is not the whole truth."""
    crossing = partial(first_crossing, net, ties_break=ties_break)
    margin = y * net(x)
    broken = margin <= 0 if ties_break else margin < 0
    lower = radius / torch.linalg.matrix_norm(unit, 2)
    inverse = torch.linalg.pinv(unit)
    upper = crossing(x, y, move @ inverse.T, REACH)
    # towards each neuron of the other sign: a net with dependent neurons may not follow `move`
    for sign in (1, -1):
        mine = (y * sign > 0).nonzero().squeeze(1)
        for neuron in net.w[net.v * sign < 0]:
            ray = neuron.expand(len(mine), -1) - x[mine]
            upper[mine] = torch.minimum(upper[mine], crossing(x[mine], y[mine], ray))
    return Radii(lower, upper).unless(broken)


def together(best: Shortest, own: Tensor, opp: Tensor) -> Float[Tensor, "n h"]:
    """Moves of own and opposite neurons in the net's order."""
    move = torch.zeros(len(best.square), len(own), dtype=best.own.dtype)
    move[:, own], move[:, opp] = best.own, best.opp
    return move


def some_lower(task: Separable, best: Shortest) -> Numbers:
    """1 < p < 2: `below_two`, in the units of the task."""
    if not task.own.shape[1]:
        return torch.zeros_like(best.square)
    if not task.opp.shape[1]:
        return best.square  # only the end is left, and it is exact
    unit, size, _ = normalised(task)
    return torch.minimum(below_two(unit) * size.squeeze(1) ** 2, best.square)


def spread_of(weight: Float[Tensor, " k"]) -> float:
    """Relative difference between the largest and the smallest weight."""
    return float(weight.max() / weight.min() - 1) if len(weight) else 0.0
