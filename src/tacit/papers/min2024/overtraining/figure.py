"""The panels of `overtraining`."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from tacit.papers._shared.panels import MARKERS
from tacit.papers.min2024.overtraining.claims import LITTLE, regret
from tacit.papers.min2024.overtraining.looks import INDICATORS

NAMES = {"loss": "held-out loss", "accuracy": "clean accuracy", "distance": "margin / gradient",
         "margin": "margin / size"}  # fmt: skip

WIDEST = 0.4  # of few points, the range says nothing


def line(axes: Axes, values: xr.DataArray, index: int, label: str) -> None:
    """The mean over trainings, and (where it does not fill the panel) their range, over epochs."""
    mean = values.mean("seed")
    low, high = values.min("seed"), values.max("seed")
    if float((high - low).mean()) < WIDEST:
        axes.fill_between(values.epoch, low, high, color=f"C{index}", alpha=0.15, linewidth=0)
    axes.plot(
        values.epoch, mean, f"{MARKERS[index]}-", color=f"C{index}", markersize=4, label=label
    )


def over_epochs(axes: Axes, data: xr.Dataset, name: str, title: str, *, log: bool = False) -> None:
    """One quantity for each p."""
    for index, p in enumerate(data.p.values):
        line(axes, data[name].sel(p=p), index, f"$p$ = {p:g}")
    axes.set_xscale("log")
    axes.set_xticks(data.epoch.values, [str(e) for e in data.epoch.values])
    axes.minorticks_off()
    if name == "robust":
        axes.set_ylabel("share of test points")
    if log:
        axes.set_yscale("log")
    axes.set_xlabel("epoch")
    axes.set_title(title)


def robust_panel(axes: Axes, data: xr.Dataset, title: str) -> None:
    """Robust accuracy, a ring at the best epoch of each p."""
    with_mean = data.assign(robust=data.kept.mean(("row", "point")))
    over_epochs(axes, with_mean, "robust", title)
    for index, p in enumerate(data.p.values):
        mean = with_mean.robust.sel(p=p).mean("seed")
        best = int(mean.argmax("epoch"))
        axes.plot(
            mean.epoch[best],
            mean[best],
            "o",
            markersize=12,
            markerfacecolor="none",
            color=f"C{index}",
        )
    axes.legend(fontsize="small")


def proved_panel(axes: Axes, data: xr.Dataset, radius: float, title: str) -> None:
    """At the radius of proofs: proved, and (dashed) left by the attack, on the same points."""
    shares = data.assign(share=data.proved.mean("sure"))
    title += rf": $\ell_2$ radius {radius:g}, proved (dashed: attacked)"
    over_epochs(axes, shares, "share", title)
    for index, p in enumerate(data.p.values):
        left = data.left.sel(p=p).mean(("sure", "seed"))
        axes.plot(left.epoch, left, "--", color=f"C{index}", linewidth=1.2)


def regret_panel(axes: Axes, data: xr.Dataset, title: str) -> None:
    """What stopping by each indicator loses, for each p, next to training to the end."""
    ps, width = data.p.values, 0.8 / (len(INDICATORS) + 1)
    kept = data.kept.mean("row")
    best = data.kept.mean(("row", "point", "seed")).idxmax("epoch")
    end = (kept.sel(epoch=best) - kept.isel(epoch=-1)).mean(("seed", "point"))
    bars = {NAMES[name]: regret(data, name).mean(("seed", "point")) for name in INDICATORS}
    for k, (name, values) in enumerate((bars | {"to the end": end}).items()):
        axes.bar(
            np.arange(len(ps)) + (k - len(INDICATORS) / 2) * width,
            values,
            width,
            color=f"C{k}",
            label=name,
        )
    axes.axhline(LITTLE, linestyle="--", color="0.35", linewidth=1.2)
    axes.set_xticks(range(len(ps)), [f"{p:g}" for p in ps])
    axes.set_xlabel("$p$")
    axes.set_title(title)
    axes.set_ylim(top=1.35 * axes.get_ylim()[1])  # room for the legend
    axes.legend(fontsize="x-small", ncols=3, loc="upper center")
