"""The figure: a map of places for each number of labels, and radii over noise with the closed forms."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from tacit.papers._shared.panels import MARKERS, THEORY
from tacit.papers.li2025.phase.settings import Phase
from tacit.papers.li2025.phase.theory import group_radius, s_meet

WORDS = {-1: "averages", 0: "undecided", 1: "decouples"}


def draw(data: xr.Dataset, config: Phase) -> Figure:
    """Above the diagram, a panel a number of labels; below the radii."""
    count = len(config.labels)
    figure = Figure(figsize=(3.7 * count + 0.8, 6.8))
    grid = figure.add_gridspec(2, count, height_ratios=[1, 1])
    top = [figure.add_subplot(grid[0, i]) for i in range(count)]
    low = [figure.add_subplot(grid[1, i]) for i in range(count)]
    for index, labels in enumerate(config.labels):
        image = places(top[index], data.sel(labels=labels), config, labels, first=index == 0)
        radii(low[index], data.sel(labels=labels), config, first=index == 0)
    bar = figure.colorbar(image, ax=top, shrink=0.85, pad=0.015)
    bar.set_label("place of the radius")
    bar.set_ticks([0, 0.5, 1], labels=["averages", "half way", "centres"])
    handles, names = low[-1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    figure.suptitle(
        f"$k$ = {config.k} clusters, $d$ = {config.d}, $n$ = {config.n}: {config.trainings} trainings a cell",
        fontsize="medium",
    )  # fmt: skip
    return figure


def places(axes: Axes, data: xr.Dataset, config: Phase, labels: int, *, first: bool) -> AxesImage:
    """Each cell with its place and phase."""
    middle = (data.place_lower + data.place_upper).mean("seed").transpose("p", "sigma").values / 2
    image = axes.imshow(middle, origin="lower", aspect="auto", cmap="RdYlBu", vmin=-0.1, vmax=1.1)
    phase = data.phase.transpose("p", "sigma").values
    for row, column in np.ndindex(*middle.shape):
        text = f"{middle[row, column]:.2f}\n{WORDS[int(phase[row, column])]}"
        axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color="black")
    axes.set_xticks(range(len(config.sigma)), [f"{sigma:g}" for sigma in config.sigma])
    axes.set_yticks(range(len(config.p)), [f"{p:g}" for p in config.p])
    axes.grid(visible=False)
    axes.set_xlabel(r"noise $\sigma$")
    if first:
        axes.set_ylabel("power $p$")
    clusters = config.k // labels
    axes.set_title(f"{labels} labels" + (f", {clusters} clusters each" if clusters > 1 else ""))
    return image


def radii(axes: Axes, data: xr.Dataset, config: Phase, *, first: bool) -> None:
    """Median radii over noise, from certificate to attack, means over trainings."""
    unit = math.sqrt(config.d)
    shift = np.linspace(-0.05, 0.05, len(config.p)) * max(config.sigma)
    sigma = np.array(config.sigma)
    for index, p in enumerate(config.p):
        here = data.sel(p=p)
        middle = ((here.median_lower + here.median_upper) / 2).transpose("sigma", "seed").values
        spread = middle.std(1, ddof=1) if middle.shape[1] > 1 else np.zeros(len(sigma))
        axes.errorbar(
            sigma + shift[index], middle.mean(1), spread, fmt=MARKERS[index % len(MARKERS)], color=f"C{index}",
            markersize=5, label=f"$p$ = {p:g}",
        )  # fmt: skip
    line = np.linspace(0, 1.1 * max(config.sigma), 50)
    counts = {"centres": config.k, "groups": int(data.labels), "averages": 2}
    if counts["groups"] in (2, config.k):
        counts.pop("groups")
    lines = {
        name: np.array([group_radius(config, count, s) for s in line])
        for name, count in counts.items()
    }
    # lines that end close to each other have their names one above the other
    for rank, name in enumerate(sorted(lines, key=lambda name: lines[name][-1])):
        axes.plot(line, lines[name], **THEORY)
        axes.annotate(
            name, (line[-1], lines[name][-1]), xytext=(2, 6 * (rank - 1)), textcoords="offset points",
            va="center", fontsize=8,
        )  # fmt: skip
    if s_meet(config.k) * unit < line[-1]:
        axes.axvline(s_meet(config.k) * unit, color="0.6", linewidth=0.8)
    axes.set_xlim(0, 1.35 * max(config.sigma))
    axes.set_ylim(0, 0.8)
    axes.set_xlabel(r"noise $\sigma$")
    if first:
        axes.set_ylabel(r"median radius, in $\sqrt{d}$")
