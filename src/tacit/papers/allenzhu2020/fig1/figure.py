"""Figure 1: clean filters, the same filters purified, and the numbers of both beside those of natural images."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import THEORY
from tacit.papers.allenzhu2020.deep.figure import NAMES, mosaic, setting_of, show, stretched
from tacit.papers.allenzhu2020.fig1.settings import Purified

COLUMNS = 8
COLOURS = {"clean": "C0", "robust": "C1"}
BANDS = ("≤ 1/8", "1/4", "3/8", "1/2", "more")  # measure.features.spectrum.EDGES


def draw(data: xr.Dataset, config: Purified) -> Figure:
    """Filter i at the same place of both mosaics, each stretched about mid-grey."""
    rows = -(-data.sizes["neuron"] // COLUMNS)
    figure = Figure(figsize=(13.0, max(1.0 + 0.52 * rows, 4.2)))
    cells = figure.add_gridspec(2, 3, width_ratios=[1, 1, 0.75])
    mosaics = [figure.add_subplot(cells[:, k]) for k in (0, 1)]
    titles = {"clean": "clean training", "robust": f"then against {NAMES[config.attacker]}"}
    for axes, (name, title) in zip(mosaics, titles.items(), strict=True):
        here = data.sel(net=name)
        plain, own = (f"{100 * float(here[key].mean()):.0f}%" for key in ("plain", "own"))
        text = f"{title}\naccuracy {plain}, {own} under attack"
        show(axes, mosaic(stretched(here["filter"].values, 0.0), COLUMNS), text)

    spectra(figure.add_subplot(cells[0, 2]), data)
    turns(figure.add_subplot(cells[1, 2]), data)
    figure.suptitle(f"First-layer filters: {setting_of(config)}", fontsize="medium")
    return figure


def spectra(axes: Axes, data: xr.Dataset) -> None:
    """(a) mean shares of the energy by frequency; total variations in the legend."""
    at = np.arange(len(BANDS))
    for name, colour in COLOURS.items():
        here = data.sel(net=name)
        label = f"{name}, total variation {float(here.variation.mean()):.2f}"
        axes.plot(at, here.spectrum.mean("neuron"), "o-", color=colour, label=label)
    label = f"patches of images, {float(data.natural_variation.mean()):.2f}"
    axes.plot(at, data.natural_spectrum.mean("patch"), **THEORY, label=label)
    axes.set_xticks(at, BANDS)
    axes.set(xlabel="cycles a pixel", ylabel="share of energy", ylim=(0, None))
    axes.legend(fontsize="small")


def turns(axes: Axes, data: xr.Dataset) -> None:
    """(b) Section 1's angles, one dot a filter, in order."""
    labels = {
        "clean_robust": (r"$\theta(w, w')$", "C2"),
        "start_clean": (r"$\theta(w^{(0)}, w)$", "C0"),
        "start_robust": (r"$\theta(w^{(0)}, w')$", "C1"),
    }
    for name, (label, colour) in labels.items():
        values = np.sort(data[name].values)[::-1]
        axes.plot(np.arange(1, len(values) + 1), values, ".", color=colour, label=label)
    for bar in (0.2, 0.8):
        axes.axhline(bar, **THEORY)
    axes.set(xlabel="filters, in order", ylim=(0, 1.02), yticks=(0, 0.2, 0.8, 1))
    axes.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
