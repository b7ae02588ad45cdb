"""How the matrices of `li2025.fig2ab` and of the ablations are read and drawn, theory beside measurement."""

import math

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.image import AxesImage
from scipy.special import wrightomega

from tacit.papers._shared.panels import MARKERS, THEORY, mark
from tacit.papers.li2025.matrices.settings import Ablation, Labels, Setting, Varied

NAMES: dict[Varied, str] = {
    "n": "n",
    "eta": "eta",
    "init": "sigma_w = sigma_b",
    "snr": "alpha/sigma",
    "cosine": "cos(mu_i, mu_j)",
}
SYMBOLS: dict[Varied, str] = {
    "n": "$n$",
    "eta": r"$\eta$",
    "init": r"$\sigma_w=\sigma_b$",
    "snr": r"$\alpha/\sigma$",
    "cosine": r"$\cos(\mu_i,\mu_j)$",
}
LEGIBLE = 12  # rows or columns of a matrix with numbers in its cells


def draw(data: xr.Dataset, config: Labels | Ablation) -> Figure:
    """Figure 2 (a, b), or an ablation."""
    return draw_labels(data, config) if isinstance(config, Labels) else draw_values(data, config)


def of_class(cosine: xr.DataArray, *, own: bool) -> xr.DataArray:
    """The entries of features of the neuron's own class, or of the other; NaN elsewhere."""
    return cosine.where((cosine.feature_sign == cosine.neuron_sign) == own)


def halves(figure: Figure) -> tuple[SubFigure, SubFigure]:
    """Above the matrices, below the curves."""
    top, bottom = np.asarray(figure.subfigures(2, 1, height_ratios=(1, 0.95)))
    return top, bottom


def draw_labels(data: xr.Dataset, config: Labels) -> Figure:
    """The matrices of one data set above; below, every entry of all data sets against its prediction."""
    count = 1 + len(config.h)
    figure = Figure(figsize=(max(2.65 * count, 9), 6.1))
    top, bottom = halves(figure)
    top.suptitle(setup(config), fontsize="medium")
    axes = top.subplots(1, count, squeeze=False)[0]
    first = data.isel(seed=0)
    image = heat_map(axes[0], first.cosine.values, 1.0, "(a) 2 labels", r"neuron $w_j$")
    for panel, h in zip(axes[1:], config.h, strict=True):
        title = f"(b) {config.k} labels, $h$ = {h}"
        heat_map(panel, first.mean_weight.sel(h=h).values, 1.0, title, r"mean weight $w_j$")
    top.colorbar(image, ax=axes, shrink=0.8, pad=0.01, label=r"$\cos(\mu_i, w_j)$")
    own, other = (
        (of_class(data.cosine, own=own), of_class(data.theory, own=own)) for own in (True, False)
    )
    diagonal = xr.DataArray(np.eye(config.k, dtype=bool), dims=("feature", "label"))
    many, theory = data.mean_weight, data.mean_theory
    panels = bottom.subplots(1, 3)
    scatter(panels[0], [("2 labels", *own)], "own class")
    off = (f"{config.k} labels", many.where(~diagonal), theory.where(~diagonal))
    scatter(panels[1], [off, ("2 labels", *other)], "other classes")
    scatter(
        panels[2],
        [(f"$h$ = {h}", *(a.sel(h=h).where(diagonal) for a in (many, theory))) for h in config.h],
        f"{config.k} labels, diagonal",
    )
    low, high = panels[0].get_xlim()
    for p in {config.k1, config.k - config.k1}:
        if low < 1 / math.sqrt(p) < high:
            mark(panels[0], 1 / math.sqrt(p), rf"$1/\sqrt{{{p}}}$", 0.05)
    panels[0].set_ylabel("measured cosine")
    return figure


