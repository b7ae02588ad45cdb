"""Panels of sweeps: a column for each of d, k, n and time, means over seeds with their range, theory dashed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from tacit.papers._shared.panels import THEORY
from tacit.papers.li2025.sweeps.settings import Sweep

LABELS = {
    "d": "dimension $d$",
    "k": "clusters $k$",
    "n": "training points $n$",
    "time": r"time $\eta T$",
}


@dataclass(frozen=True)
class At:
    """A place on an axis: where a law is asked."""

    d: float
    k: float
    n: float
    time: float


Law = Callable[[At], float]


def at_setting(config: Sweep, axis: str, value: float) -> At:
    """The base setting at time 1, but for the axis."""
    return replace(At(config.d0, config.k0, config.n0, 1.0), **{axis: value})


def sweep_dots(
    axes: Axes, data: xr.Dataset, name: str, axis: str, index: int, label: str, scale: float = 1.0
) -> None:
    """The mean over seeds with the seeds' range."""
    values = data[f"{name}_{axis}"].transpose(axis, "seed").values * scale
    middle = values.mean(1)
    x = data[axis].values.astype(float)
    axes.errorbar(
        x,
        middle,
        [middle - values.min(1), values.max(1) - middle],
        fmt="os^D"[index],
        color=f"C{index}",
        label=label,
        zorder=3,
    )


def law_line(
    axes: Axes,
    data: xr.Dataset,
    config: Sweep,
    axis: str,
    law: Law,
    label: str,
    style: str = "--",
) -> None:
    """A law of (d, k, n, time) along an axis of the data."""
    values = data[axis].values.astype(float)
    fine = np.geomspace(values[0] / 1.15, values[-1] * 1.15, 60)
    theory = [law(at_setting(config, axis, value)) for value in fine]
    axes.plot(fine, theory, **{**THEORY, "linestyle": style}, label=label)


def plain(value: float, _position: int | None = None) -> str:
    """1, 2 and 5 times powers of ten, as numbers; other ticks have no label."""
    lead = f"{value:.0e}"[0]
    return f"{value:g}" if lead in "125" else ""


def log_axes(axes: Axes, config: Sweep, axis: str) -> None:
    """Both logarithmic; ticks at the settings, time in decades."""
    axes.set(xscale="log", yscale="log", xlabel=LABELS[axis])
    axes.yaxis.set_major_formatter(FuncFormatter(plain))
    axes.yaxis.set_minor_formatter(FuncFormatter(plain))
    if axis != "time":
        values = getattr(config, axis)
        axes.set_xticks(values, [f"{value:g}" for value in values], fontsize=8)
        axes.xaxis.set_minor_locator(NullLocator())
