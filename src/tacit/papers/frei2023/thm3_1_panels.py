"""The three panels of `frei2023.thm3.1`."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.measure import proportion
from tacit.papers._panels import MARKERS, THEORY
from tacit.papers.frei2023._trained import Generalise


def draw(data: xr.Dataset, config: Generalise) -> Figure:
    """Errors of all nets, errors by the number of points, and the predicted errors."""
    figure = Figure(figsize=(15, 4.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    net_panel(left, data, config)
    count_panel(middle, data, config)
    law_panel(right, data, config)
    return figure


def net_panel(axes: Axes, data: xr.Dataset, config: Generalise) -> None:
    """The error of each net with its exact 95% interval; a triangle is its upper end where no error was seen."""
    names = list(data.net.values)
    per = len(names)
    for s, sigma in enumerate(config.sigma):
        for i in range(per):
            here = data.isel(setting=s * per + i)
            fitted = here.fitted.values.astype(bool)
            n = max(int(fitted.sum()), 1) * config.tests
            found = proportion(int(here.errors.values[fitted].sum()), n)
            at = i + 0.16 * (s - 0.5)
            label = rf"$\sigma={sigma:g}$, 95% limit" if i == 0 else None
            if found.value == 0:
                axes.plot(at, found.high, "v", color=f"C{s}", label=label)
            else:
                ends = [[found.value - found.low], [found.high - found.value]]
                axes.errorbar(at, found.value, ends, fmt=MARKERS[s], color=f"C{s}", label=label)
    size = math.ceil(config.K * math.log(config.D) ** 2)
    bound = 4 * size * config.D ** (-math.log(config.D) / 2)
    axes.axhline(bound, **THEORY, label=r"Theorem A.1: $4nd^{-\ln(d)/2}$")
    axes.set_yscale("log")
    axes.set_ylim(bound / 30, max(1e-3, 100 * bound))
    axes.set_xticks(range(per), names, rotation=35, ha="right")
    axes.set_ylabel("test error")
    axes.set_title(f"trained nets: $d={config.D}$, $k={config.K}$, $n={size}$")
    axes.legend(loc="upper right")


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
    axes.set_ylim(-least / 3, 4)
    axes.set_xlabel("training points $n$ (the last is $k\\ln^2 d$)")
    axes.set_ylabel("test error")
    axes.set_title(f"fewer points: $k={k}$, $d={config.D}$, {config.draws} data sets each")
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
    axes.set_xlabel(r"max(unseen positive, unseen negative)$/k$")
    axes.set_ylabel("test error")
    axes.set_title(f"what unseen clusters cost, $k={k}$")
    axes.legend(loc="upper left")
