"""The two panels of `allenzhu2020.thm5.1`."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import mark
from tacit.papers.allenzhu2020._shared.settings import VARIANTS
from tacit.papers.allenzhu2020.thm5_1.settings import CleanTraining


def draw(data: xr.Dataset, config: CleanTraining) -> Figure:
    """Accuracy along M w*, and the other settings."""
    figure = Figure(figsize=(10.4, 4.2))
    left, right = figure.subplots(1, 2, width_ratios=[1.2, 1])
    curve_panel(left, data, config)
    settings_panel(right, data, config)
    return figure


def curve_panel(axes: Axes, data: xr.Dataset, config: CleanTraining) -> None:
    """Accuracy over tau: every training, and those that went on."""
    radii = [0.0, *config.radii]
    clean, longer = (
        np.concatenate([held.mean("point").values[:, None], curve.values], 1)
        for held, curve in ((data.clean, data.curve), (data.longer_clean, data.longer_curve))
    )
    for rows, colour, style, label in (
        (clean, "C0", "-", f"clean training, {len(clean)} nets"),
        (longer, "C1", ":", f"{config.times} times the steps, {len(longer)} nets"),
    ):
        order = np.argsort(radii)
        for i, row in enumerate(rows):
            axes.plot(np.array(radii)[order], row[order], style, color=colour, linewidth=1.4,
                      label=label if i == 0 else None)  # fmt: skip
    mark(axes, config.tau, rf"$\tau$ = {config.tau:g}", 0.55)
    axes.set(ylim=(-0.02, 1.04), xlim=(0, max(radii)))
    axes.set(xlabel=r"length $\tau$ of the perturbation", ylabel="accuracy")
    axes.set_title(r"one direction breaks every net: $x-\tau\,y\,Mw^\star/\|Mw^\star\|$")
    axes.legend(loc="upper right", fontsize="small")


def settings_panel(axes: Axes, data: xr.Dataset, config: CleanTraining) -> None:
    """Clean and perturbed accuracy in each setting."""
    names = ["this setting", *(VARIANTS[name][0] for name in config.variants)]
    rows = [("clean", "C0", "o"), ("universal", "C3", "s")]
    at = np.arange(len(names))[::-1]
    for kind, colour, marker in rows:
        values = [data[kind].mean("point").values]
        values += [
            data[f"variant_{kind}"].sel(variant=name).mean("point").values
            for name in config.variants
        ]
        for place, these in zip(at, values, strict=True):
            axes.plot(
                these, np.full(len(these), place), marker, color=colour, markersize=5, alpha=0.6
            )
        label = "as drawn" if kind == "clean" else rf"perturbed, $\tau$ = {config.tau:g}"
        axes.plot([], [], marker, color=colour, label=label)
    axes.set_yticks(at, names, fontsize="small")
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.6, len(names) - 0.4), xlabel="accuracy")
    axes.set_title("other data")
    axes.legend(loc="center", fontsize="small")
