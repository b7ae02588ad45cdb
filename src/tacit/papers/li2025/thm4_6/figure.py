"""The figure of `li2025.thm4.6`: the distance from C f_FA, relative and absolute, along d, n and time."""

from __future__ import annotations

import math

import xarray as xr
from matplotlib.figure import Figure

from tacit.papers.li2025.sweeps.figure import law_line, log_axes, sweep_dots
from tacit.papers.li2025.sweeps.settings import Sweep
from tacit.papers.li2025.sweeps.sweep import growth


def draw(data: xr.Dataset, config: Sweep) -> Figure:
    """Two rows of three panels; the rows share their y axes."""
    figure = Figure(figsize=(10.5, 6.4))
    panels = figure.subplots(2, 3, sharey="row")
    for i, axis in enumerate(("d", "n", "time")):
        top, bottom = panels[:, i]
        law_line(top, data, config, axis, lambda at: at.k / math.sqrt(at.n), r"$k/\sqrt{n}$")
        sweep_dots(top, data, "relative", axis, 0, r"distance$/\lambda$")
        law_line(
            bottom,
            data,
            config,
            axis,
            lambda at: growth(at.d, at.k, at.n, config.m, at.time) * at.k / math.sqrt(at.n),
            r"$\lambda k/\sqrt{n}$, $\lambda$ of theory",
        )
        sweep_dots(bottom, data, "absolute", axis, 3, "distance")
        sweep_dots(bottom, data, "lam", axis, 2, r"$\lambda$")
        for panel in (top, bottom):
            log_axes(panel, config, axis)
    panels[0, 0].set_ylabel(r"relative to $\lambda=Cd$")
    panels[1, 0].set_ylabel(r"$\inf_C\,\sup_{\Vert x\Vert=\sqrt{d}}|Cf_{FA}-f|$")
    panels[0, 1].legend(loc="best", fontsize=8)
    panels[1, 0].legend(loc="best", fontsize=8)
    figure.suptitle(
        f"Theorem 4.6 swept around $d={config.d0}$, $k={config.k0}$, $n={config.n0}$, "
        rf"$\eta T=1$ ({config.repeats} seeds, bars: their range)"
    )
    return figure
