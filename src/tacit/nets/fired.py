"""Values and slopes of the symmetric pairs in one pass: what a step of training or of an attack needs, faster.

Both functions share one erf and one exp, of |z|: the pair is odd. Phi(u) is (1 + erf(u/sqrt 2))/2, right to the
rounding of 1 and not of itself (`nets.smoothed` has both). The second half of a pair, at -|z| - b, is left out
where Phi(-b/sigma) is below a quarter of that rounding.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.nets.smoothed import DENSITY, ROOT_HALF, smoothed_step

Table = Float[Tensor, "a n"]


@dataclass(frozen=True)
class Fired:
    """f (n,), the slope of each pair, and the derivative in its bias where it was asked for."""

    f: Float[Tensor, " n"]
    slope: Table
    by_bias: Table | None


def fired(
    z: Table, b: Float[Tensor, " a"], sigma: float, both: bool, by_bias: bool = False
) -> Fired:
    """The sum over the pairs at z, and what training differentiates it into."""
    size, bias = z.abs(), b.unsqueeze(1)
    value, slope = half(size - bias, sigma)
    own = slope.neg() if by_bias and both else None
    if both:
        less, second = half(size.neg_().sub_(bias), sigma)
        value, slope = value.sub_(less), slope.add_(second)
        own = None if own is None else own.add_(second).mul_(z.sign())
    elif by_bias:
        own = torch.copysign(slope, z).neg_()
    return Fired(torch.copysign(value, z).sum(0), slope, own)


def half(t: Table, sigma: float) -> tuple[Table, Table]:
    """E relu(t + rho) and E 1[t + rho >= 0]; t is used up."""
    if not sigma:
        return t.clamp_min(0), smoothed_step(t, 0.0)
    u = t.mul_(1 / sigma)
    slope = chance_of_one(u * ROOT_HALF)
    # numbers near the least normal one and below take ten times as long and more, and add nothing to f
    least = math.log(torch.finfo(u.dtype).tiny) + 20
    density = u.square().mul_(-0.5).clamp_min_(least).exp_().mul_(DENSITY)
    return density.addcmul_(u, slope).mul_(sigma), slope


def slopes(z: Table, b: Float[Tensor, " a"], sigma: float, both: bool) -> Table:
    """The slopes alone."""
    size, bias = z.abs(), b.unsqueeze(1)
    first = step(size - bias, sigma)
    return first.add_(step(size.neg_().sub_(bias), sigma)) if both else first


def step(t: Table, sigma: float) -> Table:
    """E 1[t + rho >= 0]; t is used up."""
    return chance_of_one(t.mul_(1 / sigma).mul_(ROOT_HALF)) if sigma else smoothed_step(t, 0.0)


def chance_of_one(v: Table) -> Table:
    """Phi(sqrt(2) v), right to the rounding of 1; in place."""
    return v.erf_().add_(1).mul_(0.5)


def second_half_counts(b: Float[Tensor, " a"], sigma: float) -> bool:
    """Whether Phi(-b/sigma), for the least bias, can be told from 0 next to 1."""
    least = float(b.min()) if len(b) else 1.0
    if sigma == 0:
        return least <= 0
    return math.erfc(least / sigma * ROOT_HALF) / 2 > torch.finfo(b.dtype).eps / 4
