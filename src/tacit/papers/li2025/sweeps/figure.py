"""Panels of sweeps: a column for each of d, k, n and time, means over seeds with their range, theory dashed."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
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


@dataclass(frozen=True)
class PanelRow:
    """Its y axis, laws (dashed, then dotted) and measured variables, each with its label.

    A measured variable has a colour, which is its marker's number too.
    """

    ylabel: str
    laws: Sequence[tuple[str, Law]]
    measured: Sequence[tuple[str, str, int]]


def sweep_panels(
    data: xr.Dataset, config: Sweep, names: Sequence[str], rows: Sequence[PanelRow], title: str
) -> tuple[Figure, np.ndarray]:
    """A column for each axis of the sweep; the rows share their y axes."""
    figure = Figure(figsize=(13 if len(names) > 3 else 10.5, 6.4))
    panels = figure.subplots(len(rows), len(names), sharey="row")
    for (i, row), (j, axis) in itertools.product(enumerate(rows), enumerate(names)):
        for (label, law), style in zip(row.laws, ("--", ":"), strict=False):
            law_line(panels[i, j], data, config, axis, law, label, style)
        for name, label, index in row.measured:
            sweep_dots(panels[i, j], data, name, axis, index, label)
        log_axes(panels[i, j], config, axis)
        panels[i, 0].set_ylabel(row.ylabel)
    around = f"swept around $d={config.d0}$, $k={config.k0}$, $n={config.n0}$"
    figure.suptitle(title.format(around=around, seeds=f"{config.repeats} seeds, bars: their range"))
    return figure, panels


def sweep_dots(axes: Axes, data: xr.Dataset, name: str, axis: str, index: int, label: str) -> None:
    """The mean over the seeds that have a value, with their range."""
    values = data[f"{name}_{axis}"].transpose(axis, "seed").values
    x, middle = data[axis].values.astype(float), np.nanmean(values, 1)
    ends = [middle - np.nanmin(values, 1), np.nanmax(values, 1) - middle]
    fmt, color = "os^D"[index], f"C{index}"
    axes.errorbar(x, middle, ends, fmt=fmt, color=color, label=label, zorder=3)


def law_line(
    axes: Axes, data: xr.Dataset, config: Sweep, axis: str, law: Law, label: str, style: str
) -> None:
    """A law of (d, k, n, time) along an axis of the data: the base setting at time 1, but for the axis."""
    values, base = data[axis].values.astype(float), At(config.d0, config.k0, config.n0, 1.0)
    fine = np.geomspace(values[0] / 1.15, values[-1] * 1.15, 60)
    theory = [law(replace(base, **{axis: value})) for value in fine]
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
