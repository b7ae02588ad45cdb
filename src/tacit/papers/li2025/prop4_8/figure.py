"""The two panels of `li2025.prop4.8`."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import THEORY, interval_dots
from tacit.papers.li2025.prop4_8.settings import MultiClass


def draw(data: xr.Dataset, config: MultiClass) -> Figure:
    """Radii by k with the theory's curves, and robust accuracy by radius."""
    figure = Figure(figsize=(10.5, 4))
    left, right = figure.subplots(1, 2)
    radius_panel(left, data)
    curve_panel(right, data, config)
    return figure


def radius_panel(axes: Axes, data: xr.Dataset) -> None:
    """Median radius, the crossing along the proof's direction, and the proof's own length."""
    K = data.K.values.astype(float)
    fine = np.geomspace(K.min() * 0.85, K.max() * 1.18, 200)
    axes.plot(fine, 2 / np.sqrt(fine + 6), **THEORY, label=r"$2/\sqrt{k+6}$")
    axes.plot(
        fine,
        2 * np.sqrt(fine) / (fine + 2),
        **{**THEORY, "linestyle": ":"},
        label=r"$2\sqrt{k}/(k+2)$",
    )
    axes.plot(fine, 1 / np.sqrt(fine), **{**THEORY, "linestyle": "-."}, label=r"$1/\sqrt{k}$")
    interval_dots(axes, K, data["median"].transpose("end", "K").values, 0, "radius of the net")
    interval_dots(
        axes, K, data.along.transpose("end", "K").values, 1, "along the proof's direction"
    )
    axes.plot(K, data.proof_length.values, "^", color="C2", label="the proof's perturbation")
    axes.axhline(1, color="0.7", linewidth=1)
    axes.annotate(r"$\Vert\mu\Vert$", (fine[-1], 1.03), ha="right", va="bottom", color="0.4")
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(K, [f"{k:g}" for k in K])
    axes.set_yticks([0.1, 0.2, 0.5, 1, 2], ["0.1", "0.2", "0.5", "1", "2"])
    axes.minorticks_off()
    axes.set(ylim=(0.085, 4), xlabel="clusters $k$", ylabel=r"$\ell_2$ length$/\sqrt{d}$")
    axes.set_title("what breaks the accurate multi-class net")
    axes.legend(loc="lower left", fontsize=8, ncols=2)


def curve_panel(axes: Axes, data: xr.Dataset, config: MultiClass) -> None:
    """Robust accuracy between the certificate and the attack; dashed lines at 2/sqrt(k+6)."""
    x = data.radius.values
    for index, K in enumerate(config.K):
        lower, upper = data.kept.sel(K=K).transpose("side", "radius").values / config.attacked
        axes.fill_between(x, lower, upper, color=f"C{index}", alpha=0.3, linewidth=0)
        axes.plot(x, upper, color=f"C{index}", label=f"$k={K}$")
        axes.axvline(2 / math.sqrt(K + 6), **{**THEORY, "color": f"C{index}"})
    axes.set(xlim=(0, x[-1]), ylim=(0, 1.03), xlabel=r"$\ell_2$ radius$/\sqrt{d}$")
    axes.set(ylabel="robust accuracy", title=r"robust accuracy (dashed: $2/\sqrt{k+6}$)")
    axes.legend(loc="upper right")
