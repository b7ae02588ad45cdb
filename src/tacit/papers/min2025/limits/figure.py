"""The figure of `min2025.limits`."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.measure import mean_of
from tacit.papers._shared.panels import MARKERS, THEORY, interval_dots, rows
from tacit.papers.min2025.limits.claims import predicted
from tacit.papers.min2025.limits.settings import Limits


def figure(data: xr.Dataset, config: Limits) -> Figure:
    """The least init over p, the controls, and predicted against measured."""
    page = Figure(figsize=(13.2, 4.4))
    window, control, compared = page.subplots(1, 3)
    least_init(window, data, config)
    controls(control, data, config)
    agreement(compared, data)
    return page


def least_init(axes: Axes, data: xr.Dataset, config: Limits) -> None:
    """The critical p over the init for each noise, the law dashed: centres are learned above it."""
    noisy = data.sel(setting=data.role == "noise")
    for index, alpha in enumerate(config.alpha):
        curve(axes, noisy.isel(setting=index), index, rf"$\alpha$ = {alpha:g}")
    axes.plot([], [], **THEORY, label="predicted before any point is drawn")
    axes.set_title(f"Noise and unequal counts (ratio {config.ratio:g})")
    finish(axes, data)


def controls(axes: Axes, data: xr.Dataset, config: Limits) -> None:
    """The same without noise, and with equal counts."""
    equal = f"equal counts, $\\alpha$ = {config.equal_alpha:g}"
    for index, (role, label) in enumerate(
        (("still", "no noise, unequal counts"), ("equal", equal))
    ):
        curve(axes, data.sel(setting=data.role == role).isel(setting=0), index, label, points=True)
    axes.plot([], [], **THEORY, label="predicted on the points")
    axes.set_title("Controls: no noise, or equal counts")
    finish(axes, data)


def curve(axes: Axes, at: xr.Dataset, index: int, label: str, *, points: bool = False) -> None:
    """Means over seeds with their intervals, and the prediction dashed in the same colour."""
    scale = -np.log10(at.init.values)
    guess = predicted(at) if points else np.maximum(at.law_p, at.aligned_p)
    axes.plot(scale, guess.mean("seed"), **{**THEORY, "color": f"C{index}"})
    ends = rows(mean_of(at.p.sel(init=init).values) for init in at.init.values)
    ends = np.where(np.isfinite(ends), ends, ends[0])  # equal values have no interval
    interval_dots(axes, scale, ends, index, label)


def finish(axes: Axes, data: xr.Dataset) -> None:
    """The axes that both have in common: the init falls to the right, p from 1.9 on."""
    axes.axhline(2, color="0.35", linewidth=0.8)
    axes.set_xscale("log")
    ticks = -np.log10(data.init.values)
    axes.set_xticks(ticks, [f"$10^{{-{tick:.0f}}}$" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(1.9, float(np.nanmax([data.p.max(), data.law_p.max()])) + 0.6)
    axes.set(xlabel="sd of the initial weights", ylabel="$p$ from which on centres are learned")
    axes.legend(loc="upper left")


def agreement(axes: Axes, data: xr.Dataset) -> None:
    """Every data set and init: measured over predicted p; unseen settings in colour."""
    seen = data.sel(setting=data.role == "noise")
    told = "settings of the left panel"
    axes.plot(predicted(seen).values.ravel(), seen.p.values.ravel(), ".", color="0.75", label=told)
    unseen = data.sel(setting=data.role == "unseen")
    for index, name in enumerate(unseen.setting.values):
        at = unseen.sel(setting=name)
        axes.plot(
            predicted(at).values.ravel(), at.p.values.ravel(), MARKERS[index % len(MARKERS)],
            color=f"C{index}", markersize=4, label=str(name).replace("alpha", r"$\alpha$"),
        )  # fmt: skip
    ends = [2.0, float(np.nanmax([data.p.max(), predicted(data).max()]))]
    axes.plot(ends, ends, **THEORY)
    axes.set(xlabel="predicted $p$", ylabel="measured $p$", ylim=(1.9, ends[1] + 1.2))
    axes.set_title("Unseen settings, every data set and init")
    axes.legend(loc="upper left", fontsize=7)
