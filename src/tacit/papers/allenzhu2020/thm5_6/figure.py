"""Robust accuracy over the linf radius: low complexity against the net."""

import math

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import mark
from tacit.papers.allenzhu2020.thm5_6.claims import LEARNERS
from tacit.papers.allenzhu2020.thm5_6.settings import Learners

NAMES = {
    "linear": "linear",
    "polynomial": "polynomial",
    "tangent": "tangent kernel",
    "net": "the net",
    "thresholded": "thresholded model (exact)",
}
COLOURS = dict(zip(NAMES, ("C1", "C3", "C4", "C0", "0.25"), strict=True))
MARKS = dict(zip(NAMES, "osD^v", strict=True))


def draw(data: xr.Dataset, config: Learners) -> Figure:
    """Clean training on the left, adversarial training on the right."""
    figure = Figure(figsize=(10.4, 4.2))
    left, right = figure.subplots(1, 2, sharey=True)
    panel(left, data, config, "", "clean training")
    panel(right, data, config, ".adv", "adversarial training (FGM at $k^{-1.75}$)")
    left.set_ylabel("robust accuracy (worst attack)")
    left.legend(loc="lower left", fontsize="small")
    return figure


def panel(axes: Axes, data: xr.Dataset, config: Learners, how: str, title: str) -> None:
    """Means over trainings, and their range."""
    here = data.sel(radius=[r for r in data.radius.values if r > 0])
    for name in (*LEARNERS, "net", "thresholded"):
        key = name if name == "thresholded" else f"{name}{how}"
        share = here.held.sel(model=key).mean("point")
        axes.fill_between(here.radius, share.min("seed"), share.max("seed"), color=COLOURS[name], alpha=0.2,
                          linewidth=0)  # fmt: skip
        style = "--" if name == "thresholded" else "-"
        axes.plot(here.radius, share.mean("seed"), MARKS[name] + style, color=COLOURS[name], label=NAMES[name],
                  markersize=5, clip_on=False)  # fmt: skip
    mark(axes, config.unit, r"$k^{-1.75}$", 0.62)
    axes.axhline(0.5, color="0.8", linewidth=1, zorder=0)
    axes.set(xscale="log", ylim=(0, 1.03), xlabel=r"$\ell_\infty$ radius of the attack")
    ticks = {1 / config.d: "$1/d$", 1 / math.sqrt(config.d * config.k): "", 1 / config.k: "$1/k$"}
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.minorticks_off()
    axes.set_title(title)
