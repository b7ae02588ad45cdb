r"""Parabolas below a phi(z), phi(z) = relu(z)^p, on an interval of z: what a certificate needs of one neuron.

The parabola with phi's value and slope at z0 and curvature k differs from phi at z by (z - z0)^2 / 2 times
k - K(z), with the divided difference K(z) = 2 (phi(z) - phi(z0) - phi'(z0) (z - z0)) / (z - z0)^2. So it lies

    above phi on [lo, hi]  if  k >= max K,          below phi  if  k <= min K      (k = 0 is the tangent).

For p >= 2, phi'' rises: K rises, its maximum is K(hi), its minimum K(lo). For p < 2, phi'' is 0 below the
kink and falls behind it: K rises up to a maximum and falls from there. The maximum is at z = -z0 p / (2 - p)
for z0 < 0 and at z = z0 (1 - 2/p) for z0 > 0, or at the end of the interval next to it; the minimum is at an
end. (p = 1, far ends: (z - z0)^2 / (-4 z0), the parabola that touches relu at z0 and at -z0.)

**Which z0.** Any is sound. The best for a random z of given mean and variance in [lo, hi] is known from the
moment problem (Chebyshev, Markov): for p >= 2 the mean of phi is largest when z is hi or z0 = mean - var /
(hi - mean), and least when it is lo or z0 = mean + var / (mean - lo); for p = 1 and far ends it is largest
when z is +-sqrt(mean^2 + var) (Scarf 1958).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.certify.poly.roots import power

NEAR_THE_END = 1e-4
Neurons = Float[Tensor, "m h"]

AWAY = 0.02  # of the half-width: z0 keeps this distance from the end where K is taken,
FROM_KINK = 0.05  # and this one from the kink where p < 2: K has no bound there


def phi(z: Float[Tensor, "*s"], p: float) -> Float[Tensor, "*s"]:
    """relu(z)^p."""
    return power(z.clamp_min(0), p)


def slope(z: Float[Tensor, "*s"], p: float) -> Float[Tensor, "*s"]:
    """phi'; 0 at the kink of p = 1."""
    return (z > 0).to(z.dtype) if p == 1 else p * power(z.clamp_min(0), p - 1)


def divided(z0: Neurons, z: Neurons, p: float) -> Neurons:
    """K(z); 0 where z = z0."""
    way = z - z0
    rise = phi(z, p) - phi(z0, p) - slope(z0, p) * way
    return torch.where(way == 0, 0.0, 2 * rise / torch.where(way == 0, 1.0, way * way))


def most_curved(z0: Neurons, lo: Neurons, hi: Neurons, p: float) -> Neurons:
    """max K over [lo, hi]; z0 < hi for p >= 2, and inside and not 0 for p < 2."""
    if p >= 2:
        return divided(z0, hi, p).clamp_min(0)
    where = torch.where(z0 < 0, -z0 * (p / (2 - p)), z0 * (1 - 2 / p))
    return divided(z0, torch.minimum(torch.maximum(where, lo), hi), p).clamp_min(0)


def least_curved(z0: Neurons, lo: Neurons, hi: Neurons, p: float) -> Neurons:
    """min K over [lo, hi], or 0."""
    return torch.minimum(divided(z0, lo, p), divided(z0, hi, p)).clamp_min(0)


def touch_above(mean: Neurons, var: Neurons, lo: Neurons, hi: Neurons, p: float) -> Neurons:
    """Where a parabola above phi should touch it."""
    half = (hi - lo) / 2
    left, right = mean - var / (hi - mean), mean + var / (mean - lo)
    if p >= 2:
        return torch.minimum(torch.maximum(left, lo), hi - AWAY * half)
    root = (mean * mean + var).sqrt()
    left = torch.where(root * (p / (2 - p)) <= hi, -root, left)
    right = torch.where(root * (2 / p - 1) <= -lo, root, right)
    z0 = torch.where(mean <= 0, left, right)
    z0 = torch.minimum(torch.maximum(z0, lo + AWAY * half), hi - AWAY * half)
    gap = FROM_KINK * half
    return torch.where(z0.abs() < gap, torch.where(mean <= 0, -gap, gap), z0)


def touch_below(mean: Neurons, var: Neurons, lo: Neurons, hi: Neurons) -> Neurons:
    """Where a parabola below phi should touch it.

    Next to hi the divided difference that bends it would be all rounding: it touches at hi itself, as a tangent.
    """
    z0 = torch.minimum(mean + var / (mean - lo), hi)
    return torch.where(hi - z0 < NEAR_THE_END * (hi - lo), hi, z0)


def parabolas(
    a: Neurons, t: Neurons, reach: Neurons, mean: Neurons, var: Neurons, p: float
) -> tuple[Neurons, Neurons, Neurons]:
    """(alpha, beta, k) with a phi(t + s) >= alpha + beta s + k s^2 / 2 for |s| <= reach, reach > 0.

    They are chosen for an s of that mean and variance.
    """
    lo, hi = t - reach, t + reach
    mean = t + torch.minimum(torch.maximum(mean, (AWAY - 1) * reach), (1 - AWAY) * reach)
    z0 = torch.where(a > 0, touch_below(mean, var, lo, hi), touch_above(mean, var, lo, hi, p))
    k = torch.where(a > 0, least_curved(z0, lo, hi, p), most_curved(z0, lo, hi, p))
    rise, back = slope(z0, p), t - z0
    value = phi(z0, p) + back * (rise + back * k / 2)
    return a * value, a * (rise + back * k), a * k


def lines(
    a: Neurons, t: Neurons, reach: Neurons, mean: Neurons, p: float
) -> tuple[Neurons, Neurons]:
    """(alpha, beta) with a phi(t + s) >= alpha + beta s for |s| <= reach: a chord, or a tangent (a > 0)."""
    low, z0 = phi(t - reach, p), t + mean
    chord = (phi(t + reach, p) - low) / (2 * reach)
    rise = torch.where(a > 0, slope(z0, p), chord)
    value = torch.where(a > 0, phi(z0, p) - rise * mean, low + chord * reach)
    return a * value, a * rise
