"""The two panels that the figures of Proposition 1 and Theorems 1 and 3 are made of."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from tacit.measure import Tail, proportion
from tacit.papers.min2024.bounds.settings import Bounds

MARKERS = "os^D<>P"


def tail_panel(axes: Axes, found: list[Tail], events: xr.DataArray) -> None:
    """Measured probabilities (95% intervals) against a exp(-C b) at C = 1/2 (dashed).

    Colour is K, the marker is p. `found` holds one `Tail` for each cell of `events`, in its order.
    """
    powers = list(events.p.values) if "p" in events.dims else [None]
    cells = [events[i] for i in np.ndindex(events.shape)]
    floor = 0.3 / max(tail.n for tail in found)
    start = min(
        (tail.b for tail in found if tail.b), default=1.0
    )  # at rho or delta = 0 the exponent is 0
    reach = max(start, *(tail.b for tail in found))
    for index, K in enumerate(events.K.values):
        colour = f"C{index}"
        mine = [(t, c) for t, c in zip(found, cells, strict=True) if int(c.K) == K]
        b = np.geomspace(start / 2, max(start, *(tail.b for tail, _ in mine)), 200)
        axes.plot(b, mine[0][0].a * np.exp(-b / 2), "--", color=colour, linewidth=1.2)
        axes.plot([], [], "s", color=colour, label=f"$K$ = {K}")
        for row, p in enumerate(powers):
            here = [tail for tail, cell in mine if p is None or float(cell.p) == p]
            seen = [(tail.b, proportion(tail.events, tail.n)) for tail in here if tail.events]
            ends = [[e.value - e.low for _, e in seen], [e.high - e.value for _, e in seen]]
            # smaller markers for later K, so that none hides another
            axes.errorbar(
                [b for b, _ in seen], [e.value for _, e in seen], ends,
                fmt=MARKERS[row % len(MARKERS)], color=colour, markersize=max(8 - 1.8 * index, 2.5),
                markeredgecolor="white", markeredgewidth=0.4,
            )  # fmt: skip
            unseen = [tail.b for tail in here if not tail.events]
            axes.plot(
                unseen, [floor] * len(unseen), "v", color=colour, markersize=max(6 - index, 2.5)
            )
    if len(powers) > 1:
        for row, p in enumerate(powers):
            axes.plot([], [], MARKERS[row % len(MARKERS)], color="0.4", label=f"$p$ = {p:g}")
    axes.plot([], [], "--", color="0.4", linewidth=1.2, label="bound, $C$ = 1/2")
    axes.plot([], [], "v", color="0.4", markersize=4, label=f"no event in {found[0].n:,}")
    axes.axhspan(1, 40, color="0.93", linewidth=0)
    axes.annotate("a bound up here says nothing", (0.98, 0.985), xycoords="axes fraction",
                  ha="right", va="top", fontsize="small", color="0.35")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(start / 1.6, reach * 1.6), ylim=(floor / 2, 40))
    axes.set_ylabel("probability")
    axes.legend(loc="lower left", fontsize="small")


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
    axes.annotate(
        r"$\sqrt{2}/2$",
        (K.mean(), math.sqrt(0.5)),
        xytext=(0, 4),
        textcoords="offset points",
        ha="center",
    )
    axes.annotate(r"$1/\sqrt{K}$", (fine[len(fine) // 2], 1 / math.sqrt(fine[50])), va="bottom")
    axes.set(ylim=(0, 0.85), xlabel="$K$")
    axes.set_title(f"critical radius ($\\alpha$ = {config.alpha:g}, $D$ = {config.D})")
    axes.legend(loc="lower left")
