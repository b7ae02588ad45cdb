"""Means over seeds and points, where every point is tried with the net of every seed."""

import math
from typing import Any

import numpy.typing as npt
from scipy.stats import norm
from scipy.stats import t as student

from tacit.base.estimate import Estimate

Floats = npt.NDArray[Any]

RUNS = 5  # of min2024's Table 1


def crossed(
    values: Floats, N: float = math.inf, *, ends: tuple[float, float] = (-1.0, 1.0), of: int = 1,
    known: float = math.nan, fresh: bool = False,
) -> Estimate:  # fmt: skip
    """The mean of `values` (seed, point), all between `ends`, for n of N test points and some of all seeds.

    The points' interval is Agresti and Coull's: z^2/2 points are added at each end, so that 0 of n is no proof;
    both this and the variance are less by (N - n)/(N - 1), and 0 where all N are known. The seeds' is Student's:
    for a single one all between the ends, unless `known` is the standard deviation over the RUNS of the paper.
    Both are added in quadrature, which counts twice what varies from point to point differently in each seed.
    `fresh`: each seed has points of its own, and all of them count.
    """
    level, (m, n) = 1 - 0.025 / of, values.shape
    each = values.ravel() if fresh else values.mean(0)
    z, spared = float(norm.ppf(level)), spared_by(len(each), N)
    added = spared * z * z / 2
    total = len(each) + 2 * added
    centre = (each.sum() + added * sum(ends)) / total
    square = ((each**2).sum() + added * sum(end**2 for end in ends)) / total
    half = z * math.sqrt(max(square - centre**2, 0.0) * spared / total)
    seeds = math.inf if math.isnan(known) else float(student.ppf(level, RUNS - 1)) * known
    if m > 1:  # shares that agree are no proof: the points' part says how little is known
        seeds = float(student.ppf(level, m - 1) * values.mean(1).std(ddof=1)) / math.sqrt(m)
    value = float(values.mean())
    low, high = (math.hypot(max(half + side * (centre - value), 0), seeds) for side in (-1, 1))
    low, high = max(value - low, ends[0]), min(value + high, ends[1])
    return Estimate(value, low, high, n * m, "points and seeds")


def spared_by(n: int, N: float) -> float:
    """What knowing n of N points leaves of the variance of a mean."""
    return 1.0 if math.isinf(N) else (N - n) / max(N - 1, 1)
