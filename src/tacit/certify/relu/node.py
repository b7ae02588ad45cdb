r"""A node of the search for the radius of a ReLU net: one convex set, and half-spaces that hold it.

Weights are folded into the neurons: v relu(z) = sign(v) relu(|v| z). For a point of class y the `own`
neurons have v y > 0, the `opp`osite ones v y < 0, and with z their values at the point,

    y f(x + delta) = constant + sum_own relu(z + <w, delta>) - sum_opp relu(z + <w, delta>).

Only the opposite neurons make {y f <= 0} non-convex. A node puts a line slope * (z + <w, delta>) + offset
above each of them: slope 1 (on), 0 (off), or the chord over the interval that z can reach within a ball.
What is left is convex,

    C = {base + sum_own relu(z + <w, delta>) - sum_opp slope <w, delta> <= 0}.

Since relu(z) >= theta z for every theta in [0, 1], C lies in the half-space c + <g, delta> <= 0 with

    c = base + sum_own theta z,    g = sum_own theta w - sum_opp slope w,

so its distance from 0 is at least c / ||g||_dual: weak duality, true for *any* theta, and equal to the
distance at the best one (strong duality). Solvers look for theta; the certificate is this quotient alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

# of the sum of magnitudes: what float64 may lose in c and g; more in many dimensions
ROUNDING = 1e-14
UNIT = 2.3e-16

DUAL = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}


@dataclass(frozen=True)
class Sides:
    """The neurons as one class sees them, |v| folded in.

    `own_lost`, `opp_lost`: the length of each neuron outside the coordinates used. `rounding`: what a sum loses.
    """

    own: Float[Tensor, "m D"]
    opp: Float[Tensor, "k D"]
    constant: float
    own_lost: Float[Tensor, " m"]
    opp_lost: Float[Tensor, " k"]
    rounding: float


@dataclass(frozen=True)
class Values:
    """The neurons' values at n points, and the size |v| (|b| + ||w|| ||x||) of what each was summed from."""

    own: Float[Tensor, "n m"]
    opp: Float[Tensor, "n k"]
    own_size: Float[Tensor, "n m"]
    opp_size: Float[Tensor, "n k"]

    def at(self, here: Int[Tensor, " M"]) -> Values:
        """Some of the points, any number of times."""
        return Values(self.own[here], self.opp[here], self.own_size[here], self.opp_size[here])


@dataclass(frozen=True)
class Nodes:
    """The convex sets of N nodes: base, the own neurons' values z, the lines' slopes; and the sizes of what
    base and z were summed from."""

    base: Float[Tensor, " N"]
    own: Float[Tensor, "N m"]
    slope: Float[Tensor, "N k"]
    base_size: Float[Tensor, " N"]
    own_size: Float[Tensor, "N m"]

    def at(self, here: Int[Tensor, " M"] | Bool[Tensor, " N"]) -> Nodes:
        """Some of the nodes."""
        return Nodes(
            self.base[here],
            self.own[here],
            self.slope[here],
            self.base_size[here],
            self.own_size[here],
        )


@dataclass(frozen=True)
class Solved:
    """Per node: a distance below which C is not met, its theta, and the nearest point of C (if solved)."""

    bound: Float[Tensor, " N"]
    theta: Float[Tensor, "N m"]
    delta: Float[Tensor, "N D"]


def sides_of(
    own: Float[Tensor, "m D"],
    opp: Float[Tensor, "k D"],
    constant: float,
    axes: Float[Tensor, "D d"] | None = None,
) -> Sides:
    """The neurons in all coordinates, or along orthonormal axes with what is lost outside them."""
    rounding = max(ROUNDING, UNIT * (own.shape[1] + len(own) + len(opp)))
    if axes is None:
        return Sides(own, opp, constant, own.new_zeros(len(own)), opp.new_zeros(len(opp)), rounding)
    (own_in, own_lost), (opp_in, opp_lost) = (
        (w @ axes, (w - w @ axes @ axes.T).norm(dim=1)) for w in (own, opp)
    )
    return Sides(own_in, opp_in, constant, own_lost, opp_lost, rounding)


def lines(
    z: Float[Tensor, "N k"], reach: Float[Tensor, "N k"], state: Shaped[Tensor, "N k"]
) -> tuple[Float[Tensor, "N k"], Float[Tensor, "N k"]]:
    """Slope and offset of a line above relu on [z - reach, z + reach]: the chord, where a neuron is free
    (state 0) and its sign not settled there; on (1) and off (-1) otherwise."""
    low, high = z - reach, z + reach
    on = (state > 0) | ((state == 0) & (low >= 0))
    chord = (state == 0) & (low < 0) & (high > 0)
    slope = torch.where(chord, high / (2 * reach), on.to(z.dtype))
    return slope, torch.where(chord, -slope * low, 0.0)


def nodes_of(
    sides: Sides,
    values: Values,
    slope: Float[Tensor, "N k"],
    offset: Float[Tensor, "N k"],
) -> Nodes:
    """Nodes from the neurons' values at the point and the lines."""
    base = sides.constant - (slope * values.opp + offset).sum(1)
    size = abs(sides.constant) + (slope * values.opp_size + offset).sum(1)
    return Nodes(base, values.own, slope, size, values.own_size)


def halfspace(
    sides: Sides, nodes: Nodes, theta: Float[Tensor, "N m"], norm: float
) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"], Float[Tensor, "N D"]]:
    """The distance to theta's half-space, rounding taken off; c and g themselves."""
    dual = DUAL[norm]
    lost_c = sides.rounding * (nodes.base_size + (theta * nodes.own_size).sum(1))
    c = nodes.base + (nodes.own * theta).sum(1)
    g = theta @ sides.own - nodes.slope @ sides.opp
    sizes = [torch.linalg.vector_norm(w, ord=dual, dim=1) for w in (sides.own, sides.opp)]
    lost_g = sides.rounding * (theta @ sizes[0] + nodes.slope @ sizes[1])
    lost_g = lost_g + theta @ sides.own_lost + nodes.slope @ sides.opp_lost
    length = torch.linalg.vector_norm(g, ord=dual, dim=1) + lost_g
    distance = (c - lost_c).clamp_min(0) / length
    # g = 0, exactly: nothing is on the other side
    distance = torch.where(length > 0, distance, torch.where(c > lost_c, torch.inf, 0.0))
    return distance, c, g
