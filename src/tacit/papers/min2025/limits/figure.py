"""The figure of `min2025.limits`."""

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import MARKERS, THEORY, interval_dots
from tacit.papers.min2025.limits.claims import predicted
from tacit.papers.min2025.limits.settings import LARGEST, Limits


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
    """Medians over seeds with their range, and the prediction dashed in the same colour."""
    scale = -np.log10(at.init.values)
    guess = predicted(at) if points else np.maximum(at.law_p, at.aligned_p)
    axes.plot(scale, guess.median("seed"), **{**THEORY, "color": f"C{index}"})
    ends = np.stack([at.p.median("seed"), at.p.min("seed"), at.p.max("seed")])
    interval_dots(axes, scale, ends, index, label)


def finish(axes: Axes, data: xr.Dataset) -> None:
    """The axes that both have in common: the init falls to the right, p from 1.9 on."""
    axes.axhline(2, color="0.35", linewidth=0.8)
    axes.set_xscale("log")
    ticks = -np.log10(data.init.values)
    axes.set_xticks(ticks, [f"$10^{{-{tick:.0f}}}$" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(1.9, highest(data) + 0.6)
    axes.set(xlabel="sd of the initial weights", ylabel="$p$ from which on centres are learned")
    axes.legend(loc="upper left", title="median and range of data sets", alignment="left")


def agreement(axes: Axes, data: xr.Dataset) -> None:
    """Every data set and init: measured over predicted p; unseen settings in colour."""
    seen, top = data.sel(setting=data.role == "noise"), highest(data)
    told = "settings of the left panel"
    axes.plot(predicted(seen).values.ravel(), below(seen.p, top), ".", color="0.75", label=told)
    unseen = data.sel(setting=data.role == "unseen")
    for index, name in enumerate(unseen.setting.values):
        at = unseen.sel(setting=name)
        axes.plot(
            predicted(at).values.ravel(), below(at.p, top), MARKERS[index % len(MARKERS)],
            color=f"C{index}", markersize=4, label=str(name).replace("alpha", r"$\alpha$"),
        )  # fmt: skip
    tried = data.sel(setting=data.role.isin(["noise", "unseen"]))
    cut = predicted(tried).values[tried.p.values > top]
    if len(cut):
        told = f"none up to $p$ = {LARGEST:g}"
        axes.plot(cut, np.full(len(cut), top), "^", color="0.3", markersize=4, label=told)
    axes.plot([2.0, top], [2.0, top], **THEORY)
    axes.set(xlabel="predicted $p$", ylabel="measured $p$", ylim=(1.9, top + 1.2))
    axes.set_title("Unseen settings, every data set and init")
    axes.legend(loc="upper left", fontsize=7)


def highest(data: xr.Dataset) -> float:
    """The largest p to be drawn: what was cut at LARGEST is told apart, or off the axes."""
    seen = data.p.values[data.p.values < LARGEST]
    return float(max([*seen, data.law_p.max(), predicted(data).where(data.p < LARGEST).max()]))


def below(p: xr.DataArray, top: float) -> npt.NDArray[np.float64]:
    """All values in a row, without those above the top."""
    return np.asarray(p.where(p <= top).values.ravel())
