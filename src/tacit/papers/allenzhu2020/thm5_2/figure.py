"""The panels of `allenzhu2020.thm5.2`."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from tacit.papers._shared.panels import THEORY
from tacit.papers.allenzhu2020.thm5_2.settings import Mixed


def draw(data: xr.Dataset, config: Mixed) -> Figure:
    """One neuron in the dictionary before and after purification, and alpha against beta of all."""
    figure = Figure(figsize=(11.4, 4.0))
    grid = figure.add_gridspec(2, 2, width_ratios=[1.5, 1])
    unit = config.k / config.d
    top = None
    for row, (name, colour, title) in enumerate(
        (("clean", "C0", "after clean training: one feature, and a dense mixture of all others"),
         ("pure", "C2", "after adversarial training: the feature alone"))
    ):  # fmt: skip
        axes = figure.add_subplot(grid[row, 0], sharex=top, sharey=top)
        top = top or axes
        values = data.coordinates.sel(course=name).values
        place = np.arange(len(values))
        axes.vlines(place, 0, values / values.max(), color=colour, linewidth=1.1)
        mean = (values.sum() - values.max()) / (len(values) - 1) / values.max()
        axes.axhline(mean, color="C3", linewidth=1.2)
        axes.annotate(f"mean {mean / unit:.2g} k/d", (len(values), mean), color="C3", fontsize="small",
                      xytext=(4, 0), textcoords="offset points", va="center")  # fmt: skip
        axes.set_title(title, fontsize="medium")
        axes.set(
            ylim=(-0.25, 0.5),
            xlim=(-1, len(values)),
            ylabel=r"$w^\star_j\langle w_i,M_j\rangle/\alpha$",
        )
        axes.annotate("1", (int(values.argmax()), 0.47), ha="center", va="top", fontsize="small")
    axes.set_xlabel("feature $j$")
    right = figure.add_subplot(grid[:, 1])
    for name, colour, label in (("clean", "C0", "clean"), ("pure", "C2", "purified")):
        here = data.sel(course=name)
        alpha, dense = here.alpha.values.ravel(), here.dense.values.ravel()
        right.plot(
            alpha, dense / unit, ".", color=colour, markersize=2, alpha=0.35, rasterized=True
        )
        right.plot([], [], "o", color=colour, label=label)
    right.axhline(1, **THEORY)
    right.axhline(0, color="0.6", linewidth=0.8)
    right.set(xlabel=r"pure part $\alpha_i$", ylabel=r"mean mixture $\bar\beta_i$ in $k/d$")
    right.set_title(f"all neurons that fire, {data.sizes['seed']} trainings", fontsize="medium")
    right.legend(loc="upper left", fontsize="small")
    return figure
