"""The figure of `li2025.thm4.7`: critical radius and distance to the features, along d, k, n and time."""

from __future__ import annotations

import math

import xarray as xr
from matplotlib.figure import Figure

from tacit.papers.li2025.sweeps.figure import LABELS, law_line, log_axes, sweep_dots
from tacit.papers.li2025.sweeps.settings import Sweep


def draw(data: xr.Dataset, config: Sweep) -> Figure:
    """Two rows of four panels; the rows share their y axes."""
    figure = Figure(figsize=(13, 6.4))
    panels = figure.subplots(2, len(LABELS), sharey="row")
    for i, axis in enumerate(LABELS):
        top, bottom = panels[:, i]
        law_line(
            top,
            data,
            config,
            axis,
            lambda at: math.sqrt(at.d / 2 / (1 + at.k / at.n)),
            r"$\sqrt{d/2}\,/\sqrt{1+k/n}$",
        )
        law_line(
            top,
            data,
            config,
            axis,
            lambda at: math.sqrt(at.d / at.k),
            r"$\sqrt{d/k}$ (2 labels)",
            style=":",
        )
        sweep_dots(top, data, "radius", axis, 0, "critical radius (attacked)")
        law_line(
            bottom,
            data,
            config,
            axis,
            lambda at: math.sqrt(at.k / at.n),
            r"remembered noise, $\sqrt{k/n}$",
        )
        sweep_dots(bottom, data, "close", axis, 3, "median neuron")
        sweep_dots(bottom, data, "close_most", axis, 1, "worst neuron (1: nothing learned)")
        for panel in (top, bottom):
            log_axes(panel, config, axis)
    panels[0, 0].set_ylabel(r"$\ell_2$ radius")
    panels[1, 0].set_ylabel(
        r"$\sqrt{d}\;\Vert w_{jr}-\lambda\mu_j/\Vert\mu_j\Vert^2\Vert\;/\;\lambda$"
    )
    panels[0, -1].legend(loc="lower right", fontsize=8)
    panels[1, 1].legend(loc="upper left", fontsize=8)
    figure.suptitle(
        f"Theorem 4.7 swept around $d={config.d0}$, $k={config.k0}$, $n={config.n0}$ at $\\eta T=k^8$, "
        f"$h={config.h}$ ({config.repeats} seeds, bars: their range)"
    )
    return figure
