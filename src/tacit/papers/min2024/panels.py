"""The two panels that the figures of Proposition 1 and Theorems 1 and 3 are made of."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from tacit.measure import Tail, proportion
from tacit.papers.min2024 import Bounds

MARKERS = "os^Dv<>"


def tail_panel(axes: Axes, found: list[Tail], events: xr.DataArray) -> None:
    """Measured probabilities (dots, 95% intervals) against a exp(-C b) at C = 1/2 (dashed), by K.

    `found` holds one `Tail` for each cell of `events`, in its order.
    """
    where = np.broadcast_to(
        np.arange(events.sizes["K"]).reshape([-1 if d == "K" else 1 for d in events.dims]),
        events.shape,
    ).ravel()
    floor = 0.3 / max(tail.n for tail in found)
    for index, K in enumerate(events.K.values):
        mine = [tail for tail, i in zip(found, where, strict=True) if i == index]
        colour = f"C{index}"
        b = np.linspace(0, max(tail.b for tail in mine), 200)
        bound = mine[0].a * np.exp(-b / 2)
        axes.plot(b, np.minimum(bound, 1), "--", color=colour, linewidth=1.2)
        seen = [(tail.b, proportion(tail.events, tail.n)) for tail in mine if tail.events]
        if seen:
            value = np.array([e.value for _, e in seen])
            ends = [[e.value - e.low for _, e in seen], [e.high - e.value for _, e in seen]]
            axes.errorbar(
                [b for b, _ in seen],
                value,
                ends,
                fmt=MARKERS[index % len(MARKERS)],
                color=colour,
                label=f"K = {K}",
                alpha=0.85,
            )
        unseen = [tail.b for tail in mine if not tail.events]
        axes.plot(unseen, [floor] * len(unseen), "v", color=colour, markersize=3, alpha=0.5)
    axes.plot([], [], "--", color="0.3", linewidth=1.2, label="bound, C = 1/2")
    axes.set_yscale("log")
    axes.set_ylim(floor / 2, 2)
    axes.set_ylabel("probability")
    axes.legend(loc="best")


def radius_panel(axes: Axes, critical: xr.DataArray, config: Bounds) -> None:
    """Critical radii by K: the noisy medians on the theory's two curves."""
    K = np.array(config.K)
    fine = np.linspace(K.min() * 0.9, K.max() * 1.1, 100)
    axes.plot(fine, 1 / np.sqrt(fine), "--", color="0.3", linewidth=1.2, label="theory")
    axes.axhline(math.sqrt(0.5), linestyle="--", color="0.3", linewidth=1.2)
    for index, net in enumerate(map(str, critical.net.values)):
        median, low, high = critical.sel(net=net, points="noisy").transpose("end", "K").values
        name = "$F$" if net == "F" else f"$F^{{{net[2:]}}}$"
        axes.errorbar(
            K,
            median,
            [median - low, high - median],
            fmt=MARKERS[index % len(MARKERS)],
            color=f"C{index}",
            label=name,
            markersize=7 - index,
        )
    axes.annotate(r"$\sqrt{2}/2$", (fine[-1], math.sqrt(0.5)), ha="right", va="bottom")
    axes.annotate(r"$1/\sqrt{K}$", (fine[len(fine) // 2], 1 / math.sqrt(fine[50])), va="bottom")
    axes.set_ylim(0, 0.85)
    axes.set_xlabel("$K$")
    axes.set_title(f"critical radius, $\\alpha$ = {config.alpha:g}, $D$ = {config.D}")
    axes.legend(loc="lower left")
