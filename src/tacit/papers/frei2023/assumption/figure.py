"""The three panels of `frei2023.assumption`."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.assumptions import cluster_limit
from tacit.papers._shared.panels import MARKERS, THEORY, interval_dots
from tacit.papers.frei2023.assumption.settings import Reach


def draw(data: xr.Dataset, config: Reach) -> Figure:
    """The largest K and the largest cosine by d, and how close data sets come to P1..P6's thresholds."""
    figure = Figure(figsize=(13, 4))
    left, middle, right = figure.subplots(1, 3)
    cluster_panel(left, data)
    cosine_panel(middle, data)
    property_panel(right, data, config)
    return figure


def cluster_panel(axes: Axes, data: xr.Dataset) -> None:
    """Formula (dashed) and random draws (dots: median and range of 95%)."""
    d = np.asarray(data.d.values, dtype=np.float64)
    fine = np.geomspace(d[0], d[-1], 400)
    axes.plot(fine, [cluster_limit(x, 1 / math.sqrt(x)) for x in fine], **THEORY)
    axes.plot(
        fine, [cluster_limit(x, 1.0) for x in fine], **THEORY, label="formula, orthogonal means"
    )
    axes.plot(d, data.orthogonal, "o", color="C0", label=r"orthogonal means, $\sigma=1/\sqrt{d}$")
    ends = np.quantile(data.sphere.values, [0.5, 0.025, 0.975], axis=1)
    shown = ends[0] >= 1
    interval_dots(axes, d[shown], ends[:, shown], 1, r"random means, $\sigma=1$")
    axes.axhline(2, color="0.7", linewidth=1)
    few, _, unit = data.least_d.values
    axes.set_xlabel(rf"$d$ (two clusters from {few:,}; from {unit:,} at $\sigma=1$)")
    axes.set(xscale="log", yscale="log", ylim=(0.7, None), ylabel="largest $k$")
    axes.set_title("clusters that Assumption 2.2 admits")
    axes.legend(loc="upper left")


def cosine_panel(axes: Axes, data: xr.Dataset) -> None:
    """Largest cosine for k = 2 and 4."""
    for i, K in enumerate(data.few.values):
        axes.axhline(1 / (10 * K), **THEORY, label="limit $1/(10k)$" if i == 0 else None)
        for s, (noise, name) in enumerate((("1/sqrt(d)", r"1/\sqrt{d}"), ("1", "1"))):
            axes.plot(
                data.d,
                data.cosine.sel(noise=noise, few=K),
                color=f"C{i}",
                marker=MARKERS[s],
                linewidth=1,
                markerfacecolor="white" if s else f"C{i}",
                label=rf"$k={K}$, $\sigma={name}$",
            )
    axes.set(xscale="log", ylim=(0, 0.085), xlabel="$d$", ylabel=r"largest $|\cos(\mu_i,\mu_j)|$")
    axes.set_title("how correlated few clusters may be")
    axes.legend(loc="upper left", ncols=2)


def property_panel(axes: Axes, data: xr.Dataset, config: Reach) -> None:
    """The worst ratio to each threshold: median, and the range over data sets."""
    places = np.arange(data.sizes["property"])
    width = 0.12
    for index, (i, s) in enumerate((i, s) for i in range(len(config.D)) for s in range(2)):
        worst = data.worst.values[i, s]
        ends = np.array([np.median(worst, 0), worst.min(0), worst.max(0)])
        shift = (index - len(config.D) + 0.5) * width
        label = rf"$d={config.D[i]}$, $k={config.K[i]}$, $\sigma={data.sigma[s]:g}$"
        interval_dots(axes, places + shift, ends, index % 7, label, markersize=4)
    axes.axhline(1, **THEORY, label="threshold")
    axes.set_xticks(places, [str(name) for name in data.property.values])
    top = float(data.worst.where(np.isfinite(data.worst)).max())
    axes.set(ylim=(0, 1.75 * max(1.0, top)), ylabel="worst ratio to the threshold")
    axes.set_title(f"P1 to P6 in {config.datasets} data sets a setting")
    axes.legend(loc="upper center", ncols=2, fontsize=8)
