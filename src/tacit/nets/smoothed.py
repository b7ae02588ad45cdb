r"""ReLU under Gaussian noise before it: its expectation and its slope in closed form (allenzhu2020, Section 4).

With Phi and phi the distribution function and density of N(0, 1), and rho ~ N(0, sigma^2):

    E relu(t + rho)       = sigma (u Phi(u) + phi(u)),     u = t / sigma
    d/dt E relu(t + rho)  = E 1[t + rho >= 0] = Phi(u)

The symmetric pair that the paper's net is made of, with bias b >= 0:

    value(z) = E [relu(z - b + rho) - relu(-z - b + rho)],      odd in z
    slope(z) = Phi((z - b)/sigma) + Phi((-z - b)/sigma),        even in z, its derivative
    by_b(z)  = Phi((-z - b)/sigma) - Phi((z - b)/sigma),        its derivative in b

sigma = 0 is the pair itself, with 1[t >= 0] = 1 at the kink, as the paper has it (Fact A.1).
"""

import math
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

Any = Float[Tensor, "*any"]
Bias = Float[Tensor, "*b"] | float

ROOT_HALF = math.sqrt(0.5)
DENSITY = 1 / math.sqrt(2 * math.pi)


def smoothed_relu(t: Any, sigma: float) -> Any:
    """E relu(t + rho)."""
    if sigma == 0:
        return t.clamp_min(0)
    far = farthest(t.dtype)
    u = (t / sigma).clamp_min(-far)
    return sigma * (u * chance(u) + DENSITY * torch.exp(-u.clamp_max(far).square() / 2))


@lru_cache
def farthest(dtype: torch.dtype) -> float:
    """|u| up to which phi(u) is a normal number: exp takes ten times as long and more where it is none."""
    return math.sqrt(-2 * math.log(torch.finfo(dtype).tiny)) - 0.3


def smoothed_step(t: Any, sigma: float) -> Any:
    """E 1[t + rho >= 0]."""
    return (t >= 0).to(t.dtype) if sigma == 0 else chance(t / sigma)


def chance(u: Any) -> Any:
    """Phi(u), to full relative accuracy in both tails."""
    return torch.special.erfc(u * -ROOT_HALF) / 2


def pair_value(z: Any, b: Bias, sigma: float) -> Any:
    """E [relu(z - b + rho) - relu(-z - b + rho)]."""
    return smoothed_relu(z - b, sigma) - smoothed_relu(-z - b, sigma)


def pair_slope(z: Any, b: Bias, sigma: float) -> Any:
    """Its derivative in z."""
    return smoothed_step(z - b, sigma) + smoothed_step(-z - b, sigma)


def pair_by_bias(z: Any, b: Bias, sigma: float) -> Any:
    """Its derivative in b."""
    return smoothed_step(-z - b, sigma) - smoothed_step(z - b, sigma)


def quantile(small: float) -> float:
    """c with Phi(-c) = small, for small in (0, 1/2)."""
    return -float(torch.special.ndtri(torch.tensor(small, dtype=torch.float64)))
