"""The six panels of `frei2023.thm2.1`."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import MARKERS, THEORY
from tacit.papers.frei2023.thm2_1.settings import LOSSES, Direction

STYLES = ("-", ":", "-.", (0, (5, 1, 1, 1)))


def draw(data: xr.Dataset, config: Direction) -> Figure:
    """Residuals, margins and multipliers on the flow's way; widths and inits; the global optimum."""
    figure = Figure(figsize=(14.5, 8.4))
    panels = figure.subplots(2, 3)
    residual_panel(panels[0, 0], data, config)
    margin_panel(panels[0, 1], data, config)
    multiplier_panel(panels[0, 2], data, config)
    cluster_panel(panels[1, 0], data, config)
    sweep_panel(panels[1, 1], data, config)
    global_panel(panels[1, 2], data)
    return figure


def residual_panel(axes: Axes, data: xr.Dataset, config: Direction) -> None:
    """rho over the depth: the flow as it is, and united to two neurons; the first seed and loss."""
    first = data.isel(seed=0, loss=0)
    for i, init in enumerate(config.init):
        for j, sigma in enumerate(config.sigma):
            here = first.sel(init=init, sigma=sigma)
            line: dict[str, Any] = {
                "color": f"C{i}",
                "linestyle": STYLES[j % len(STYLES)],
                "linewidth": 1.4,
            }
            axes.plot(
                here.reached,
                here.rho,
                **line,
                marker="o",
                markersize=4,
                label=rf"init {init:g}, $\sigma={sigma:g}$",
            )
            axes.plot(
                here.deep_reached,
                here.deep_rho,
                **line,
                marker="D",
                markersize=5,
                markerfacecolor="none",
            )
    ends = np.array([config.depths[0], config.deep[-1]])
    axes.plot(ends, np.log(data.sizes["point"]) / ends, **THEORY, label=r"$\log(n)/|\log L|$")
    axes.plot([], [], "D", color="0.4", markerfacecolor="none", label="neurons of a sign united")
    axes.set(xscale="log", yscale="log", xlabel=r"depth $-\log L$")
    axes.set_ylabel(r"KKT residual $\rho$ at slackness $\leq 0.005$")
    axes.set(title=f"the flow's direction becomes stationary ({config.loss[0]})", ylim=(3e-4, 50))
    axes.legend(fontsize=7.5, loc="upper right", ncols=2)


def margin_panel(axes: Axes, data: xr.Dataset, config: Direction) -> None:
    """The normalised and the smoothed margin along a flow, with the exact limit's."""
    loss = config.loss[0]
    for j, sigma in enumerate(config.sigma):
        here = data.isel(rise_loss=LOSSES.index(loss)).sel(sigma=sigma)
        limit = float(data.limit_margin.isel(seed=0).sel(sigma=sigma))
        axes.plot(
            here.rise_depth,
            here.rise_margin,
            color=f"C{j}",
            label=rf"normalised, $\sigma={sigma:g}$",
        )
        axes.plot(
            here.rise_depth, here.rise_smoothed, color=f"C{j}", linestyle=":", label="smoothed"
        )
        deep = data.deep_margin.isel(seed=0).sel(sigma=sigma, loss=loss, init=config.init[0])
        axes.plot(data.deep, deep, "D", color=f"C{j}", markerfacecolor="none", label="united")
        axes.axhline(limit, **{**THEORY, "color": f"C{j}"})
    axes.set_xscale("log")
    top = float(data.limit_margin.max())
    axes.set(ylim=(0, 1.12 * top), xlabel=r"depth $-\log L$", ylabel=r"margin$/\|\theta\|^2$")
    axes.set_title("the margin rises to the exact limit's (dashed)")
    axes.legend(fontsize=7.5, loc="lower right", ncols=len(config.sigma))


def multiplier_panel(axes: Axes, data: xr.Dataset, config: Direction) -> None:
    """The multipliers of the exact limit, from large to small, and those found for the flow."""
    for j, sigma in enumerate(config.sigma):
        here = data.isel(seed=0).sel(sigma=sigma)
        exact, flow = here.multiplier.values, here.pull.values
        order = np.argsort(-exact, kind="stable")
        share = float((exact > 1e-9 * exact.max()).mean())
        scale = exact.sum() / len(exact)
        axes.plot(
            flow[order] / (flow.sum() / len(flow)), ".", color=f"C{j}", alpha=0.35, markersize=4,
            label="pulls of the united flow",
        )  # fmt: skip
        axes.plot(
            exact[order] / scale,
            color=f"C{j}",
            label=rf"exact, $\sigma={sigma:g}$: {share:.0%} support",
        )
    axes.set_xlabel("training points, by their exact multiplier")
    axes.set_ylabel(r"$\lambda_i$ over its mean")
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_title("multipliers")
    axes.legend(fontsize=7.5)


