"""The figure of `li2025.thm4.5`: critical radius and distance to the averages, along d, k, n and time."""

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
            lambda at: math.sqrt(at.d / at.k / (1 + at.k / at.n)),
            r"$\sqrt{d/k}\,/\sqrt{1+k/n}$",
        )
        law_line(
            top,
            data,
            config,
            axis,
            lambda at: math.sqrt(at.d / 2),
            r"$\sqrt{d/2}$",
            style=":",
        )
        sweep_dots(top, data, "radius", axis, 0, "critical radius")
        law_line(
            bottom,
            data,
            config,
            axis,
            lambda at: at.k / math.sqrt(2 * at.n),
            r"remembered noise, $k/\sqrt{2n}$",
        )
        sweep_dots(bottom, data, "close", axis, 3, "all of it, the largest of a neuron")
        sweep_dots(bottom, data, "noise", axis, 2, "noise ($L_4$)")
        sweep_dots(bottom, data, "spread", axis, 1, r"spread of $\lambda$ ($L_2$)")
        for panel in (top, bottom):
            log_axes(panel, config, axis)
    panels[0, 0].set_ylabel(r"$\ell_2$ radius")
    panels[1, 0].set_ylabel(
        r"$\sqrt{d}\;\Vert w-\lambda\sum_{J_s}\mu_j/\Vert\mu_j\Vert^2\Vert\;/\;\lambda$"
    )
    panels[0, -1].legend(loc="lower right", fontsize=8)
    low, high = panels[1, 0].get_ylim()
    panels[1, 0].set_ylim(low / 4, high)  # room for the legend
    panels[1, 2].legend(loc="lower left", fontsize=8)
    figure.suptitle(
        f"Theorem 4.5 swept around $d={config.d0}$, $k={config.k0}$, $n={config.n0}$, "
        rf"$\eta T=1$ ($\eta={config.eta:g}$; {config.repeats} seeds, bars: their range)"
    )
    return figure
