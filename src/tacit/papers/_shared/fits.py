"""How exhibits of several papers sum up a sweep: exponents with their intervals."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.measure import Estimate, mean_of


def exponent(
    x: Sequence[float], values: npt.NDArray[Any], *, of: int = 1, over: str = "seeds"
) -> Estimate:
    """The mean over repeats of the slope of ln values on ln x, with Student's 95% interval over the repeats.

    Rows of `values` go with x, columns are the repeats: a repeat may be one net at every x, so its values are not
    independent. A single repeat has no interval: it is the whole line.
    """
    log = np.log(np.asarray(x, dtype=np.float64))
    log -= log.mean()
    slopes = log @ np.log(values) / (log @ log)
    return mean_of(slopes, of=of, over=over)


def listed(values: Iterable[float]) -> str:
    """2, 4, 0.5."""
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)
