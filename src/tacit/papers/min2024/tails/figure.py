"""Truth against bound for the five statements, and how many times as fast the truth falls."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import THEORY
from tacit.papers.min2024.tails.claims import PERTURBED, exponents
from tacit.papers.min2024.tails.settings import Tails

TITLES = {
    "prop1.F": "$F$ errs",
    "prop1.Fp": "$F^{(3)}$ errs",
    "thm1.Fp": r"$F^{(p)}$ breaks below $\sqrt{2}/2$",
    "thm3.F": r"$F$ breaks below $1/\sqrt{K}$",
    "thm3.Fp": r"$F^{(p)}$ survives above $\sqrt{2}/2$",
}


def figure(data: xr.Dataset, config: Tails) -> Figure:
    """Five panels of truth over bound, and one of exponents."""
    page = Figure(figsize=(12.4, 7.2))
    panels = page.subplots(2, 3)
    for axes, name in zip(panels.flat, TITLES, strict=False):
        truth_panel(axes, data, config, name)
    exponent_panel(panels.flat[-1], data, config)
    return page


def truth_panel(axes: Axes, data: xr.Dataset, config: Tails, name: str) -> None:
    """P over the bound, both downwards: below the dashed line the bound is true. (F is the same for every K.)"""
    shown = data[name]
    if "p" in shown.dims:
        p = 3.0 if 3.0 in config.p else config.p[-1]
        shown = shown.sel(p=p)
        title = TITLES[name].replace("3", f"{p:g}")
    else:
        title = TITLES[name]
    x = -np.log10(shown.bound.values)
    for index, (K, K1) in enumerate(zip(config.K, config.K1, strict=True)):
        label = f"$K$ = {K} ({K1} + {K - K1})"
        y = -shown.sel(K=K).values / math.log(10)
        axes.plot(x, y, "o-", color=f"C{index}", label=label, markersize=max(8 - 2 * index, 3))
        if name in PERTURBED:
            for p in config.sampled:
                cells = data.sampled.sel(event=name, power=p, K=K).transpose("bound", "end")
                axes.plot(x, -cells.values[:, 0] / math.log(10), "x", color="0.2", markersize=6,
                          label=f"sampled, $p$ = {p:g}" if config.K[-1] == K else None)  # fmt: skip
    line = np.linspace(0, max(x.max(), 1), 50)
    axes.plot(line, line, **THEORY, label="the bound")
    axes.set_yscale("symlog", linthresh=1)
    ticks = [0, 1, 10, 100, 1000, 10_000]
    axes.set_yticks(ticks, ["1", "$10^{-1}$", *(f"$10^{{-{t}}}$" for t in ticks[2:])])
    axes.set_xticks([0, 3, 6, 9, 12], ["1", *(f"$10^{{-{t}}}$" for t in (3, 6, 9, 12))])
    axes.minorticks_off()
    top = float(-data[name].min()) / math.log(10)
    axes.set(
        ylim=((30 if name in PERTURBED else 6) * max(top, 1), 0),
        xlabel="printed bound, $C$ = 1/2",
        title=title,
    )
    axes.set_ylabel("probability")
    axes.legend(loc="lower left", fontsize="small", ncols=2)


def exponent_panel(axes: Axes, data: xr.Dataset, config: Tails) -> None:
    """d log P / d log bound by K, beside the nearest failure's."""
    for index, name in enumerate(TITLES):
        slopes, theory = exponents(data, config, name)
        if slopes.ndim > 1:
            at = config.p.index(3.0) if 3.0 in config.p else -1
            slopes, theory = slopes[:, at], theory[:, at]
        x = np.array(config.K) * (1 + 0.03 * (index - 2))
        axes.plot(x, theory, **THEORY)
        axes.plot(x, slopes, "osD^v"[index], color=f"C{index}", label=short(name))
    axes.axhline(1, color="0.6", linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="$K$", title="exponent of the truth / of the bound")
    axes.set_xticks(list(config.K), [str(K) for K in config.K])
    axes.minorticks_off()
    axes.set_ylim(0.6, 40 * float(max(exponents(data, config, name)[1].max() for name in TITLES)))
    axes.legend(loc="upper left", fontsize="small", ncols=2)


def short(name: str) -> str:
    """Proposition 1, F."""
    where, net = name.split(".")
    place = {"prop1": "Prop. 1", "thm1": "Thm 1", "thm3": "Thm 3"}[where]
    return f"{place}, ${'F' if net == 'F' else 'F^{(p)}'}$"
