"""How the exhibits of li2025 sum up radii that are intervals."""

import numpy.typing as npt

from tacit.measure import Estimate, mean_of


def between(lower: npt.ArrayLike, upper: npt.ArrayLike, *, over: str = "data sets") -> Estimate:
    """The mean of a radius that is known from its certificate to its attack, with the intervals of both ends.

    The value is the middle of the two means. The gap between them stays, however many data sets there are.
    """
    low, high = (mean_of(end, over=over) for end in (lower, upper))
    half = (high.value - low.value) / 2
    return Estimate(low.value + half, low.low, high.high, low.n, over, half)
