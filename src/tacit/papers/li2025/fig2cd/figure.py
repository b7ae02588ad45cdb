"""The figure of `li2025.fig2cd`: both matrices, accuracy over the steps, robust accuracy over the radius."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers.li2025.fig2cd.settings import Embedded
from tacit.papers.li2025.matrices.figure import heat_map

NAMES = {"two": "2 labels", "many": "$k$ labels"}
COLOURS = {"two": "C1", "many": "C0"}


def draw(data: xr.Dataset, config: Embedded) -> Figure:
    """A row for raw, one for centred embeddings."""
    rows = data.sizes["reading"]
    figure = Figure(figsize=(13.0, 3.2 * rows))
    axes = figure.subplots(rows, 4, squeeze=False, width_ratios=[1.15, 1.15, 0.9, 1])
    for row, reading in zip(axes, data.reading.values, strict=True):
        here = data.sel(reading=reading).isel(seed=0)
        for panel, net, letter in zip(row, NAMES, "cd", strict=False):
            matrix = here.cosine.sel(net=net).isel(T=-1).values
            title = f"({letter}) {NAMES[net]}, {reading}"
            image = heat_map(panel, matrix, 1.0, title, r"equivalent weight $w_j$")
        figure.colorbar(
            image, ax=row[:2].tolist(), pad=0.01, fraction=0.03, label=r"$\cos(\mu_i, w_j)$"
        )
        over_steps(row[2], data.sel(reading=reading))
        over_radius(row[3], data.sel(reading=reading))
    steps = rf"$h$ = {config.h}, $\eta$ = {config.eta:g}, $T$ = {max(config.T)}"
    figure.suptitle(f"{config.named}, {steps}", fontsize="medium")
    return figure


def over_steps(axes: Axes, data: xr.Dataset) -> None:
    """Test accuracy in two classes."""
    for net, name in NAMES.items():
        found = data.accuracy.sel(net=net)
        axes.plot(data["T"], found.mean("seed"), "o-", color=COLOURS[net], markersize=4, label=name)
    axes.set_xscale("log")
    steps = data["T"].values
    axes.set_xticks(steps, [f"{T:g}" for T in steps])
    axes.minorticks_off()
    axes.set_xlabel("steps")
    axes.set_title("accuracy in two classes")
    axes.legend(loc="best", fontsize="small")


def over_radius(axes: Axes, data: xr.Dataset) -> None:
    """The share of points whose radius is larger: certified (lower edge) to attacked (upper edge)."""
    fine = np.linspace(0, float(data.upper.quantile(0.98)), 300)
    for net, name in NAMES.items():
        ends = [
            (data[end].sel(net=net).values.ravel()[:, None] > fine).mean(0)
            for end in ("lower", "upper")
        ]
        axes.fill_between(fine, *ends, color=COLOURS[net], alpha=0.25, linewidth=0)
        axes.plot(fine, ends[1], color=COLOURS[net], label=name)
    axes.set_ylim(0, 1)
    axes.set_xlim(0, None)
    axes.set_xlabel(r"$\ell_2$ radius, in lengths of $z$")
    axes.set_title("robust accuracy")
    axes.legend(loc="best", fontsize="small", title="certified to attacked")
