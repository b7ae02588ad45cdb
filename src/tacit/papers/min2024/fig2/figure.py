"""The panels of Figures 2 and 5: distance, contributions, cosines and robust accuracy."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from tacit.papers._shared.panels import mark
from tacit.papers.min2024.fig2.settings import Conjecture

MASS = 0.95  # neurons with large contributions: as many as hold this share


def distance_panel(axes: Axes, data: xr.Dataset, p: float, colour: str) -> None:
    """(a) dist over alpha: the mean over seeds, and the region between their least and their largest."""
    found = data.distance.sortby("alpha")
    lower, upper = found.sel(end="lower"), found.sel(end="upper")
    axes.fill_between(
        found.alpha, lower.min("seed"), upper.max("seed"), color=colour, alpha=0.25, linewidth=0
    )
    axes.plot(found.alpha, upper.mean("seed"), "o-", color=colour, markersize=3.5)
    name = "$F$" if p == 1 else f"$F^{{({p:g})}}$"
    axes.set(ylim=(0, 1.15 * float(upper.max())), xlim=(0, None))
    axes.set(xlabel=r"intra-subclass noise $\alpha$", ylabel=f"dist($f$, {name})")
    axes.set_title(f"(a) $p$ = {p:g}: distance to {name}")


def contribution_panel(axes: Axes, data: xr.Dataset, p: float, colour: str) -> None:
    """(b) |v_j| ||w_j|| of all neurons of one net, the largest first."""
    mass = np.sort(one_net(data).contribution.values)[::-1]
    rank = np.arange(1, len(mass) + 1)
    axes.fill_between(rank, mass, step="mid", color=colour, alpha=0.8, linewidth=0)
    heavy = dominant(mass)
    axes.axvline(heavy, linestyle=":", color="0.35", linewidth=1.2)
    axes.set(xscale="log", xlim=(0.9, len(mass)), ylim=(0, 1.1 * mass[0]))
    axes.set_xlabel(f"neuron, by contribution ({heavy} hold {MASS:.0%})")
    axes.set_ylabel(r"$|v_j|\,\|w_j\|$")
    axes.set_title(rf"(b) contributions, $\alpha$ = {data.attrs['shown']:g}")


def cosine_panel(axes: Axes, data: xr.Dataset, config: Conjecture, p: float, letter: str) -> None:
    """(c, d) cosines of the dominant neurons with averages and centres, grouped by the closest."""
    net = one_net(data)
    cosine, mass = data.cosine.values, net.contribution.values
    heavy = np.argsort(-mass, kind="stable")[: dominant(mass)]
    rows = cosine[heavy, :2] if p == 1 else cosine[heavy, 2:]
    order = heavy[np.argsort(rows.argmax(1), kind="stable")]
    image = axes.imshow(
        cosine[order].T, aspect="auto", cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest",
        extent=(0.5, len(order) + 0.5, config.K + 1.5, -0.5),
    )  # fmt: skip
    axes.axhline(1.5, color="0.2", linewidth=0.8)
    few = config.K <= 12  # with more rows a label each would overlap
    centres = range(0, config.K, 1 if few else 3)
    averages = {0.0: r"$\bar\mu_+$", 1.0: r"$\bar\mu_-$"} if few else {0.5: r"$\bar\mu_\pm$"}
    ticks = averages | {k + 2.0: rf"$\mu_{{{k + 1}}}$" for k in centres}
    axes.set_yticks(list(ticks), list(ticks.values()), fontsize="small")
    axes.grid(visible=False)
    axes.set_xlabel("neurons with large contributions")
    axes.set_title(rf"({letter}) $\cos(w_j, \mu)$, $\alpha$ = {data.attrs['shown']:g}")
    figure = axes.figure
    figure.colorbar(image, ax=axes, ticks=[-1, 0, 1], pad=0.02, fraction=0.05)


def robust_panel(axes: Axes, data: xr.Dataset, config: Conjecture) -> None:
    """(e) robust accuracy over the radius: curves from every point's radius, dots at the radii kept."""
    alpha = data.attrs["shown"]
    farthest = max(config.radius, default=1.5)
    fine = np.linspace(0, farthest, 601)
    for index, p in enumerate(config.p):
        here = data.sel(alpha=alpha, p=p)
        ends = [(here[end].values.ravel()[:, None] > fine).mean(0) for end in ("lower", "upper")]
        colour = f"C{index}"
        axes.fill_between(fine, *ends, color=colour, alpha=0.3, linewidth=0)
        axes.plot(fine, ends[1], color=colour, linewidth=1.8, label=f"$p$ = {p:g}")
        axes.plot(
            data.radius,
            here.robust.sel(end="upper"),
            "o",
            color=colour,
            markersize=4,
            clip_on=False,
        )
    mark(axes, 1 / math.sqrt(config.K), r"$1/\sqrt{K}$", 0.5, left=True)
    mark(axes, math.sqrt(0.5), r"$\sqrt{2}/2$", 0.5, left=True)
    axes.set(xlim=(0, farthest), ylim=(0, 1.03), xlabel=r"$\ell_2$ radius of the attack")
    axes.set_ylabel("robust accuracy")
    axes.set_title(rf"(e) robustness, $K$ = {config.K}, $\alpha$ = {alpha:g}")
    axes.legend(loc="upper right", title="certified to attacked")


def one_net(data: xr.Dataset) -> xr.Dataset:
    """The run that (b), (c) and (d) show: the first seed at the captions' alpha."""
    return data.sel(alpha=data.attrs["shown"]).isel(seed=0)


def dominant(mass: np.ndarray) -> int:
    """How many neurons, the largest first, hold `MASS` of the mass."""
    ordered = np.sort(mass)[::-1]
    return int(np.searchsorted(ordered.cumsum(), MASS * ordered.sum())) + 1
