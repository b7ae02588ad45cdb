"""What a finite sample says: exact binomial limits, and the median with its bootstrap interval."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import beta, binom
from torch import Tensor


@dataclass(frozen=True)
class Estimate:
    """A value with the ends of its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


def upper_limit(events: int, n: int, level: float) -> float:
    """One-sided upper confidence limit of a probability (Clopper & Pearson 1934)."""
    return 1.0 if events >= n else float(beta.ppf(level, events + 1, n - events))


def lower_limit(events: int, n: int, level: float) -> float:
    """One-sided lower confidence limit of a probability (Clopper & Pearson 1934)."""
    return 0.0 if events <= 0 else float(beta.ppf(1 - level, events, n - events + 1))


def proportion(events: int, n: int) -> Estimate:
    """A probability with its exact two-sided 95% interval."""
    return Estimate(events / n, lower_limit(events, n, 0.975), upper_limit(events, n, 0.975))


def critical_radius(radii: Float[Tensor, " n"]) -> Estimate:
    """The median over points, with its 95% bootstrap interval.

    The bootstrap law of a median needs no resampling: with x_(1) <= ... <= x_(n), a resample's median
    is at most x_(k) when at least half of n draws fall among the first k, so
    P(median* <= x_(k)) = P(Binomial(n, k/n) >= n/2). inf is a radius like any other.
    """
    ordered = radii.sort().values
    n = len(ordered)
    k = np.arange(1, n + 1)
    below = binom.sf(int(np.ceil(n / 2)) - 1, n, k / n)
    low, high = (int(np.searchsorted(below, level)) for level in (0.025, 0.975))
    middle = ordered[[(n - 1) // 2, n // 2]].mean()
    ends = ordered[torch.tensor([min(low, n - 1), min(high, n - 1)])]
    return Estimate(float(middle), float(ends[0]), float(ends[1]))
