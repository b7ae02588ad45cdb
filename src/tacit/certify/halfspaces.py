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

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack.norms import L2, Norm
from tacit.base.shapes import Numbers, Rows
from tacit.certify.interval import Radii, exactly


def plane_distance(
    excess: Numbers,
    normal: Float[Tensor, " D"],
    norm: Norm,
    lost_excess: Numbers,
    lost_normal: Float[Tensor, ""],
) -> Radii:
    """Distance to {z <= 0} where z = `excess` and grad z = `normal`: 0 inside, inf if never reached.

    By Hoelder's inequality z falls by at most dual(normal) a unit of the norm, along one direction by just that.
    `lost_excess` and `lost_normal` are what float64 may have lost in either: the lower end allows for them.
    """
    size = norm.dual(normal.unsqueeze(0)).squeeze(0)
    never = torch.full_like(excess, torch.inf)
    # a vanishing normal: z is constant
    upper = excess.clamp_min(0) / size if size > 0 else never
    surely = (excess - lost_excess).clamp_min(0)
    lower = surely / (size + lost_normal) if size + lost_normal > 0 else never
    return Radii(lower, upper).unless(excess <= 0)


def linear_radius(u: Float[Tensor, " D"], b: float, x: Rows, y: Numbers, norm: Norm = L2) -> Radii:
    """The radius of f = <u, x> + b."""
    lost = rounding(x) * (x.norm(dim=1) * u.norm() + abs(b))
    return plane_distance(y * (x @ u + b), u, norm, lost, rounding(x) * norm.dual(u[None])[0])


def two_neuron_radius(
    x: Rows,
    y: Numbers,
    w: Float[Tensor, "2 D"],
    a: Float[Tensor, " 2"],
    b: Float[Tensor, " 2"],
    norm: Norm = L2,
) -> Radii:
    """Radii for f = a_0 relu(z_0) - a_1 relu(z_1), a >= 0, z = <w, x> + b (either a may be 0)."""
    z = x @ w.T + b
    lost_z = rounding(x) * (x.norm(dim=1, keepdim=True) * w.norm(dim=1) + b.abs())
    lost_w = rounding(x) * norm.dual(w)
    lower, upper = torch.empty_like(y), torch.empty_like(y)
    for own, other, mine in ((0, 1, y > 0), (1, 0, y < 0)):
        here, lost = z[mine], lost_z[mine]
        alone = plane_distance(here[:, own], w[own], norm, lost[:, own], lost_w[own])
        if a[own] == 0:  # no neuron speaks for this class: f has the wrong sign or is 0
            alone = exactly(torch.zeros_like(alone.upper))
        balance = plane_distance(
            a[own] * here[:, own] - a[other] * here[:, other],
            a[own] * w[own] - a[other] * w[other],
            norm,
            a[own] * lost[:, own] + a[other] * lost[:, other],
            a[own] * lost_w[own] + a[other] * lost_w[other],
        )
        lower[mine] = torch.minimum(alone.lower, balance.lower)
        upper[mine] = torch.minimum(alone.upper, balance.upper)
    return Radii(lower, upper)


def rounding(x: Rows) -> float:
    """What a sum of D products may lose in float64, of the sum of their sizes."""
    return 2.3e-16 * (x.shape[1] + 4)
