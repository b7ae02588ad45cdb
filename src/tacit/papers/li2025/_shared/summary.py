"""How the exhibits of li2025 sum up radii that are intervals, and points of several trainings."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tacit.measure import Estimate, mean_of


def between(
    lower: npt.ArrayLike, upper: npt.ArrayLike, *, over: str = "data sets",
    mean: Callable[..., Estimate] = mean_of,
) -> Estimate:  # fmt: skip
    """The mean of what is known from `lower` (certified) to `upper` (attacked), with the intervals of both ends.

    The value is the middle of the two means. The gap between them stays, however many samples there are.
    """
    low, high = (mean(end, over=over) for end in (lower, upper))
    half = (high.value - low.value) / 2
    return Estimate(low.value + half, low.low, high.high, low.n, over, half)


def over_both(values: npt.ArrayLike, *, over: str) -> Estimate:
    """The mean of `values` (start, point) for other starts and points: both Student intervals, in quadrature.

    That counts twice what varies from point to point differently in each start.
    """
    table = np.asarray(values, dtype=np.float64)
    value = float(table.mean())
    half = math.hypot(*(mean_of(table.mean(axis)).spread for axis in (0, 1)))
    return Estimate(value, value - half, value + half, table.size, over)