def cluster_panel(axes: Axes, data: xr.Dataset, config: Direction) -> None:
    """Sums of the multipliers over clusters, with the bounds of the proof where they apply."""
    for j, sigma in enumerate(config.sigma):
        here = data.isel(seed=0).sel(sigma=sigma)
        weight, cluster = here.multiplier.values, here.cluster.values.astype(int)
        sums = np.bincount(cluster, weight, minlength=config.K)
        length = np.linalg.norm(here.limit.values, axis=1)
        own = np.where(np.arange(config.K) < config.K // 2, length[0], length[1])
        axes.plot(
            np.arange(1, config.K + 1), config.D * sums * own, MARKERS[j], color=f"C{j}",
            label=rf"$d={config.D}$, $k={config.K}$, $\sigma={sigma:g}$ (outside)",
        )  # fmt: skip
    d = config.inside
    first = data.isel(seed=0)
    mine = first.inside_own.values * d
    axes.plot(
        np.arange(1, len(mine) + 1),
        mine,
        "*",
        color="k",
        label=rf"$d={d}$, $k={len(mine)}$, $\sigma=1/\sqrt{{d}}$ (inside)",
    )
    for bound, text in (
        (first.inside_low, "Lemma A.11 (inside)"),
        (first.inside_high, "Lemma A.10 (inside)"),
    ):
        axes.axhline(d * float(bound), **THEORY)
        axes.annotate(
            text, (0.02, d * float(bound)), xycoords=("axes fraction", "data"), xytext=(0, 3),
            textcoords="offset points", fontsize=8.5,
        )  # fmt: skip
    axes.set(ylim=(0, 1.2 * axes.get_ylim()[1]), xlabel="cluster")
    axes.set_ylabel(r"$d\,\sum_{i\in q}\lambda_i v_j^2\phi_{ij}$, own sign")
    axes.set_title("every cluster pulls about as hard")
    axes.legend(fontsize=7.5, loc="center right")


def sweep_panel(axes: Axes, data: xr.Dataset, config: Direction) -> None:
    """rho against the width, and from large inits with its floors."""
    axes.plot(
        data.width, data.width_rho.mean("seed"), "o-", color="C0", label=f"init {config.init[0]:g}"
    )
    at = np.full(len(config.large), config.h, dtype=float)
    for i, init in enumerate(config.large):
        name = f"init {init:g}" if init else "NTK-like init"
        axes.plot(
            at[i],
            data.large_rho[i],
            MARKERS[i + 1],
            color=f"C{i + 1}",
            label=name,
        )
        floor = max(float(data.floor_outside[i]), float(data.floor_balance[i]))
        axes.plot(
            at[i],
            floor,
            MARKERS[i + 1],
            color=f"C{i + 1}",
            markerfacecolor="none",
            label="its floor",
        )
    axes.axhline(
        np.log(data.sizes["point"]) / config.shallow, **THEORY, label=r"$\log(n)/|\log L|$"
    )
    axes.set(xscale="log", yscale="log", xlabel="width", ylabel=r"KKT residual $\rho$")
    axes.set_title(f"any width; large inits keep a floor (depth {config.shallow:g})")
    axes.legend(fontsize=7.5, loc="center right")


def global_panel(axes: Axes, data: xr.Dataset) -> None:
    """Margins over the global optimum's, by data set."""
    pair, flow = data.small_pair.values, data.small_flow.values
    order = np.argsort(np.where(np.isfinite(pair), pair, np.inf), kind="stable")
    at = np.arange(1, len(order) + 1)
    axes.plot(at, pair[order], "s", color="C3", label="exact KKT point of two neurons")
    axes.plot(
        at,
        flow[order],
        "o",
        color="C0",
        markerfacecolor="none",
        label="flow, width 20 (unfinished)",
    )
    axes.axhline(1, **THEORY)
    axes.annotate("global optimum", (0.98, 1), xycoords=("axes fraction", "data"), xytext=(0, 4),
                  textcoords="offset points", ha="right", fontsize=8.5)  # fmt: skip
    axes.set_ylim(min(0.5, 0.95 * float(np.nanmin([pair, flow]))), 1.06)
    axes.set_xlabel("data set (10 points in 3 dimensions), sorted")
    axes.set(ylabel="margin over the global one", title="a KKT point need not be the best")
    axes.legend(fontsize=7.5, loc="lower right")
