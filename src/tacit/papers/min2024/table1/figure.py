"""The panels of Table 1."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from tacit.papers.min2024.table1.settings import Table

NAMES = {"linf": r"$\ell_\infty$", "l2": r"$\ell_2$", "l1": r"$\ell_1$"}
DARK = 0.55  # text on cells darker than this is white


def table_panel(axes: Axes, data: xr.Dataset, config: Table) -> None:
    """(a) the table: what was measured, the paper's number below it; the best of a row, if it is one, is bold."""
    mean = data.accuracy.mean("seed").values
    printed = mean.round(3)
    axes.imshow(mean, cmap="Blues", vmin=0, vmax=1.15, aspect="auto")
    for i, j in np.ndindex(mean.shape):
        colour = "white" if mean[i, j] > DARK * 1.15 else "0.15"
        best = (printed[i] >= printed[i, j]).sum() == 1
        weight = "bold" if best else "normal"
        paper = float(data.paper[i, j])
        lift = 0.0 if math.isnan(paper) else 0.12
        axes.text(
            j, i - lift, f"{mean[i, j]:.3f}", ha="center", va="center", color=colour, weight=weight
        )
        if lift:
            axes.text(
                j,
                i + 0.28,
                f"{paper:.3f}",
                ha="center",
                va="center",
                color=colour,
                fontsize="x-small",
            )
    names = [
        "clean" if kind == "clean" else f"{NAMES[str(kind)]}, {radius:g}"
        for kind, radius in zip(data.kind.values, data.radius.values, strict=True)
    ]
    axes.set_yticks(range(len(names)), names)
    axes.set_xticks(range(len(config.p)), [f"$p$ = {p:g}" for p in config.p])
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    below = bool(np.isfinite(data.paper.values).any())
    axes.set_title("(a) accuracy" + ("; below, the paper's" if below else ""))


def norm_panel(axes: Axes, data: xr.Dataset, kind: str, letter: str) -> None:
    """(b, c, d) robust accuracy over p in one norm, with 95% intervals; hollow: the paper's."""
    here = data.isel(row=data.kind.values == kind)
    for index, radius in enumerate(here.radius.values):
        row = here.isel(row=index)
        mean = row.accuracy.mean("seed")
        colour = f"C{index}"
        axes.errorbar(
            here.p,
            mean,
            row.half,
            fmt="o-",
            color=colour,
            label=f"radius {radius:g}",
            clip_on=False,
        )
        axes.plot(
            here.p,
            row.paper,
            "D",
            color=colour,
            markerfacecolor="none",
            markersize=9,
            clip_on=False,
        )
    if np.isfinite(here.paper.values).any():
        axes.plot([], [], "D", color="0.35", markerfacecolor="none", markersize=8, label="paper")
    axes.set_xticks(here.p.values)
    # room for the legend: two entries a row
    axes.set_ylim(0, 1.05 + 0.12 * math.ceil(len(axes.get_legend_handles_labels()[1]) / 2))
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.set_xlabel("$p$")
    axes.set_ylabel("robust accuracy")
    n = int(here.points[0])
    axes.set_title(f"({letter}) {NAMES[kind]} attack, {n:,} points")
    axes.legend(loc="upper center", ncols=2, columnspacing=1, handletextpad=0.4, fontsize="small")
