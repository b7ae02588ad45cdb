"""The four panels of `li2025.lemma5`."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import THEORY
from tacit.papers.li2025.lemma5.settings import Coefficients


def draw(data: xr.Dataset, config: Coefficients) -> Figure:
    """The recursions' errors, lambda over time, margins and their gaps, activation sets."""
    data = data.isel(seed=0)  # one training of several
    figure = Figure(figsize=(11, 7.6))
    panels = figure.subplots(2, 2)
    recursion_panel(panels[0, 0], data)
    growth_panel(panels[0, 1], data, config)
    margin_panel(panels[1, 0], data, config)
    active_panel(panels[1, 1], data, config)
    return figure


def recursion_panel(axes: Axes, data: xr.Dataset) -> None:
    """Relative error of the rebuilt weights, as they should read and as printed."""
    t = data.step.values[1:]
    axes.plot(t, data.as_printed.values[1:], "s-", color="C3", label="(2), (3) as printed")
    axes.plot(
        t, data.recursion.values[1:], "o-", color="C0", label=r"with $\ell'_i$ of Appendix A.3"
    )
    axes.plot(t, data.bias_error.values[1:], "^-", color="C2", label="biases")
    axes.axhline(1e-12, **THEORY)
    axes.annotate(r"$10^{-12}$", (t[0], 1.7e-12), color="0.35")
    axes.set(xscale="log", yscale="log", ylim=(1e-17, 30), xlabel="step $t$")
    axes.set(ylabel="relative error of a neuron", title="weights rebuilt from the coefficients")
    axes.legend(loc="center right")


def growth_panel(axes: Axes, data: xr.Dataset, config: Coefficients) -> None:
    """lambda of own features between its extremes, with the law and the paper's log(eta t)."""
    t = data.t.values
    time = config.eta * t
    seen = t > 0
    axes.fill_between(
        time[seen], data.lam_least[seen], data.lam_most[seen], color="C0", alpha=0.25, linewidth=0
    )
    axes.plot(time[seen], data.lam[seen], color="C0", label=r"$\lambda_{s,r,j}$, own features")
    axes.plot(
        time[seen],
        data.lam_other[seen],
        color="C1",
        label=r"$|\lambda_{s,r,j}|$, others'",
    )
    axes.plot(
        time[seen], data.theory[seen], **THEORY, label=r"$q+e^q-1=\kappa\,\frac{d}{mk}\,\eta t$"
    )
    late = time >= 1
    axes.plot(
        time[late], np.log(time[late]), **{**THEORY, "linestyle": ":"}, label=r"$\log(\eta t)$"
    )
    for at, name in (
        (config.eta * config.T_long, "steps of size $\\eta$ end"),
        (1.0, "$T=1/\\eta$"),
    ):
        axes.axvline(at, color="0.8", linewidth=1, zorder=0)
        axes.annotate(
            name,
            (at, 0.45 if at == 1.0 else 0.9),
            xycoords=("data", "axes fraction"),
            xytext=(-3, 0) if at == 1.0 else (3, 0),
            textcoords="offset points",
            ha="right" if at == 1.0 else "left",
            fontsize=8,
            color="0.4",
        )
    axes.set(xscale="log", xlabel=r"time $\eta t$", ylabel="coefficient")
    axes.set_title(r"$\lambda$ is $\log(\eta t\,d/(mk))$")
    axes.legend(loc="upper left", fontsize=8)


def margin_panel(axes: Axes, data: xr.Dataset, config: Coefficients) -> None:
    """Margins and their largest gaps, in all and within a cluster."""
    t = data.t.values
    seen, time = t > 0, config.eta * t[t > 0]
    axes.plot(time, data.margin[seen], color="C0", label="mean margin $q$")
    axes.plot(time, data.gap[seen], color="C3", label=r"largest gap $\Delta_q$")
    axes.plot(time, data.gap_hat[seen], color="C1", label=r"largest $\hat\Delta_q$")
    axes.plot(
        time, data.gap_hat_same[seen], color="C2", label=r"largest $\hat\Delta_q$ in a cluster"
    )
    axes.set(xscale="log", yscale="log", ylim=(1e-4, 60), xlabel=r"time $\eta t$", ylabel="margin")
    axes.set_title("margins keep their proportions")
    axes.legend(loc="lower right", fontsize=8)


def active_panel(axes: Axes, data: xr.Dataset, config: Coefficients) -> None:
    """Shares of active pairs (neuron, point), from the start (at the left edge) on."""
    t = data.t.values
    time = config.eta * np.where(t > 0, t, 0.5)
    axes.plot(
        time, data.own_active, "o-", markersize=3, color="C0", label="points of the neuron's label"
    )
    axes.plot(
        time, data.other_active, "s-", markersize=3, color="C1", label="points of the other label"
    )
    axes.axhline(1, **THEORY)
    axes.set(xscale="log", ylim=(-0.03, 1.08), xlabel=r"time $\eta t$ (the start at the left edge)")
    axes.set_ylabel("share of active pairs")
    axes.set_title(f"activation sets ($n={config.n}$, $2m={2 * config.m}$ neurons)")
    axes.set_xlim(left=float(time[0]) / math.sqrt(2))
    axes.legend(loc="center right")
