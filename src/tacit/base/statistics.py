"""What a finite sample says: exact binomial limits, Student's mean, medians between order statistics, ranks.

Each takes `of`: the estimate is one of so many that are judged together, at the level 1 - .05/of (Bonferroni).
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.stats import beta, binom, norm, rankdata, t

from tacit.base.estimate import Estimate
from tacit.base.shapes import Numbers
from tacit.errors import CallError


def upper_limit(events: int, n: int, level: float) -> float:
    """One-sided upper confidence limit of a probability (Clopper & Pearson 1934)."""
    return 1.0 if events >= n else float(beta.ppf(level, events + 1, n - events))


def lower_limit(events: int, n: int, level: float) -> float:
    """One-sided lower confidence limit of a probability (Clopper & Pearson 1934)."""
    return 0.0 if events <= 0 else float(beta.ppf(1 - level, events, n - events + 1))


def proportion(events: int, n: int, *, of: int = 1, over: str = "points") -> Estimate:
    """A probability with its exact two-sided 95% interval."""
    if n < 1:
        raise CallError(f"a share of {n} {over}: there is nothing to count")
    level = 1 - 0.025 / of
    low, high = lower_limit(events, n, level), upper_limit(events, n, level)
    return Estimate(events / n, low, high, n, over)


def mean_of(values: npt.ArrayLike, *, of: int = 1, over: str = "seeds") -> Estimate:
    """The mean of independent values with Student's 95% interval.

    It is the whole line where the values say nothing of their spread: a single one, several that are identical
    (count those with `proportion`), or one that is not finite.
    """
    flat = np.asarray(values, dtype=np.float64).ravel()
    value, n = float(flat.mean()), len(flat)
    spread = float(flat.std(ddof=1)) if n > 1 and np.isfinite(flat).all() else 0.0
    half = float(t.ppf(1 - 0.025 / of, n - 1)) * spread / math.sqrt(n) if spread else math.inf
    return Estimate(value, value - half, value + half, n, over)


def critical_radius(radii: Numbers, *, of: int = 1, over: str = "points") -> Estimate:
    """The median over points, with its exact 95% interval between two order statistics.

    With x_(1) <= ... <= x_(n), x_(k) is above the median with probability P(Binomial(n, 1/2) < k) at most,
    whatever the law of the radii: the ends are the x_(k) for which that is at most 2.5% (David & Nagaraja 2003,
    Section 7.1), and infinite where n is too small for any. inf is a radius like any other.
    """
    ordered = radii.sort().values
    n = len(ordered)
    rank = int(binom.ppf(0.025 / of, n, 0.5))  # P(Binomial < rank) <= 2.5%
    middle = float(ordered[[(n - 1) // 2, n // 2]].mean())
    if not rank:
        return Estimate(middle, -math.inf, math.inf, n, over)
    return Estimate(middle, float(ordered[rank - 1]), float(ordered[n - rank]), n, over)


def rank_correlation(
    one: npt.ArrayLike, other: npt.ArrayLike, *, of: int = 1, over: str = "points"
) -> Estimate:
    """Spearman's rank correlation r of pairs, with the 95% interval of Bonett & Wright (2000).

    That of Fisher's artanh r, with standard error sqrt((1 + r^2/2)/(n - 3)). It is [-1, 1] of fewer than four
    pairs, and where one side has a single value.
    """
    ranks = [rankdata(np.asarray(each, dtype=np.float64).ravel()) for each in (one, other)]
    n = len(ranks[0])
    if n < 4 or not all(np.ptp(each) for each in ranks):
        return Estimate(0.0, -1.0, 1.0, n, over)
    r = float(np.clip(np.corrcoef(*ranks)[0, 1], -1.0, 1.0))
    half = float(norm.ppf(1 - 0.025 / of)) * math.sqrt((1 + r * r / 2) / (n - 3))
    middle = math.atanh(min(max(r, -1 + 1e-12), 1 - 1e-12))  # ranks that agree are no proof of 1
    return Estimate(r, math.tanh(middle - half), max(r, math.tanh(middle + half)), n, over)
