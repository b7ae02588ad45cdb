"""The figure of `li2025.story`: a row a classifier, ordered by its typical critical radius."""

import math

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from tacit.papers._shared.panels import THEORY
from tacit.papers.li2025.story.settings import Story
from tacit.papers.li2025.story.theory import landmarks

NAMES = {
    "two": "ReLU, 2 labels",
    "noisy": "ReLU, 2 labels, noise added",
    "f_FA": r"$f_{FA}$ (class averages)",
    "attacked": "ReLU, 2 labels, adversarial",
    "f_dec": r"$f_{dec}$ ($f=0$ breaks)",
    "nearest": "1-nearest neighbour",
    "poly": "PolyReLU, 2 labels",
    "strict": r"$f_{dec}$ ($f=0$ keeps)",
    "classes": "ReLU, $k$ labels",
    "bayes": "Bayes rule",
}
# trained with 2 labels, trained otherwise, not trained
COLOURS = {"two": "C1", "noisy": "C1", "attacked": "C1", "poly": "C0", "classes": "C2"}
TALL = 0.85  # of a row


def draw(data: xr.Dataset, config: Story) -> Figure:
    """Densities of the radii of all data sets, the median of each, and what theory marks.

    Rows go from the largest typical median (the median over data sets) down.
    """
    unit = math.sqrt(config.d)
    typical = data["median"].median("seed", skipna=True).values
    order = np.argsort(typical, kind="stable")[::-1]
    figure = Figure(figsize=(7.6, 5.6))
    axes = figure.subplots()
    widest = 1.12 * max(landmarks(config)[1] / unit, 0.75)
    grid = np.linspace(0, widest, 400)
    names = []
    for row, index in enumerate(order):
        key = str(data.classifier.values[index])
        here = data.isel(classifier=index)
        colour, base = COLOURS.get(key, "0.45"), len(order) - 1 - row
        middle = (here.lower + here.upper).values.ravel() / 2 / unit
        heights = density(middle[~np.isnan(middle)], grid)
        axes.fill_between(
            grid, base, base + TALL * heights, color=colour, alpha=0.35, linewidth=0, zorder=2 + row
        )
        axes.plot(grid, base + TALL * heights, color=colour, linewidth=1.2, zorder=2 + row)
        each = np.minimum(here["median"].dropna("seed").values / unit, widest)
        axes.plot(each, [base] * len(each), "o", color=colour, markersize=3.5, alpha=0.8, zorder=30)
        value = typical[index] / unit
        shown = min(value, widest)
        axes.plot(shown, base, "o", color=colour, markeredgecolor="white", markersize=7, zorder=31)
        theory = float(here.theory) / unit
        if theory < widest:
            axes.plot(
                [theory] * 2, [base - 0.14, base + 0.3], color="black", linewidth=1.3, zorder=32
            )
        axes.annotate(
            f"{value:.3f}", (1.01, base + 0.1), xycoords=("axes fraction", "data"), fontsize=9
        )
        found = here.learned.dropna("seed")
        share = (
            f"\nall clusters in {int((found >= config.k).sum())} of {found.size}"
            if found.size
            else ""
        )
        names.append(NAMES[key] + share)
    near, far = (mark / unit for mark in landmarks(config))
    factor = "" if config.cosine == 0 else r"\,(1-c)"
    marks = [(near, rf"$\sqrt{{d{factor}/k}}$"), (far, rf"$\sqrt{{d{factor}/2}}$")]
    if config.cosine == 0:
        marks.append((0.5, r"$\sqrt{d}/2$"))
    for at, name in marks:
        axes.axvline(at, **THEORY)
        axes.annotate(name, (at, 1.01), xycoords=("data", "axes fraction"), ha="center")
    axes.annotate("median", (1.01, 1.01), xycoords="axes fraction", fontsize=9)
    axes.set_yticks(range(len(order))[::-1], names)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, widest)
    axes.set_ylim(-0.3, len(order) + 0.1)
    axes.set_xlabel(r"robust $\ell_2$ radius of a test point, in $\sqrt{d}$")
    shape = "" if config.noise == "gaussian" else f" ({config.noise})"
    axes.set_title(
        f"$k$ = {config.k} clusters ($k_1$ = {config.k1}), $d$ = {config.d}, $n$ = {config.n}, "
        rf"$\sigma$ = {config.sigma:g}{shape}", pad=24,
    )  # fmt: skip
    axes.plot([], [], "o", color="0.35", label="median (small: of each data set)")
    axes.plot([], [], "|", color="black", markersize=9, markeredgewidth=1.3, label="theory")
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def density(
    values: np.ndarray[tuple[int], np.dtype[np.float64]],
    grid: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A kernel estimate scaled to height 1; points that nothing breaks are at the right end."""
    seen = np.minimum(values, grid[-1])
    if len(seen) < 2 or np.ptp(seen) < 1e-9:
        return np.where(np.abs(grid - seen[0]) < grid[1], 1.0, 0.0)
    found = gaussian_kde(seen)(grid)
    return np.asarray(found / found.max())
