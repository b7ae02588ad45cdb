"""The figure of `frei2023.every_kkt`: lengths along z by group size, values of the KKT points, and the lemmas."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import MARKERS, THEORY
from tacit.papers.frei2023.every_kkt.claims import LEMMAS, functions, rest_of
from tacit.papers.frei2023.every_kkt.settings import EveryKkt


def draw(data: xr.Dataset, config: EveryKkt) -> Figure:
    """Three panels."""
    figure = Figure(figsize=(13.5, 4.2))
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1.15, 0.9))
    length_panel(left, data, config)
    value_panel(middle, data)
    lemma_panel(right, data)
    return figure


def length_panel(axes: Axes, data: xr.Dataset, config: EveryKkt) -> None:
    """What flips half of a cluster along z, by the number of clusters that share its neuron."""
    other = float(rest_of(config).max())
    most = config.K // 2 + config.K % 2
    fine = np.linspace(0.8, most + 0.2, 50)
    axes.plot(fine, config.K / (fine + other), **THEORY, label=r"$k/(g+k_o)$")
    for i, kind in enumerate(data.means.values):
        here = data.sel(means=kind)
        g, eta = here.group.values.ravel(), here.eta.values.ravel()
        keep = np.isfinite(g) & np.isfinite(eta)
        shift = 0.06 * (i - (data.sizes["means"] - 1) / 2)
        axes.plot(g[keep] + shift, eta[keep] * config.K, MARKERS[i], color=f"C{i}", markersize=5,
                  alpha=0.6, label=f"{kind} means")  # fmt: skip
    axes.set_xticks(range(1, most + 1))
    axes.set(ylim=(0, None), xlabel="clusters $g$ that share a neuron")
    axes.set_ylabel(r"length along $z=\eta\,u$ that flips half: $k\,\eta$")
    axes.set_title("one $z$ breaks every KKT point")
    axes.legend(loc="lower left")


def value_panel(axes: Axes, data: xr.Dataset) -> None:
    """The norm of each KKT point over the least of its data set: flows filled, the solver's open."""
    flows = data.start.str.startswith("flow").values
    for i, kind in enumerate(data.means.values):
        here = data.sel(means=kind)
        norm = (here.value / here.value.min("start")).transpose("seed", "start").values
        for mine, fill, shift in ((~flows, "white", -0.13), (flows, f"C{i}", 0.13)):
            y = norm[:, mine]
            x = i + shift + 0.12 * (np.arange(y.shape[1]) / max(y.shape[1] - 1, 1) - 0.5)
            axes.plot(np.broadcast_to(x, y.shape).ravel(), y.ravel(), MARKERS[i], color=f"C{i}",
                      markerfacecolor=fill, markersize=5, alpha=0.8)  # fmt: skip
    names = [
        f"{kind}\n{int(count.min())} to {int(count.max())} functions"
        if int(count.min()) < int(count.max())
        else f"{kind}\n{int(count.min())} function{'s' if int(count.min()) > 1 else ''}"
        for kind, count in ((k, functions(data).sel(means=k)) for k in data.means.values)
    ]
    axes.set_xticks(range(len(names)), names)
    axes.set(xlim=(-0.5, len(names) - 0.5), ylabel=r"$\|\theta\|^2$ / the least of the data set")
    axes.set_title("KKT points: by the solver (open), by a flow (filled)")


def lemma_panel(axes: Axes, data: xr.Dataset) -> None:
    """How much of each lemma's bound is used, over all KKT points: the range and the median."""
    for i, (name, _) in enumerate(LEMMAS):
        used = data[name].values.ravel()
        used = used[np.isfinite(used)]
        if used.size:
            low, middle, high = np.quantile(used, [0, 0.5, 1])
            axes.plot([i, i], [low, high], color="C3", linewidth=3, solid_capstyle="round")
            axes.plot(i, middle, "o", color="C3", markerfacecolor="white")
    axes.axhline(1, **THEORY)
    axes.set_xticks(range(len(LEMMAS)), [name for name, _ in LEMMAS])
    axes.set(ylim=(0, 1.15), xlabel="lemma", ylabel="share of the bound that is used")
    axes.set_title("the proofs' lemmas at every KKT point")
