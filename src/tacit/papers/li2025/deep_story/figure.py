"""The figure: robust curves of all rows, clean accuracy beside them, and the table that joins the papers."""

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.base.estimate import Estimate
from tacit.measure import mean_of
from tacit.papers._shared.crossed import crossed
from tacit.papers._shared.panels import MARKERS, rows
from tacit.papers.li2025.deep_story.effects import (
    change,
    clean_change,
    kin,
    lean,
    robust_gain,
    sparser,
    theta_start,
)
from tacit.papers.li2025.deep_story.settings import EVERY, DeepStory
from tacit.papers.li2025.fig3b.figure import TITLES

LABELS = {
    "two": "2 labels",
    "head": "PolyReLU head",
    "control": "ReLU head",
    "throughout": "PolyReLU throughout",
    "ten": "10 labels",
    "both": "10 labels, PolyReLU head",
    "discovered": "10 discovered labels",
    "adversarial": "adversarial training",
}
STYLE = {
    **{str(row): (f"C{k}", (MARKERS + "P")[k]) for k, row in enumerate(EVERY)},
    "two": ("0.5", "s"),
}
BETTER, WORSE, OPEN = "#cfe8d5", "#f6d3cc", "white"
Change = Callable[[xr.Dataset, str], Estimate | None]


def draw(data: xr.Dataset, config: DeepStory) -> Figure:
    """Two panels above, the table below."""
    figure = Figure(figsize=(11.5, 7.6))
    grid = figure.add_gridspec(2, 2, width_ratios=[1.7, 1], height_ratios=[1.35, 1])
    curves(figure.add_subplot(grid[0, 0]), data, config)
    clean(figure.add_subplot(grid[0, 1]), data)
    table(figure.add_subplot(grid[1, :]), data, config)
    name = TITLES.get(config.dataset, config.dataset)
    size = f", {config.side} × {config.side} pixels" if config.side else ""
    times = f", {config.repeats} trainings of each" if config.repeats > 1 else ""
    told = f"{config.epochs} epochs ({config.hard_epochs} adversarial)"
    text = f"{name}{size}, first against last five classes: ResNet-18 of width {config.width}, {told}{times}"
    figure.suptitle(text, fontsize="medium")
    return figure


def curves(axes: Axes, data: xr.Dataset, config: DeepStory) -> None:
    """(a) robust accuracy with 95% bands; ticks below mark the radii of the strict attack."""
    for row in map(str, data.row.values):
        colour, marker = STYLE[row]
        kept = data.kept.sel(row=row).transpose("radius", "seed", "point").values
        value, low, high = rows(crossed(each, ends=(0.0, 1.0), known=0.0) for each in kept)
        axes.fill_between(data.radius, low, high, color=colour, alpha=0.13, linewidth=0)
        style = "--" if row == "adversarial" else "-"
        axes.plot(
            data.radius, value, marker + style, color=colour, label=LABELS[row], markersize=4.5,
            clip_on=False, zorder=3,
        )  # fmt: skip
    for radius in config.at:
        axes.axvline(radius, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
        axes.annotate(
            "strict", (radius, 1.02), xycoords=("data", "axes fraction"), ha="center", va="bottom",
            fontsize="x-small", color="0.4", annotation_clip=False,
        )  # fmt: skip
    axes.set(xlim=(0, float(data.radius.max())), ylim=(0, 1.02))
    axes.set(xlabel=r"$\ell_2$ radius", ylabel="robust accuracy")
    axes.set_title(f"(a) {data.sizes['point']:,} test images under attack", pad=16)
    axes.legend(fontsize="small")


def clean(axes: Axes, data: xr.Dataset) -> None:
    """(b) clean accuracy of all test images, a dot a training, with intervals."""
    names = [str(row) for row in data.row.values]
    for place, row in enumerate(names):
        right = data.right.sel(row=row).transpose("seed", "test").values
        colour, marker = STYLE[row]
        value, low, high = rows([crossed(right, ends=(0.0, 1.0), known=0.0)])
        across = np.vstack([value, low, high])
        axes.errorbar(
            across[0], [place], xerr=[across[0] - across[1], across[2] - across[0]], fmt=marker,
            color=colour, zorder=3,
        )  # fmt: skip
        if data.sizes["seed"] > 1:
            axes.plot(right.mean(1), [place + 0.25] * len(right), ".", color=colour, alpha=0.5)
    axes.set_yticks(range(len(names)), [LABELS[row] for row in names])
    axes.invert_yaxis()
    axes.set_xlabel("clean accuracy")
    axes.set_title(f"(b) {data.sizes['test']:,} test images, clean", pad=16)


def columns(data: xr.Dataset) -> dict[str, tuple[xr.DataArray, Change | None]]:
    """What the table has: a number a training, and its change against `two`, better where it is above 0."""
    found: dict[str, tuple[xr.DataArray, Change | None]] = {
        "robust accuracy,\nmean over radii": (
            data.kept.sel(radius=data.radius > 0).mean(("radius", "point")),
            robust_gain,
        ),
        "clean\naccuracy": (data.right.mean("test"), clean_change),
        "neurons: cosine with\nclass less half": (lean(data), lambda d, r: change(lean(d), r)),
        "features: classes\napart in a half": (data.apart, lambda d, r: change(d.apart, r)),
        "coefficients that\nimages need": (data.sparsity.mean("image"), sparser),
        r"first filters: $\theta$" + "\nwith the start": (theta_start(data), None),
    }
    if "adversarial" in data.row:
        found[r"$\theta$ with adversarial" + "\nfilters, nearest"] = (
            kin(data),
            lambda d, r: None if r == "adversarial" else change(kin(d), r),
        )
    return found


def table(axes: Axes, data: xr.Dataset, config: DeepStory) -> None:
    """(c) mean over trainings; green and red where the change against 2 labels is decided at 95%."""
    names, told = [str(row) for row in data.row.values], columns(data)
    shown = [[cell(values.sel(row=row)) for values, _ in told.values()] for row in names]
    colours = [[shade(function, data, row) for _, function in told.values()] for row in names]
    axes.axis("off")
    made = axes.table(
        shown, cellColours=colours, rowLabels=[LABELS[row] for row in names], colLabels=list(told),
        loc="center", cellLoc="center",
    )  # fmt: skip
    made.auto_set_font_size(False)
    made.set_fontsize(8.5)
    made.scale(1, 1.3)
    for (line, _), each in made.get_celld().items():
        each.set_linewidth(0.4)
        if line == 0:
            each.set_height(each.get_height() * 1.8)
    few = " (one training: images alone)" if config.repeats == 1 else ""
    axes.set_title(f"(c) against 2 labels: green better, red worse, white not decided at 95%{few}")


def cell(values: xr.DataArray) -> str:
    """The mean over trainings, with half its interval where there are several."""
    found = mean_of(values.values)
    more = f" ± {found.spread:.2g}" if np.isfinite(found.spread) else ""
    return f"{found.value:.3f}{more}"


def shade(function: Change | None, data: xr.Dataset, row: str) -> str:
    """By the side of 0 on which all of the interval is."""
    found = None if function is None or row == "two" else function(data, row)
    if found is None or not np.isfinite(found.low):
        return OPEN
    return BETTER if found.low > 0 else WORSE if found.high < 0 else OPEN
