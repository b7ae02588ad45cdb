"""The figure of `li2025.appendixC`: coefficients over time, active points, and what the bounds leave."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import THEORY
from tacit.papers.li2025._shared.bounds import induction, products
from tacit.papers.li2025._shared.lemmas import constants
from tacit.papers.li2025._shared.rooms import rooms
from tacit.papers.li2025.appendixC.claims import size_of
from tacit.papers.li2025.appendixC.settings import Classes
from tacit.papers.li2025.sweeps.sweep import class_growth


def draw(data: xr.Dataset, config: Classes) -> Figure:
    """Left the dynamics of one training, right the bounds in all of them."""
    figure = Figure(figsize=(12.5, 8.0))
    grid = figure.add_gridspec(2, 2, width_ratios=[1, 1])
    one = data.isel(seed=0)
    coefficients(figure.add_subplot(grid[0, 0]), one, config)
    active(figure.add_subplot(grid[1, 0]), one, config)
    of, at = size_of(data, config), constants("classes", config.k)
    rows = [*induction(of, at), *products(of, at)]
    title = rf"what trainings take of each bound, $\epsilon$ = {of.eps:.0f} (grey: an empty bound)"
    rooms(figure.add_subplot(grid[:, 1]), rows, title)
    return figure


def coefficients(axes: Axes, data: xr.Dataset, config: Classes) -> None:
    """Own lambda between its extremes with its law and Lemma C.23's window; foreign coefficients."""
    time = config.eta * data.t.values
    axes.fill_between(time, data.lam_least, data.lam_most, color="C0", alpha=0.3, linewidth=0)
    axes.plot(time, data.lam, color="C0", label=r"own $\lambda_{j,r,j}$")
    axes.plot(time, data.lam_other, color="C1", label=r"largest $|\lambda_{s,r,j}|$, $s\neq j$")
    axes.plot(time, data.foreign, color="C2", label=r"largest output of another label")
    law = [class_growth(config.d, config.k, config.n, config.h, at) for at in time]
    axes.plot(time, law, **THEORY, label=r"$q+(e^q-1)/(k-1)=\kappa\frac{d}{hk}\,\eta t$")
    low = np.maximum(np.log(time) / 4, 1e-9)
    axes.plot(time, low, **{**THEORY, "linestyle": ":"}, label=r"Lemma C.23: $\ln(\eta t)/4$")
    axes.set(xscale="log", yscale="log", ylim=(1e-4, 100), ylabel="coefficient")
    axes.set_xlabel(r"time $\eta t$")
    axes.set_title("own features grow, foreign ones stay small", fontsize="medium")
    axes.legend(loc="lower right", fontsize=8)


def active(axes: Axes, data: xr.Dataset, config: Classes) -> None:
    """Shares of active pairs over time: of neurons with points of their own and of other labels."""
    time = config.eta * data.t.values
    axes.plot(
        time, data.own_active, "o-", markersize=3, color="C0", label="points of the own label"
    )
    axes.plot(
        time, data.other_active, "s-", markersize=3, color="C1", label="points of other labels"
    )
    axes.axhline(1, **THEORY)
    axes.set(xscale="log", ylim=(-0.03, 1.08), ylabel="share of active pairs")
    axes.set_xlabel(r"time $\eta t$ (from the first step on)")
    axes.set_title(f"activation sets ($n={config.n}$, $h={config.h}$)", fontsize="medium")
    axes.legend(loc="center right", fontsize=8)
