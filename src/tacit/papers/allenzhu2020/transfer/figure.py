"""The two panels of `allenzhu2020.transfer`."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import THEORY, mark
from tacit.papers.allenzhu2020.transfer.settings import Transferred

LABELS = {
    "own": "the net it was learned on",
    "other": "a narrower net trained apart",
    "pure": "the first net, purified",
}


def draw(data: xr.Dataset, config: Transferred) -> Figure:
    """Accuracy along the learned direction, and what that direction is."""
    figure = Figure(figsize=(10.4, 4.0))
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
    curves(left, data, config)
    coordinates(right, data)
    return figure


def curves(axes: Axes, data: xr.Dataset, config: Transferred) -> None:
    """Mean over dictionaries, and all between the least and the largest."""
    radii = [0.0, *config.radii]
    for i, (name, label) in enumerate(LABELS.items()):
        begin = data.clean.sel(net=name).mean("point").values[:, None]
        rows = np.concatenate([begin, data.curve.sel(net=name).values], 1)
        axes.fill_between(radii, rows.min(0), rows.max(0), alpha=0.2, color=f"C{i}", linewidth=0)
        axes.plot(radii, rows.mean(0), "o-", color=f"C{i}", markersize=3.5, label=label)
    mark(axes, config.tau, rf"$\tau$ = {config.tau:g}", 0.9)
    axes.set(xlim=(0, max(radii)), ylim=(-0.02, 1.04), ylabel="accuracy")
    axes.set(xlabel="length along the direction learned on one net")
    axes.set_title("a perturbation learned on one net breaks the others")
    axes.legend(loc="center right", fontsize="small")


def coordinates(axes: Axes, data: xr.Dataset) -> None:
    """The learned direction in the dictionary, signs by w*."""
    values = data.coordinates.values
    rank = np.arange(1, values.shape[1] + 1)
    for row in values:
        axes.plot(rank, np.sort(row)[::-1], color="C0", linewidth=1, alpha=0.7)
    axes.plot([], [], color="C0", label="learned, one line a dictionary")
    axes.axhline(values.shape[1] ** -0.5, **THEORY)
    axes.plot([], [], label=r"$Mw^\star/\|Mw^\star\|$", **THEORY)
    axes.set(
        xlabel="features, sorted", ylabel=r"$w^\star_j\,\langle u, M_j\rangle$", ylim=(None, None)
    )
    axes.set_title(f"it is the dense one: cosine {float(data.with_dense.mean()):.2f}")
    axes.legend(loc="lower left", fontsize="small")
