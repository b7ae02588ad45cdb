"""The figure: robust accuracy of both nets over the radius, and the gain at each radius."""

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.crossed import crossed
from tacit.papers._shared.panels import interval_dots, rows
from tacit.papers.li2025.fig3b.claims import gains
from tacit.papers.li2025.fig3b.settings import Labels

TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "fashion-mnist": "Fashion-MNIST"}
STYLE = {2: ("C3", "s"), 10: ("C0", "o")}  # red and blue, as the paper has them
ROOM = 0.03  # of the gain's axis, below 0 and above


def draw(data: xr.Dataset, config: Labels) -> Figure:
    """Two panels."""
    figure = Figure(figsize=(9.0, 4.1))
    left, right = figure.subplots(1, 2, width_ratios=[1.35, 1])
    curves(left, data)
    gain_panel(right, data)
    name = TITLES.get(config.dataset, config.dataset)
    size = f", {config.side} × {config.side} pixels" if config.side else ""
    times = f", {config.repeats} trainings of each" if config.repeats > 1 else ""
    figure.suptitle(
        f"{name}{size}: ResNet-18 of width {config.width}, {config.epochs} epochs{times}",
        fontsize="medium",
    )
    return figure


def curves(axes: Axes, data: xr.Dataset) -> None:
    """(a) robust accuracy with 95% bands; at 0 the clean accuracy of the same points."""
    for labels, (colour, marker) in STYLE.items():
        kept = data.kept.sel(labels=labels).transpose("radius", "seed", "point").values
        value, low, high = rows(crossed(each, ends=(0.0, 1.0), known=0.0) for each in kept)
        clean = float(data.right.sel(labels=labels).mean())
        axes.fill_between(data.radius, low, high, color=colour, alpha=0.2, linewidth=0)
        label = f"{labels} labels (clean {clean:.3f})"
        axes.plot(
            data.radius, value, f"{marker}-", color=colour, label=label, clip_on=False, zorder=3
        )
    axes.set(xlim=(0, float(data.radius.max())), ylim=(0, 1.02))
    axes.set(xlabel=r"$\ell_2$ radius", ylabel="robust accuracy (first 5 or last 5 classes)")
    axes.set_title(f"(a) {data.sizes['point']:,} test images under attack")
    axes.legend(title="trained with")


def gain_panel(axes: Axes, data: xr.Dataset) -> None:
    """(b) the difference of the curves, with intervals that hold at all radii together."""
    found = gains(data, data.sizes["radius"] - 1)
    axes.axhline(0, color="0.35", linewidth=1)
    interval_dots(axes, list(found), rows(found.values()), 0, "", color="0.2")
    low, high = axes.get_ylim()
    axes.set(ylim=(min(low, -ROOM), max(high, ROOM)), xlim=(0, float(data.radius.max()) * 1.04))
    axes.set(xlabel=r"$\ell_2$ radius", ylabel="robust accuracy, 10 less 2 labels")
    axes.set_title("(b) gain; all intervals together at 95%")
