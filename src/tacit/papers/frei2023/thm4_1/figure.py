"""The two panels of `frei2023.thm4.1`."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.measure import proportion
from tacit.papers._shared.panels import THEORY, interval_dots, mark, rows
from tacit.papers.frei2023._shared.laws import EIGHTH, log_bound, margin_law, radius_law
from tacit.papers.frei2023.thm4_1.settings import Robust


def draw(data: xr.Dataset, config: Robust) -> Figure:
    """The distribution of the radius by setting, and failures in small dimensions."""
    figure = Figure(figsize=(11.5, 4.2))
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.35, 1]})
    radius_panel(left, data, config)
    failure_panel(right, data, config)
    return figure


def radius_panel(axes: Axes, data: xr.Dataset, config: Robust) -> None:
    """Empirical distribution functions; a band where only an interval is known."""
    levels = data.level.values
    for i in range(len(config.D)):
        lower, upper = data.quantiles.values[i]
        noise = f"{config.sigma[i]:g}" if config.sigma[i] else r"1/\sqrt{d}"
        kind = "" if config.means[i] == "orthogonal" else ", random means"
        side = "inside" if bool(data.inside[i]) else "outside"
        label = rf"$d={config.D[i]}$, $k={config.K[i]}$, $\sigma={noise}${kind} ({side})"
        axes.fill_betweenx(levels, lower, upper, color=f"C{i % 7}", alpha=0.25, linewidth=0)
        axes.plot(
            upper,
            levels,
            color=f"C{i % 7}",
            label=label,
            linestyle="-" if side == "inside" else "-.",
            linewidth=max(4.5 - 0.7 * i, 1),  # curves that coincide show beside each other
        )
    mark(axes, EIGHTH, r"$\sqrt{d}/8$ (Theorem 4.1)", 0.25)
    mark(axes, 0.5, r"$\sqrt{d}/2$", 0.05)
    axes.set(xlim=(0, 0.68), ylim=(0, 1.02), xlabel=r"radius$/\sqrt{d}$")
    axes.set_ylabel("share of test points below")
    axes.set_title("radius of the constructed net (in or outside Assumption 2.2)")
    axes.legend(loc="upper left", fontsize=8.5, frameon=True, edgecolor="none", framealpha=0.6)


def failure_panel(axes: Axes, data: xr.Dataset, config: Robust) -> None:
    """Failures against the exact laws and the proof's bound."""
    fine = np.geomspace(min(config.small) * 0.9, max(config.small) * 1.1, 80)
    bound = [min(math.exp(log_bound(d)), 1) for d in fine]
    axes.plot(fine, bound, **{**THEORY, "linestyle": ":"}, label=r"proof: $2d^{1-\ln(d)/2}$")
    for index, (event, law, name) in enumerate(
        (("margin", margin_law, r"$yN(x)<1$"), ("radius", radius_law, r"radius $\leq\sqrt{d}/8$"))
    ):
        axes.plot(fine, [law(d) for d in fine], **THEORY, label="exact laws" if index else None)
        found = [proportion(int(f), config.n) for f in data.failures.sel(event=event).values]
        shown = [(d, e) for d, e in zip(config.small, found, strict=True) if e.value > 0]
        if shown:
            interval_dots(axes, [d for d, _ in shown], rows(e for _, e in shown), index, name)
    axes.set(xscale="log", yscale="log")
    ticks = [d for d in (16, 25, 50, 100, 200) if fine[0] <= d <= fine[-1]]
    axes.set_xticks(ticks, [str(d) for d in ticks])
    axes.minorticks_off()
    axes.set(ylim=(0.3 / config.n, 1.2), xlabel="$d$", ylabel="probability")
    axes.set_title(r"small $d$, $\sigma=1$, $k=2$ (outside)")
    axes.legend(loc="lower left")
