"""Distances by SGD and by the flow, and robust accuracy: certified, and as the released attack has it."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import mark
from tacit.papers.min2024.fig2.figure import distance_panel
from tacit.papers.min2024.fig2_sgd.settings import Released


def draw(data: xr.Dataset, config: Released) -> Figure:
    """(a) a panel for each p; (b) all curves of the alpha that the captions show."""
    figure = Figure(figsize=(4.2 * len(config.p) + 5.4, 3.9))
    panels = figure.subplots(1, len(config.p) + 1, width_ratios=[*[1] * len(config.p), 1.45])
    for index, p in enumerate(config.p):
        here = data.sel(p=p)
        distance_panel(panels[index], here, p, f"C{index}")
        flow = here.flow_distance.sortby("alpha")
        high = float(max(here.distance.max(), flow.max()))
        panels[index].plot(
            flow.alpha,
            flow.sel(end="upper").mean("seed"),
            "d--",
            color="0.35",
            markersize=4,
            label="flow, same loss",
        )
        panels[index].lines[0].set_label("SGD")
        panels[index].set_ylim(0, 1.15 * high)
        panels[index].legend(loc="lower right")
    robust_panel(panels[-1], data, config)
    return figure


def robust_panel(axes: Axes, data: xr.Dataset, config: Released) -> None:
    """Lines: the truth, from certificates; crosses: what the released attack leaves."""
    alpha = data.attrs["shown"]
    farthest = max(config.radius, default=1.5)
    fine = np.linspace(0, farthest, 601)
    for index, p in enumerate(config.p):
        here, colour = data.sel(alpha=alpha, p=p), f"C{index}"
        ends = [(here[end].values.ravel()[:, None] > fine).mean(0) for end in ("lower", "upper")]
        axes.fill_between(fine, *ends, color=colour, alpha=0.3, linewidth=0)
        axes.plot(fine, ends[1], color=colour, linewidth=1.8, label=f"$p$ = {p:g}: exact")
        axes.plot(
            data.radius, here.zero.mean("seed"), "x:", color=colour, markersize=6, linewidth=1, clip_on=False,
            label=f"$p$ = {p:g}: released attack",
        )  # fmt: skip
    mark(axes, 1 / math.sqrt(config.K), r"$1/\sqrt{K}$", 0.5, left=True)
    mark(axes, math.sqrt(0.5), r"$\sqrt{2}/2$", 0.3, left=True)
    axes.set(xlim=(0, farthest), ylim=(0, 1.03), xlabel=r"$\ell_2$ radius of the attack")
    axes.set_ylabel("robust accuracy")
    axes.set_title(rf"(b) SGD's nets, $K$ = {config.K}, $\alpha$ = {alpha:g}")
    axes.legend(loc="upper right")
