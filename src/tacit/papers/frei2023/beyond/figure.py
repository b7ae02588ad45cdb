"""The figure of `frei2023.beyond`: above, many clusters; below, no clusters."""

import math

import numpy as np
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.measure import critical_radius, proportion
from tacit.papers._shared.panels import MARKERS, THEORY, interval_dots, rows
from tacit.papers.frei2023.beyond.claims import cover
from tacit.papers.frei2023.beyond.settings import RULES, Beyond

FLOOR = 0.3  # test points: where an error of 0 is drawn


def draw(data: xr.Dataset, config: Beyond) -> Figure:
    """Separability and errors by k, radii by k, and errors by n for each law."""
    figure = Figure(figsize=(10.5, 7.6))
    above, below = figure.subfigures(2, 1, squeeze=False)[:, 0]
    left, right = above.subplots(1, 2)
    separable_panel(left, data, config)
    radius_panel(right, data, config)
    panels = below.subplots(1, len(config.laws), sharey=True, squeeze=False)[0]
    for axes, law in zip(panels, config.laws, strict=True):
        error_panel(axes, data.sel(law=law), config, law)
    panels[0].set_ylabel("test error")
    panels[-1].legend(loc="lower left")
    return figure


def separable_panel(axes: Axes, data: xr.Dataset, config: Beyond) -> None:
    """How often the means can be split, with Cover's count, and the test errors."""
    fine = range(2, round(1.08 * max(config.K)) + 1)
    axes.plot(fine, [cover(K, config.D) for K in fine], **THEORY, label="Cover's count")
    split = [proportion(int(count), config.draws) for count in data.split.values]
    interval_dots(axes, config.K, rows(split), 0, "means linearly separable")
    error = data.error.mean("seed").values
    axes.plot(config.K, error, MARKERS[1] + "-", color="C1", label="test error of the ReLU net")
    axes.set(ylim=(-0.03, 1.05), xlabel="clusters $k$", ylabel="share")
    axes.set_title(f"random means on the sphere, $d={config.D}$")
    axes.legend(loc="center left")


def radius_panel(axes: Axes, data: xr.Dataset, config: Beyond) -> None:
    """Median radii of net and 1-NN, and what it takes along u."""
    K = np.array(config.K, dtype=float)
    fine = np.geomspace(K.min() * 0.9, K.max() * 1.1, 50)
    axes.plot(fine, np.sqrt(config.D / fine), **THEORY, label=r"$\sqrt{d/k}$")
    for index, (name, label) in enumerate(
        (("radius_1nn", "1-NN, exact"), ("along_u", r"ReLU net, along $u=\sum y_q\mu_q$"))
    ):
        medians = rows(critical_radius(flat(data[name].sel(k=k))) for k in config.K)
        interval_dots(axes, K, medians, 2 + index, label)
    ends = [
        rows(critical_radius(flat(data[name].sel(k=k))) for k in config.K)[0]
        for name in ("lower", "upper")
    ]
    axes.fill_between(
        K, *ends, color="C1", alpha=0.3, linewidth=0, label="ReLU net, certified to attacked"
    )
    past = [k for k in config.K if not data.separable.sel(k=k).any()]
    if past:
        axes.axvspan(min(past), fine[-1], color="0.95", linewidth=0, zorder=0)
        axes.annotate(
            "training sets not\nlinearly separable", (fine[-1], 0.98), xycoords=("data", "axes fraction"),
            xytext=(-4, 0), textcoords="offset points", ha="right", va="top", fontsize=8.5,
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(fine[0], fine[-1]))
    axes.set_xticks(K, [f"{k:g}" for k in K])
    ticks = [t for t in (0.25, 0.5, 1, 2, 4, 8) if 0.6 * ends[0].min() < t < math.sqrt(config.D)]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.set(xlabel="clusters $k$", ylabel=r"median $\ell_2$ radius")
    axes.set_title("how far a test point is from being broken")
    axes.legend(loc="lower left", fontsize=8.5)


def error_panel(axes: Axes, data: xr.Dataset, config: Beyond, law: str) -> None:
    """Test errors of the linear rules and of the nets from every start."""
    x = np.array(config.n) / config.D
    for rule, style in zip(RULES, ("--", ":"), strict=True):
        error = shown(data.linear_error.sel(rule=rule).mean("set").values, config)
        axes.plot(x, error, style, color="0.35", label=f"max-margin linear rule {rule}", zorder=2)
    for i, (h, init) in enumerate(zip(config.widths, config.inits, strict=True)):
        error = shown(data.plain_error.isel(start=i).mean("set").values, config)
        near = init <= config.small
        rho = float(data.plain_stationarity.isel(start=i).max())
        label = rf"ReLU net, width {h}, init {init:g} ($\rho\leq{rho:.2f}$)"
        axes.plot(
            x, error, MARKERS[i % len(MARKERS)], color=f"C{i}", label=label, zorder=3,
            markerfacecolor=f"C{i}" if near else "white", markersize=8 - 1.5 * (i % 3),
        )  # fmt: skip
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(x, [f"{v:g}" for v in x])
    axes.minorticks_off()
    axes.set_xlabel("$n/d$")
    name = "$N(0, I)$" if law == "gaussian" else "the sphere"
    axes.set_title(rf"no clusters: $x$ from {name}, $|x_1|\geq{config.gamma:g}$, $y=$ sign$(x_1)$")


def flat(values: xr.DataArray) -> torch.Tensor:
    """All repeats and points together."""
    return torch.from_numpy(values.values.ravel())


def shown(error: np.ndarray, config: Beyond) -> np.ndarray:
    """Errors for a logarithmic axis."""
    return np.maximum(error, FLOOR / (config.tests * config.sets))
