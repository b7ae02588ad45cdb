"""The figure of `min2025.transition`."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from tacit.papers._shared.panels import MARKERS, THEORY
from tacit.papers.min2025.transition.settings import Transition


def figure(data: xr.Dataset, config: Transition) -> Figure:
    """Phase diagrams of equal and drawn counts, the radius; cuts at other K and alpha, the time to fit."""
    page = Figure(figsize=(12.6, 7.4))
    axes = page.subplots(2, 3)
    (equal, drawn, radius), (clusters, noise, time) = axes
    for at, kind in ((equal, "equal"), (drawn, "drawn")):
        shades = phase(at, data, kind)
    equal.set_title(f"Equal counts, $K$ = {config.K}, $\\alpha$ = 0")
    drawn.set_title(f"Counts drawn, {config.n} points")
    bar = page.colorbar(shades, ax=[equal, drawn], ticks=[-1, 0, 1], pad=0.02)
    bar.ax.set_yticklabels(["average", "mixture", "centres"])
    mesh = cells(radius, data, data.radius.values)
    ends = (1 / math.sqrt(config.K), math.sqrt(0.5))
    mesh.set(cmap="cividis", clim=ends)
    bar = page.colorbar(mesh, ax=radius, ticks=ends, extend="both", pad=0.03)
    bar.ax.set_yticklabels([r"$1/\sqrt{K}$", r"$\sqrt{2}/2$"])
    radius.set_title("Robust radius of a centre, equal counts")
    cuts(clusters, data)
    clusters.set_title(f"Other $K$, init {power(config.cut_init)}; dashed: predicted")
    noisy(noise, data, config)
    times(time, data, config)
    return page


def phase(axes: Axes, data: xr.Dataset, kind: str) -> QuadMesh:
    """Share at centres minus share at averages, with measured and predicted boundaries."""
    share = data.share.sel(counts=kind).mean("seed")
    mesh = cells(axes, data, (share.sel(side="centres") - share.sel(side="average")).values)
    mesh.set(cmap="RdBu_r", clim=(-1.15, 1.15))
    rows = np.arange(data.sizes["init"])
    for side, marker in (("average", "o"), ("centres", "s")):
        at = {"counts": kind, "side": side}
        axes.plot(
            data.predicted_boundary.sel(at).mean("seed"), rows, "--", color="0.1", linewidth=1.4
        )
        axes.plot(
            data.boundary.sel(at).mean("seed"), rows, marker, color="0.1", markerfacecolor="white",
            label=f"{side}: measured",
        )  # fmt: skip
    axes.plot([], [], "--", color="0.1", linewidth=1.4, label="predicted")
    if kind == "equal":
        axes.legend(loc="upper right", frameon=True, framealpha=0.9)
    return mesh


def cells(axes: Axes, data: xr.Dataset, values: np.ndarray) -> QuadMesh:
    """One cell for each p and init, the smallest init on top."""
    mesh = axes.pcolormesh(edges(data.p.values), edges(np.arange(data.sizes["init"])), values)
    axes.set_yticks(np.arange(data.sizes["init"]), [power(e) for e in data.init.values])
    axes.set(xlabel="$p$", ylabel="sd of the initial weights")
    axes.grid(visible=False)
    return mesh


def edges(centres: np.ndarray) -> np.ndarray:
    """Borders half way between the centres of cells."""
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    middle = (centres[1:] + centres[:-1]) / 2
    first, last = 2 * centres[0] - middle[0], 2 * centres[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])


def power(init: float) -> str:
    """A power of ten, as mathtext."""
    return f"$10^{{{math.log10(init):.0f}}}$" if init < 1 else "1"


def cuts(axes: Axes, data: xr.Dataset) -> None:
    """Centres (full) and averages (open) over p, one colour for each K."""
    for index, K in enumerate(data.K.values):
        for side, fill in (("centres", f"C{index}"), ("average", "white")):
            at = {"K": K, "side": side}
            axes.plot(data.cut_p, data.predicted_K.sel(at), "--", color=f"C{index}", linewidth=1)
            axes.plot(
                data.cut_p, data.share_K.sel(at), MARKERS[index], color=f"C{index}",
                markerfacecolor=fill, label=f"$K$ = {K}" if side == "centres" else None,
            )  # fmt: skip
    axes.axvline(2, **THEORY)
    axes.set(xlabel="$p$", ylabel="mass at averages (open), centres (full)")
    axes.legend(loc="center right")


def noisy(axes: Axes, data: xr.Dataset, config: Transition) -> None:
    """Where centres begin with noise, over the init; drawn counts full, equal counts open."""
    rows = np.arange(data.sizes["noisy_init"])
    for index, alpha in enumerate(data.alpha.values):
        for kind, fill in (("drawn", f"C{index}"), ("equal", "white")):
            at = {"alpha": alpha, "counts": kind}
            found, estimated = (
                d.sel(at).mean("noisy_seed") for d in (data.noisy_boundary, data.estimated_boundary)
            )
            axes.plot(estimated, rows, "--", color=f"C{index}", linewidth=1)
            axes.plot(
                found, rows, MARKERS[index], color=f"C{index}",
                markerfacecolor=fill, label=f"$\\alpha$ = {alpha:g}, {kind} counts",
            )  # fmt: skip
    axes.axvline(2, **THEORY)
    axes.set_yticks(rows, [power(e) for e in data.noisy_init.values])
    axes.set(xlim=(1.9, 4.1), xlabel="$p$ from which centres are learned")
    axes.set_ylabel("sd of the initial weights")
    axes.set_title(f"Noise, $D$ = {config.noisy_dim}, $n$ = {config.noisy_n}; dashed: predicted")
    axes.legend(loc="lower right")


def times(axes: Axes, data: xr.Dataset, config: Transition) -> None:
    """log10 of the time to fit over p, one colour for each dimension."""
    for index, D in enumerate(data.D.values):
        found, predicted = (10 ** t.sel(D=D).mean("seed") for t in (data.time, data.predicted_time))
        axes.plot(data.fit_p, predicted, "--", color=f"C{index}", linewidth=1)
        axes.plot(data.fit_p, found, MARKERS[index], color=f"C{index}", label=f"$D$ = {D}")
    axes.set(yscale="log", xlabel="$p$", ylabel="time to log-loss $-1$ (mean loss)")
    axes.set_title(f"Time to fit, init {power(config.fit_init)}; dashed: predicted")
    axes.legend(loc="upper left")
