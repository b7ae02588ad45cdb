"""What a finite sample says: exact binomial limits, Student's mean, the median with its bootstrap interval.

Each takes `of`: the estimate is one of so many that are judged together, at the level 1 - .05/of (Bonferroni).
"""

import math

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from scipy.stats import beta, binom, t
from torch import Tensor

from tacit.base.estimate import Estimate


def upper_limit(events: int, n: int, level: float) -> float:
    """One-sided upper confidence limit of a probability (Clopper & Pearson 1934)."""
    return 1.0 if events >= n else float(beta.ppf(level, events + 1, n - events))


def lower_limit(events: int, n: int, level: float) -> float:
    """One-sided lower confidence limit of a probability (Clopper & Pearson 1934)."""
    return 0.0 if events <= 0 else float(beta.ppf(1 - level, events, n - events + 1))


def proportion(events: int, n: int, *, of: int = 1, over: str = "points") -> Estimate:
    """A probability with its exact two-sided 95% interval."""
    level = 1 - 0.025 / of
    low, high = lower_limit(events, n, level), upper_limit(events, n, level)
    return Estimate(events / n, low, high, n, over)


def mean_of(values: npt.ArrayLike, *, of: int = 1, over: str = "seeds") -> Estimate:
    """The mean of independent values with Student's 95% interval; a single one has the whole line.

    Of values of few sizes (a share of ten points) it says too much: count them with `proportion`.
    """
    flat = np.asarray(values, dtype=np.float64).ravel()
    value, n = float(flat.mean()), len(flat)
    if n == 1:
        return Estimate(value, -math.inf, math.inf, n, over)
    half = float(t.ppf(1 - 0.025 / of, n - 1) * flat.std(ddof=1) / math.sqrt(n))
    return Estimate(value, value - half, value + half, n, over)


def critical_radius(radii: Float[Tensor, " n"], *, of: int = 1, over: str = "points") -> Estimate:
    """The median over points, with its 95% bootstrap interval.

    The bootstrap law of a median needs no resampling: with x_(1) <= ... <= x_(n), a resample's median
    is at most x_(k) when at least half of n draws fall among the first k, so
    P(median* <= x_(k)) = P(Binomial(n, k/n) >= n/2). inf is a radius like any other.
    """
    ordered = radii.sort().values
    n = len(ordered)
    k = np.arange(1, n + 1)
    below = binom.sf(int(np.ceil(n / 2)) - 1, n, k / n)
    low, high = (int(np.searchsorted(below, level)) for level in (0.025 / of, 1 - 0.025 / of))
    middle = ordered[[(n - 1) // 2, n // 2]].mean()
    ends = ordered[torch.tensor([min(low, n - 1), min(high, n - 1)])]
    return Estimate(float(middle), float(ends[0]), float(ends[1]), n, over)