def draw_values(data: xr.Dataset, config: Ablation) -> Figure:
    """The matrices of one data set at each value above; below, own- and other-class cosines over the value."""
    count = len(config.values)
    figure = Figure(figsize=(max(2.5 * count, 8), 6.1))
    top, bottom = halves(figure)
    top.suptitle(setup(config), fontsize="medium")
    axes = top.subplots(1, count, squeeze=False)[0]
    limit = math.ceil(10 * float(abs(data.cosine).max())) / 10
    for panel, value in zip(axes, config.values, strict=True):
        title = f"{SYMBOLS[config.vary]} = {value:g}"
        matrix = data.cosine.isel(seed=0).sel(value=float(value)).values
        image = heat_map(panel, matrix, limit, title, r"neuron $w_j$")
    top.colorbar(image, ax=axes, shrink=0.8, pad=0.01, label=r"$\cos(\mu_i, w_j)$")
    own, other = bottom.subplots(1, 2)
    curve(own, data, config, "own")
    curve(other, data, config, "other")
    bottom.legend(*own.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    own.set(ylabel="cosine", title="features of the neuron's own class")
    other.set_title("features of the other class")
    setting = config.at(config.values[0])
    for panel in (own, other):
        landmark(panel, config.vary, setting, named=panel is own)
    return figure


def setup(config: Labels | Ablation) -> str:
    """The settings that all panels share."""
    names = {"k": "$k$", "d": "$d$", "m": "$m$", "T": "$T$"}
    shown = [f"{symbol} = {getattr(config, name)}" for name, symbol in names.items()]
    if isinstance(config, Labels):
        shown += [
            f"$n$ = {config.n}",
            rf"$\eta$ = {config.eta:g}",
            rf"$\sigma_w=\sigma_b$ = {config.init:g}",
        ]
    else:
        shown += [
            f"{symbol} = {getattr(config, name)[0]:g}"
            for name, symbol in SYMBOLS.items()
            if name != config.vary
        ]
    return ", ".join(shown)


def heat_map(
    axes: Axes, matrix: npt.NDArray[np.float64], limit: float, title: str, columns: str
) -> AxesImage:
    """cos(mu_i, w_j), feature i down and weight j across, with its numbers where there is room."""
    image = axes.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
    rows, across = matrix.shape
    if max(rows, across) <= LEGIBLE:
        for (i, j), value in np.ndenumerate(matrix):
            dark = abs(value) > 0.65 * limit
            text = f"{value:.2f}".replace("0.", ".").replace("-.00", ".00")
            colour = "white" if dark else "0.15"
            cell = axes.text(j, i, text, ha="center", va="center", fontsize=5.5, color=colour)
            cell.set_in_layout(False)  # no layout depends on it, and there are hundreds
    for set_ticks, size in ((axes.set_xticks, across), (axes.set_yticks, rows)):
        at = range(0, size, max(1, math.ceil(size / LEGIBLE)))
        set_ticks(list(at), [str(i + 1) for i in at], fontsize=7)
    axes.grid(visible=False)
    axes.set(title=title, xlabel=columns)
    if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
        axes.set_ylabel(r"feature $\mu_i$")
    return image


def scatter(axes: Axes, groups: list[tuple[str, xr.DataArray, xr.DataArray]], title: str) -> None:
    """Measured entries over those of the reduced dynamics; on the dashed line they are equal."""
    ends = []
    for index, (name, measured, theory) in enumerate(groups):
        x, y = (a.values[~np.isnan(a.values)] for a in (theory, measured))
        axes.plot(
            x,
            y,
            MARKERS[index],
            color=f"C{index}",
            label=name,
            markersize=3,
            alpha=0.6,
            markeredgewidth=0,
        )
        ends += [x.min(), x.max(), y.min(), y.max()]
    low, high = min(ends), max(ends)
    room = 0.06 * (high - low) + 1e-4
    axes.plot([low - room, high + room], [low - room, high + room], **THEORY)
    axes.set(xlim=(low - room, high + room), ylim=(low - room, high + room))
    axes.locator_params(nbins=5)
    axes.set(xlabel="cosine by the reduced dynamics", title=title)
    axes.legend(loc="upper left", fontsize=8, handletextpad=0.2)


def curve(axes: Axes, data: xr.Dataset, config: Ablation, side: str) -> None:
    """The mean of each data set, the range of the entries as a band, the reduced dynamics, and an average."""
    own = side == "own"
    cosine, theory = (of_class(data[name], own=own) for name in ("cosine", "theory"))
    low, high = cosine.min(("seed", "feature", "neuron")), cosine.max(("seed", "feature", "neuron"))
    colour = "C0" if own else "C1"
    axes.fill_between(
        data.value, low, high, color=colour, alpha=0.15, linewidth=0, label="all entries"
    )
    axes.plot(
        data.value, theory.mean(("seed", "feature", "neuron")), **THEORY, label="reduced dynamics"
    )
    for index, seed in enumerate(data.seed.values):
        label = f"measured, {data.sizes['seed']} data sets" if index == 0 else None
        mean = cosine.sel(seed=seed).mean(("feature", "neuron"))
        axes.plot(data.value, mean, "o", color=colour, markersize=4.5, alpha=0.7, label=label)
    average = data.average.sel(side=side)
    axes.plot(data.value, average, ":", color="0.2", label="an average of the class's points")
    if min(config.values) > 0:
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.set_xticks(config.values, [f"{value:g}" for value in config.values])
    axes.set_xlabel(SYMBOLS[config.vary])


def landmark(axes: Axes, vary: Varied, setting: Setting, *, named: bool) -> None:
    """Where averaging should end: the first step moves margins by 1; the init is as long as what is learned.

    Half of a cluster's points pull in the first step, each by 1/2: the margin moves by eta alpha^2 d / (4 m k).
    Later it grows by (eta alpha^2 d / (m k)) / (1 + exp(margin)) a step, and the weight is sqrt(p) margin /
    (alpha sqrt(d)) long.
    """
    size = setting.alpha**2 * setting.d
    rate = size / (setting.m * setting.k)
    if vary == "eta":
        mark(axes, 4 / rate, "first step moves\nmargins by 1" if named else "", 0.08, left=True)
    if vary == "init":
        grown = 1 + setting.eta * rate * setting.T
        margin = grown - float(wrightomega(grown))
        length = math.sqrt(setting.k / 2) * margin / math.sqrt(size)
        text = "start as long as\nwhat is learned" if named else ""
        mark(axes, length / math.sqrt(setting.d), text, 0.08, left=True)
