"""Scalar roots behind the exact radius of F^(p), element by element, without branches on data.

    falling:       u + k u^(p-1) = c     for c > 0, k >= 0: one root, in (0, c]
    rising, low:   u - k u^(p-1) = c     for c > 0, p >= 2: the lower root (positive curvature)
    rising, high:  u - k u^(p-1) = c     for 1 < p < 2: the upper root (positive curvature)

Accuracy decides only how short the resulting perturbation is, never whether it breaks the net: the
caller closes the constraint with the values it gets (see `power.py`).
"""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base import linalg

# Newton converges monotonically from the starts below; these many steps reach 1e-9 or better
# away from folds, and the length feels only the square of that.
NEWTON_STEPS = 6
power = partial(linalg.power, most=4)  # beyond, a general power is as exact as float64 is
LARGE = 1e150  # stands for infinity where infinity itself would give inf * 0


def falling_root(c: Float[Tensor, "*c"], k: Float[Tensor, "*k"], p: float) -> Float[Tensor, "*s"]:
    """The root u of u + k u^(p-1) = c; 0 where c <= 0."""
    c = c.clamp_min(0)
    if p == 2:
        return c / (1 + k)
    if p == 3:
        return 2 * c / (1 + torch.sqrt(1 + 4 * k * c))
    if p == 4:  # the cubic's only root: with u = 2 sinh(t) / sqrt(3k), 4 sinh^3 + 3 sinh = sinh(3t)
        scale = (3 * k.clamp_min(1e-300)).rsqrt()
        return 2 * scale * torch.sinh(torch.asinh(1.5 * c / scale) / 3)
    if p < 2:
        return steep_falling_root(c, k, p - 1)
    # convex increasing in u: Newton from the right of the root; c and (c/k)^(1/(p-1)) both are
    u = torch.minimum(c, (c / k.clamp_min(1e-300)) ** (1 / (p - 1)))
    for _ in range(NEWTON_STEPS):
        slope = k * power(u, p - 2)
        u = (c + (p - 2) * slope * u) / (1 + (p - 1) * slope)
    return u


def steep_falling_root(
    c: Float[Tensor, "*c"], k: Float[Tensor, "*k"], q: float
) -> Float[Tensor, "*s"]:
    """The root of u + k u^q = c for 0 < q < 1, where u^q is steep at 0; 0 where c <= 0.

    With u = c exp(-t) it reads log(exp(-t) + exp(a - q t)) = 0, a = log k + (q-1) log c: convex and
    decreasing in t, between 0 and log 2 at t = max(0, a/q), so Newton from there is monotone.
    """
    size = c.clamp_min(1e-300)
    a = k.clamp_min(1e-300).log() + (q - 1) * size.log()
    t = (a / q).clamp_min(0)
    for _ in range(2 * NEWTON_STEPS):
        first, second = -t, a - q * t
        total = torch.logaddexp(first, second)
        share = (first - total).exp()
        t = t + total / (share + q * (1 - share))
    return torch.where(c > 0, c * (-t).exp(), 0.0)


def low_rising_root(
    c: Float[Tensor, "*c"], k: Float[Tensor, "*k"], p: float
) -> Float[Tensor, "*s"]:
    """The lower root of u - k u^(p-1) = c for c > 0, p >= 2; c itself where c <= 0.

    Past the fold (k too large for a root) the value at the fold is returned.
    """
    if p == 2:
        return torch.where(c > 0, c / (1 - k).clamp_min(1e-12), c)
    if p == 3:
        return torch.where(c > 0, 2 * c / (1 + torch.sqrt((1 - 4 * k * c).clamp_min(0))), c)
    if p == 4:  # likewise, with 3 sin - 4 sin^3 = sin(3t)
        scale = (3 * k.clamp_min(1e-300)).rsqrt()
        return torch.where(
            c > 0, 2 * scale * torch.sin(torch.asin((1.5 * c / scale).clamp(-1, 1)) / 3), c
        )
    # concave on [c, fold]: Newton from the left never overshoots; the fold caps it
    fold = ((p - 1) * k).clamp_min(1e-300) ** (-1 / (p - 2))
    u = start = torch.minimum(c.clamp_min(0), fold)
    for _ in range(NEWTON_STEPS):
        slope = k * power(u, p - 2)
        step = (start - (p - 2) * slope * u) / (1 - (p - 1) * slope).clamp_min(1e-12)
        u = torch.minimum(torch.maximum(step, u), fold)
    return torch.where(c > 0, u, c)


def high_rising_root(
    c: Float[Tensor, "*c"], k: Float[Tensor, "*k"], p: float
) -> Float[Tensor, "*s"]:
    """The upper root of u - k u^(p-1) = c for 1 < p < 2 and any sign of c.

    With q = p-1, w = u^(1-q) and m = q/(1-q) the equation reads w - k - c w^(-m) = 0: increasing and
    concave for c > 0, convex for c < 0, so Newton is monotone from the left end max(k, c^(1-q)) or
    from the right end k. Below the fold (no root) the bottom u = (q k)^(1/(1-q)) is returned.
    """
    q = p - 1
    m = q / (1 - q)
    k = k.clamp(1e-100, 1e100)
    w = torch.maximum(k, c.clamp_min(0) ** (1 - q))
    for _ in range(NEWTON_STEPS):
        pull = c * w**-m
        w = torch.maximum(w - (w - k - pull) / (1 + m * pull / w).clamp_min(1e-6), q * k)
    return (w ** (1 / (1 - q))).clamp_max(LARGE)
