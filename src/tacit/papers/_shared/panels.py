"""What figures of several papers draw in the same way: theory dashed, measurement with intervals."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from tacit.measure import Estimate

THEORY: dict[str, Any] = {"linestyle": "--", "color": "0.35", "linewidth": 1.2, "zorder": 1}
MARKERS = "os^Dv<>"


def rows(found: Iterable[Estimate]) -> npt.NDArray[np.float64]:
    """Estimates as the rows value, low, high: what `interval_dots` takes and data sets keep."""
    return np.array([[e.value, e.low, e.high] for e in found], dtype=np.float64).T


def interval_dots(
    axes: Axes,
    x: Sequence[float] | npt.NDArray[np.floating[Any]],
    ends: npt.NDArray[np.float64],
    index: int,
    label: str,
    **style: Any,
) -> None:
    """Values with their 95% intervals, in the colour and marker of `index`.

    `ends` has the rows value, low, high.
    """
    value, low, high = ends
    axes.errorbar(
        x,
        value,
        [np.maximum(value - low, 0), np.maximum(high - value, 0)],
        **{
            "fmt": MARKERS[index % len(MARKERS)],
            "color": f"C{index}",
            "label": label,
            "zorder": 3,
            **style,
        },
    )


def mark(axes: Axes, at: float, text: str, height: float = 0.5, *, left: bool = False) -> None:
    """A dashed vertical line of theory with its name beside it, at a height between 0 and 1."""
    axes.axvline(at, **THEORY)
    axes.annotate(
        text,
        (at, height),
        xycoords=("data", "axes fraction"),
        xytext=(-3 if left else 3, 0),
        textcoords="offset points",
        ha="right" if left else "left",
    )
