"""The four panels of `frei2023.thm3.1`."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.measure import Estimate, proportion
from tacit.papers._shared.panels import MARKERS, THEORY
from tacit.papers.frei2023.thm3_1.settings import Generalise


def draw(data: xr.Dataset, config: Generalise) -> Figure:
    """All nets: how near to a KKT point, and their errors; errors by the number of points; predicted errors."""
    figure = Figure(figsize=(15, 4.6), layout="constrained")
    grid = figure.add_gridspec(2, 3, height_ratios=(2, 3))
    above = figure.add_subplot(grid[0, 0])
    below = figure.add_subplot(grid[1, 0], sharex=above)
    near_panel(above, data, config)
    net_panel(below, data, config)
    count_panel(figure.add_subplot(grid[:, 1]), data, config)
    law_panel(figure.add_subplot(grid[:, 2]), data, config)
    return figure


def places(data: xr.Dataset, s: int) -> np.ndarray:
    """Where the nets of the s-th noise level stand on the axis."""
    return np.arange(data.sizes["net"]) + 0.16 * (s - 0.5)


def near_panel(axes: Axes, data: xr.Dataset, config: Generalise) -> None:
    """1 - cos(theta, -grad L), which is 0 at a KKT point: the worst seed of each net."""
    per = data.sizes["net"]
    for s, sigma in enumerate(config.sigma):
        cosine = data.kkt_cosine.isel(setting=slice(s * per, (s + 1) * per)).min("seed")
        axes.plot(
            places(data, s), 1 - cosine, MARKERS[s], color=f"C{s}", label=rf"$\sigma={sigma:g}$"
        )
    axes.set(yscale="log", ylabel=r"$1-\cos(\theta,-\nabla L)$")
    axes.tick_params(labelbottom=False)
    axes.set_title(f"how near to a KKT point: $d={config.D}$, $k={config.K}$")
    axes.legend(loc="upper left", ncols=len(config.sigma))


def net_panel(axes: Axes, data: xr.Dataset, config: Generalise) -> None:
    """The error of each net with its exact 95% interval; a triangle is its upper end where no error was seen.

    The line is the same limit of all nets together.
    """
    per = data.sizes["net"]
    for s in range(len(config.sigma)):
        mine = data.isel(setting=slice(s * per, (s + 1) * per))
        for i, at in enumerate(places(data, s)):
            found = error_of(mine.isel(setting=[i]), config)
            if found.value == 0:
                axes.plot(at, found.high, "v", color=f"C{s}")
            else:
                ends = [[found.value - found.low], [found.high - found.value]]
                axes.errorbar(at, found.value, ends, fmt=MARKERS[s], color=f"C{s}")
        axes.axhline(error_of(mine, config).high, color=f"C{s}", linewidth=1, dashes=(4, 4 + 3 * s))
    size = math.ceil(config.K * math.log(config.D) ** 2)
    bound = 4 * size * config.D ** (-math.log(config.D) / 2)
    axes.axhline(bound, **THEORY, label=r"Theorem A.1: $4nd^{-\ln(d)/2}$")
    axes.plot([], [], "v", color="0.4", label="95% limit: none wrong")
    axes.plot([], [], color="0.4", linewidth=1, dashes=(4, 4), label="all nets together")
    axes.set(yscale="log", ylim=(bound / 30, max(1e-3, 100 * bound)))
    axes.set_xticks(range(per), data.net.values, rotation=35, ha="right")
    axes.set_ylabel("test error")
    axes.legend(loc="upper right", fontsize=9)


def error_of(nets: xr.Dataset, config: Generalise) -> Estimate:
    """The error of nets that fit, all their test points together."""
    fitted = nets.fitted.values.astype(bool)
    n = max(int(fitted.sum()), 1) * config.tests
    return proportion(int(nets.errors.values[fitted].sum()), n)


def count_panel(axes: Axes, data: xr.Dataset, config: Generalise) -> None:
    """Mean error by n, with the coupon collector's half of the unseen mass."""
    k = config.clusters
    n = data.n.values
    fine = np.geomspace(n[0] * 0.9, n[-1] * 1.1, 200)
    unseen = (1 - 1 / k) ** fine
    axes.plot(fine, unseen, **{**THEORY, "linestyle": ":"}, label=r"clusters unseen, $(1-1/k)^n$")
    axes.plot(fine, unseen / 2, **THEORY, label="half of them")
    for s, sigma in enumerate(config.sigma):
        error = data.error.sel(sigma=sigma).values
        mean = np.nanmean(error, 1)
        spread = 1.96 * np.nanstd(error, 1) / math.sqrt(error.shape[1])
        axes.errorbar(
            n * 1.04 ** (2 * s - 1), mean, spread, fmt=MARKERS[s], color=f"C{s}",
            label=rf"error, $\sigma={sigma:g}$",
        )  # fmt: skip
    least = 0.5 / (config.draws * k)
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=least)
    axes.set(ylim=(-least / 3, 4), xlabel="training points $n$ (the last is $k\\ln^2 d$)")
    axes.set_ylabel("test error")
    axes.set_title(f"fewer points: $k={k}$, $d={config.at}$, {config.draws} data sets each")
    axes.legend(loc="upper right", fontsize=9)


def law_panel(axes: Axes, data: xr.Dataset, config: Generalise) -> None:
    """Each data set's error against max(unseen positive, unseen negative)/k."""
    k, top = config.clusters, 0.1
    for s, sigma in enumerate(config.sigma):
        here = data.sel(sigma=sigma)
        mass, law = here.unseen.sum("class").values.ravel(), here.unseen.max("class").values.ravel()
        some = mass > 0
        axes.plot(
            law[some], here.error.values.ravel()[some], MARKERS[s], color=f"C{s}", alpha=0.7,
            markerfacecolor="white" if s else f"C{s}", label=rf"$\sigma={sigma:g}$",
        )  # fmt: skip
        top = max(top, float(law.max()) * 1.1)
    axes.plot([0, top], [0, top], **THEORY, label="equal")
    axes.set(xlabel=r"max(unseen positive, unseen negative)$/k$", ylabel="test error")
    axes.set_title(f"what unseen clusters cost, $k={k}$")
    axes.legend(loc="upper left")
