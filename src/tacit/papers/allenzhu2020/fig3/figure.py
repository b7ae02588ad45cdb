"""The panels of Figure 3: activations, radii, robust accuracy and noise."""

import math
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import MARKERS, THEORY
from tacit.papers.allenzhu2020.fig3.settings import WarmUp

NAMES = {
    "linear": "linear",
    "thresholded": "thresholded",
    "relu": "ReLU pairs",
    "any": "limit of every model",
}
COLOURS = {"linear": "C1", "thresholded": "C0", "relu": "C2", "any": "0.25"}


def draw(data: xr.Dataset, config: WarmUp) -> Figure:
    """Figure 3, and what it means: radii over d, robust accuracy over the radius, accuracy over the noise."""
    figure = Figure(figsize=(10.4, 7.4))
    (first, second), (third, fourth) = figure.subplots(2, 2)
    activation_panel(first, config)
    radius_panel(second, data, config)
    robust_panel(third, data, config)
    noise_panel(fourth, data, config)
    return figure


def activation_panel(axes: Axes, config: WarmUp) -> None:
    """What each model makes of one feature's t = <M_i, x>, over the law of noise and signal."""
    d = max(config.d)
    k = config.k(d)
    unit = 1 / math.sqrt(k)
    t = np.linspace(-1.6 * unit, 1.6 * unit, 801)
    b = unit / 2
    axes.axvspan(-b, b, color="0.92", zorder=0)
    axes.plot(t, t, color=COLOURS["linear"], label="linear")
    # wide, so that it shows beside the two that it coincides with
    wide: dict[str, Any] = {
        "color": COLOURS["thresholded"],
        "linewidth": 5,
        "alpha": 0.5,
        "solid_capstyle": "butt",
    }
    jump = np.where(np.abs(t) >= b, t, np.nan)
    axes.plot(t, np.where(np.isnan(jump), 0, np.nan), **wide)
    axes.plot(t, jump, label="thresholded", **wide)
    axes.plot(t, np.clip(t - b, 0, None) - np.clip(-t - b, 0, None), color=COLOURS["relu"],
              label="ReLU pairs")  # fmt: skip
    noise = np.exp(-(t**2) * d / 2)
    axes.fill_between(
        t, -1.6 * unit, -1.6 * unit + 0.8 * unit * noise, color="0.55", alpha=0.5, linewidth=0
    )
    axes.annotate(r"noise, $\sigma_x=1$", (0, -1.55 * unit), xytext=(24, 8), textcoords="offset points",
                  fontsize="small", color="0.35")  # fmt: skip
    for sign in (-1, 1):
        axes.axvspan(sign * unit, sign * 1.5 * unit, color="C3", alpha=0.12, linewidth=0)
    axes.annotate("signal", (1.25 * unit, -1.5 * unit), ha="center", fontsize="small", color="C3")
    axes.set_xticks(
        [-unit, -b, 0, b, unit], [r"$-1/\sqrt{k}$", r"$-b$", "0", r"$b$", r"$1/\sqrt{k}$"]
    )
    axes.set(xlabel=r"feature $t_i=\langle M_i,x\rangle$", ylabel="what the model keeps")
    axes.set_yticks([0])
    axes.set(ylim=(-1.6 * unit, 1.6 * unit), xlim=(t[0], t[-1]))
    axes.set_title(f"small features are zeroed out ($d$ = {d:,}, $k$ = {k:.0f})")
    axes.legend(loc="upper left", fontsize="small")


def radius_panel(axes: Axes, data: xr.Dataset, config: WarmUp) -> None:
    """Critical radii over d, with the orders d^-1/2 and k^-1/2."""
    middle = data.radius.sel(end="upper").median("point")
    for index, name in enumerate(data.model.values):
        axes.plot(data.d, middle.sel(model=name), MARKERS[index] + "-", color=COLOURS[name], label=NAMES[name],
                  zorder=3)  # fmt: skip
    fine = np.geomspace(min(config.d), max(config.d), 50)
    start = float(middle.sel(model="linear")[0]) * math.sqrt(config.d[0])
    axes.plot(fine, start / np.sqrt(fine), **THEORY)
    begin = float(middle.sel(model="thresholded")[0]) * math.sqrt(config.k(config.d[0]))
    axes.plot(fine, begin / np.sqrt(fine**config.power), **THEORY)
    axes.annotate(r"$d^{-1/2}$", (fine[-1], start / math.sqrt(fine[-1])), xytext=(-30, 6),
                  textcoords="offset points")  # fmt: skip
    axes.annotate(r"$k^{-1/2}$", (fine[-1], begin * fine[-1] ** (-config.power / 2)), xytext=(-30, -14),
                  textcoords="offset points")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="dimension $d$", ylabel=r"critical $\ell_2$ radius")
    axes.set_xticks(list(config.d), [f"{d:,}" for d in config.d])
    axes.minorticks_off()
    axes.set_title(rf"no noise, $k=d^{{{config.power:g}}}$")
    axes.legend(loc="lower left", fontsize="small")


def robust_panel(axes: Axes, data: xr.Dataset, config: WarmUp) -> None:
    """Robust accuracy over the radius in units of 1/sqrt(k) at the largest d."""
    d = max(config.d)
    root = math.sqrt(config.k(d))
    fine = np.linspace(0, 2.5, 501)
    for name in data.model.values:
        found = data.radius.sel(d=d, model=name)
        ends = [
            (found.sel(end=end).values[:, None] * root > fine).mean(0) for end in ("lower", "upper")
        ]
        style = "--" if name == "any" else "-"
        axes.fill_between(fine, *ends, color=COLOURS[name], alpha=0.3, linewidth=0)
        axes.plot(fine, ends[1], color=COLOURS[name], label=NAMES[name], linestyle=style)
    axes.set(xlim=(0, 2.5), ylim=(0, 1.03), xlabel=r"$\ell_2$ radius in units of $1/\sqrt{k}$")
    axes.set_ylabel("robust accuracy (exact)")
    axes.set_title(f"robustness without noise, $d$ = {d:,}")
    axes.legend(loc="upper right", fontsize="small")


def noise_panel(axes: Axes, data: xr.Dataset, config: WarmUp) -> None:
    """Clean accuracy over sigma_x at the largest d."""
    d, n = max(config.d), config.samples
    at = data.sel(d=d).sortby("sigma_x")
    axes.plot(
        at.sigma_x, at.linear_chance.mean("sample"), "o-", color=COLOURS["linear"], label="linear"
    )
    for index, degree in enumerate(degree for degree in config.degrees if degree > 1):
        share, style = at.polynomial.sel(degree=degree) / n, MARKERS[index + 1] + ":"
        axes.plot(
            at.sigma_x, share, style, color=f"C{index + 3}", label=f"polynomial, degree {degree}"
        )
    for name in ("thresholded", "relu"):
        axes.plot(at.sigma_x, at[name] / n, "D-" if name == "thresholded" else "v-", color=COLOURS[name],
                  label=NAMES[name])  # fmt: skip
    axes.set(
        xscale="log", ylim=(0.48, 1.02), xlabel=r"noise $\sigma_x$ (the signal has length about 1)"
    )
    ticks = sorted(config.sigma_x)
    axes.set_xticks(ticks, [f"{sigma:g}" for sigma in ticks])
    axes.minorticks_off()
    axes.set_ylabel("clean accuracy")
    axes.set_title(f"noise, $d$ = {d:,}")
    axes.legend(loc="lower left", fontsize="small")
