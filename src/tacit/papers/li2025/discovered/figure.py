"""The figure of `li2025.discovered`: radii and Rand indices over noise, count and steps."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.measure.subclasses import DISTINCT
from tacit.papers._shared.panels import THEORY, mark
from tacit.papers.li2025.discovered.settings import Discovered

NAMES = {"given": "given labels", "found": "found labels", "two": "2 labels"}
RAND = "adjusted Rand index"


def draw(data: xr.Dataset, config: Discovered) -> Figure:
    """Four panels."""
    figure = Figure(figsize=(8.6, 6.2))
    panels = figure.subplots(2, 2).ravel()
    unit = math.sqrt(config.d)
    over_noise(panels[0], data, unit)
    landmarks(panels[0], config)
    over_count(panels[1], data, unit)
    landmarks(panels[1], config)
    axes = panels[2]
    for index, (choice, name) in enumerate((("data", "count chosen"), ("told", "count given"))):
        values = data.rand.sel(choice=choice).mean("seed").values
        axes.plot(data.sigma, values, "os"[index] + "-", color=f"C{index}", label=name)
    mark(axes, math.sqrt(1 / DISTINCT - 1), "silhouette\n" + rf"falls to {DISTINCT:g}", 0.72)
    axes.set(
        xlabel=r"noise $\sigma$", ylabel=RAND, ylim=(-0.05, 1.08), title="Finding the clusters"
    )
    axes.legend(loc="center left", bbox_to_anchor=(0, 0.33))
    axes = panels[3]
    axes.plot(data.early, data.early_rand.mean("seed").values, "o-", color="C1")
    axes.set_xscale("symlog", linthresh=1)
    axes.set(
        xlabel="steps of the net with 2 labels", ylabel=RAND, ylim=(-0.05, 1.08),
        title="Finding them in hidden features",
    )  # fmt: skip
    for panel, letter in zip(panels, "abcd", strict=True):
        panel.set_title(f"({letter}) {panel.get_title(loc='left')}")
    figure.suptitle(f"$k$ = {config.k} ($k_1$ = {config.k1}), $d$ = {config.d}, $n$ = {config.n}")
    return figure


def over_noise(axes: Axes, data: xr.Dataset, unit: float) -> None:
    """Median radii and their intervals, by labels."""
    for index, (labels, name) in enumerate(NAMES.items()):
        here = data.sel(labels=labels)
        low, high = (
            here[end].median(("seed", "paired")).values / unit for end in ("lower", "upper")
        )
        style = {"given": "s-", "found": "o--", "two": "^-"}[labels]
        axes.plot(data.sigma, high, style, color=f"C{(2, 0, 1)[index]}", label=name)
        axes.fill_between(
            data.sigma, low, high, color=f"C{(2, 0, 1)[index]}", alpha=0.25, linewidth=0
        )
    axes.set(xlabel=r"noise $\sigma$", ylabel=r"median $\ell_2$ radius, in $\sqrt{d}$")
    axes.set_title("Labels found, given, or two")
    axes.legend(loc="best")


def over_count(axes: Axes, data: xr.Dataset, unit: float) -> None:
    """Median radii by the forced count, and what theory gives the groups that were found."""
    low, high = (
        data[end].median(("seed", "point")).values / unit for end in ("count_lower", "count_upper")
    )
    theory = data.predicted.median(("seed", "point")).values / unit
    at = np.arange(data.sizes["count"])
    axes.plot(at, theory, "_", color="black", markersize=16, label=r"theory, $\sqrt{d/(g+g')}$")
    axes.plot(at, high, "o", color="C0", label="attacked (bar: to certified)")
    axes.vlines(at, low, high, color="C0", alpha=0.5, linewidth=3)
    axes.set_xticks(at, [str(int(c)) for c in data["count"].values])
    axes.set(xlabel="subclasses asked for in each class", title="The wrong number of subclasses")
    axes.legend(loc="lower right")


def landmarks(axes: Axes, config: Discovered) -> None:
    """sqrt(d/k) and sqrt(d/2)."""
    for at, name in ((1 / math.sqrt(config.k), r"$\sqrt{d/k}$"), (math.sqrt(0.5), r"$\sqrt{d/2}$")):
        axes.axhline(at, **THEORY)
        axes.annotate(
            name, (1, at), xycoords=("axes fraction", "data"), xytext=(3, 0),
            textcoords="offset points", va="center",
        )  # fmt: skip
    axes.set_ylim(0, 0.8)
