"""Exact radii, in any norm, of classifiers whose broken set is one half-space, or two.

**Linear** f = <u, x> + b: the distance to the plane, y f / dual(u).

**Two neurons of opposite sign**, f = a+ relu(z+) - a- relu(z-), z = <w, x> + b (F of min2024, f_FA and
f_avg of li2025, with any biases and at any angle). For a positive point f <= 0 means z+ <= 0, or
0 < a+ z+ <= a- z-. Conversely a+ z+ <= a- z- with z+ > 0 forces z- > 0, and with z+ <= 0 it is covered
by the first. So the broken set is a union of two half-spaces,

    {z+ <= 0}  and  {a+ z+ - a- z- <= 0},

and the radius is the smaller of the two distances. A negative point is the mirror image. At the
centres of orthonormal clusters this is min(1/sqrt(K1), 1/sqrt(K)) = 1/sqrt(K).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack.norms import L2, Norm


def plane_distance(
    excess: Float[Tensor, " n"], normal: Float[Tensor, " D"], norm: Norm = L2
) -> Float[Tensor, " n"]:
    """Distance to {z <= 0} where z = `excess` and grad z = `normal`: 0 inside, inf if never reached.

    By Hoelder's inequality z falls by at most dual(normal) a unit of the norm, along one direction by just that.
    """
    size = norm.dual(normal.unsqueeze(0)).squeeze(0)
    # a vanishing normal: z is constant
    reached = excess.clamp_min(0) / size if size > 0 else torch.full_like(excess, torch.inf)
    return torch.where(excess <= 0, 0.0, reached)


def two_neuron_radius(
    x: Float[Tensor, "n D"],
    y: Float[Tensor, " n"],
    w: Float[Tensor, "2 D"],
    a: Float[Tensor, " 2"],
    b: Float[Tensor, " 2"],
    norm: Norm = L2,
) -> Float[Tensor, " n"]:
    """Radii for f = a_0 relu(z_0) - a_1 relu(z_1), a >= 0, z = <w, x> + b (either a may be 0)."""
    z = x @ w.T + b
    radius = torch.empty_like(y)
    for own, other, mine in ((0, 1, y > 0), (1, 0, y < 0)):
        here = z[mine]
        alone = plane_distance(here[:, own], w[own], norm)
        if a[own] == 0:  # no neuron speaks for this class: f has the wrong sign or is 0
            alone = torch.zeros_like(alone)
        balance = plane_distance(
            a[own] * here[:, own] - a[other] * here[:, other],
            a[own] * w[own] - a[other] * w[other],
            norm,
        )
        radius[mine] = torch.minimum(alone, balance)
    return radius
