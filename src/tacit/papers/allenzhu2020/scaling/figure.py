"""Curves in d, with and without the margin."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import THEORY
from tacit.papers.allenzhu2020.scaling.claims import values_of
from tacit.papers.allenzhu2020.scaling.settings import Rule

PANELS = (
    ("robust error and accuracy at $\\tau$", (("clean_robust", "clean net: robust accuracy", "C1", "o"),
     ("pure_robust_error", "purified net: robust error", "C0", "s"),
     ("clean_error", "clean net: clean error", "C2", "^"))),
    ("Theorem 5.1(a), 5.3(c)", (("kept", r"kept of $w_0$", "C4", "D"),
     ("overlap", r"overlap of $w_i,w_j$", "C5", "v"),
     ("moved", "moved by purification", "C3", "s"))),
    ("Theorem 5.2", (("mixture", r"mixture $\beta/\alpha$, clean net", "C1", "o"),
     ("mixture_pure", r"mixture $|\beta/\alpha|$, purified net", "C0", "s"))),
)  # fmt: skip


def draw(data: xr.Dataset, config: Rule) -> Figure:
    """A row for each margin."""
    rows = len(config.margin)
    figure = Figure(figsize=(12.0, 3.7 * rows))
    grid = figure.subplots(rows, len(PANELS), squeeze=False)
    for line, margin in zip(grid, config.margin, strict=True):
        here = data.sel(margin=margin).sortby("d")
        for axes, (title, curves) in zip(line, PANELS, strict=True):
            for name, label, colour, marker in curves:
                curve(axes, here, config, name, label, colour, marker)
            if title == "Theorem 5.2":
                order = here.k / here.d
                start = float(np.mean(values_of(here, "mixture", config)[0])) / float(order[0])
                axes.plot(here.d, start * order, **THEORY, label=r"order $k/d$")
            axes.set(xscale="log", yscale="log", xlabel="dimension $d$")
            axes.set_xticks(list(here.d.values), [str(d) for d in here.d.values])
            axes.minorticks_off()
            told = rf"$|\langle w^*,z\rangle|\geq {margin:g}$" if margin else "as in the paper"
            axes.set_title(f"{title}, {told}", fontsize="medium")
            axes.legend(fontsize="small")
    return figure


def curve(
    axes: Axes, data: xr.Dataset, config: Rule, name: str, label: str, colour: str, marker: str
) -> None:
    """The mean over trainings, and every training as a dot."""
    values = values_of(data, name, config)
    for column in values.T:
        axes.plot(data.d, column, marker, color=colour, alpha=0.3, markersize=4)
    axes.plot(data.d, values.mean(1), marker + "-", color=colour, label=label)
