"""The three panels of `li2025.fig1`."""

import numpy as np
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.nets import NearestNeighbour, average_net, decoupled_net
from tacit.papers._shared.panels import MARKERS, THEORY
from tacit.papers.li2025.fig1.geometry import f_FD_distance, pentagon
from tacit.papers.li2025.fig1.settings import Picture

GRID = 601
REACH = 1.75


def draw(data: xr.Dataset, config: Picture) -> Figure:
    """The pentagon with both boundaries, the distances on simplices by K, and Figure 4."""
    figure = Figure(figsize=(12.5, 4))
    left, middle, right = figure.subplots(1, 3, gridspec_kw={"width_ratios": [1, 1.1, 1.2]})
    pentagon_panel(left, data)
    distance_panel(middle, data)
    hyperplane_panel(right, config.h)
    return figure


def pentagon_panel(axes: Axes, data: xr.Dataset) -> None:
    """f_FA's line in grey, f_FD's polyhedral boundary in green, f = 0 hatched; shortest moves dotted."""
    mixture = pentagon()
    ticks = torch.linspace(-REACH, REACH, GRID, dtype=torch.float64)
    X, Y = torch.meshgrid(ticks, ticks, indexing="xy")
    plane = torch.stack([X.flatten(), Y.flatten()], 1)
    score = decoupled_net(mixture)(plane).reshape(GRID, GRID).numpy()
    sides = np.sign(np.where(np.abs(score) < 1e-9, 0, score))
    axes.contourf(X, Y, sides, [-1.5, -0.5, 0.5, 1.5], colors=["C1", "white", "C0"], alpha=0.16)
    axes.contour(X, Y, score, [-1e-3, 1e-3], colors="C2", linewidths=1.8, linestyles="solid")
    line = average_net(mixture)(plane).reshape(GRID, GRID).numpy()
    axes.contour(X, Y, line, [0], colors="0.45", linewidths=2.2)
    centres, moves = mixture.centres.numpy(), data.move.values
    height = data.pentagon_distance.sel(classifier="f_FA").values
    normal = mixture.centres[:3].sum(0).numpy()
    normal /= np.linalg.norm(normal)
    for j, (x, move, y) in enumerate(zip(centres, moves, mixture.labels.tolist(), strict=True)):
        to_line = x - y * height[j] * normal
        axes.plot([x[0], to_line[0]], [x[1], to_line[1]], ":", color="0.45", linewidth=1.5)
        axes.plot([x[0], x[0] + move[0]], [x[1], x[1] + move[1]], ":", color="C2", linewidth=2)
        axes.plot(*x, "o" if y > 0 else "s", color="C0" if y > 0 else "C1", markersize=8, zorder=4)
        axes.annotate(
            rf"$\mu_{j + 1}$", 1.19 * x, ha="center", va="center", color="C0" if y > 0 else "C1"
        )
    axes.annotate(r"$f_{FA}=0$", (-1.7, 0.06), color="0.35", va="bottom")
    axes.annotate(r"$f_{FD}>0$", (0.9, 1.45), color="C0", ha="center")
    axes.annotate(r"$f_{FD}<0$", (0, -1.55), color="C1", ha="center")
    axes.annotate(r"$f_{FD}=0$", (0.0, -0.3), color="C2", ha="center", va="center")
    axes.set_aspect("equal")
    axes.grid(False)
    axes.set(xlabel=r"$x_1/\Vert\mu\Vert$", ylabel=r"$x_2/\Vert\mu\Vert$")
    axes.set_title("five centres in the plane that sum to zero")


def distance_panel(axes: Axes, data: xr.Dataset) -> None:
    """Distance of a centre to each boundary by K: measured (filled: positive class) and closed forms.

    The curve of f_FA is for classes of equal size.
    """
    K = data.K.values
    fine = np.geomspace(K.min(), K.max(), 200)
    curves = (
        ("f_FA", "$f_{FA}$", 1 / np.sqrt(fine - 1), "0.45"),
        ("f_FD, ties", "$f_{FD}$, $f=0$ breaks", [f_FD_distance(k, "ties") for k in fine], "C2"),
        (
            "f_FD, strict",
            "$f_{FD}$, sign must change",
            [f_FD_distance(k, "strict") for k in fine],
            "C3",
        ),
    )
    for index, (boundary, name, theory, colour) in enumerate(curves):
        axes.plot(fine, theory, **THEORY)
        for side, fill in (("negative", "white"), ("positive", colour)):
            ends = data.distance.sel(boundary=boundary, side=side)
            lower, upper = ends.transpose("end", "K").values
            axes.errorbar(
                K,
                upper,
                [upper - lower, 0 * upper],
                fmt=MARKERS[index],
                color=colour,
                markerfacecolor=fill,
                label=name if side == "positive" else None,
                zorder=3,
            )
    axes.plot([], [], **THEORY, label="closed forms")
    axes.set_xscale("log")
    axes.set_xticks(K, [str(k) for k in K])
    axes.minorticks_off()
    axes.set(ylim=(0, 1.25), xlabel="clusters $k$ on a simplex (open: the negative class)")
    axes.set_ylabel(r"distance to the boundary$/\sqrt{d}$")
    axes.set_title("a centre's distance to the two boundaries")
    axes.legend(loc="upper right")


def hyperplane_panel(axes: Axes, h: float) -> None:
    """Figure 4's schematic: points just above and below a line, the line, and 1-NN's boundary."""
    h = min(h, 0.2)
    place = torch.arange(6, dtype=torch.float64)
    y = 1 - 2 * (place % 2)
    x = torch.stack([place, h * y], 1)
    ticks = torch.linspace(-0.7, 5.7, GRID, dtype=torch.float64)
    rise = torch.linspace(-2.4, 2.0, GRID, dtype=torch.float64)
    X, Y = torch.meshgrid(ticks, rise, indexing="xy")
    rule = NearestNeighbour(x, y)
    score = rule(torch.stack([X.flatten(), Y.flatten()], 1)).reshape(GRID, GRID).numpy()
    axes.contourf(X, Y, np.sign(score), [-1.5, 0, 1.5], colors=["C1", "C0"], alpha=0.16)
    axes.contour(X, Y, score, [0], colors="C2", linewidths=1.8)
    axes.axhline(0, color="0.45", linewidth=2.2)
    for sign, colour, marker in ((1, "C0", "o"), (-1, "C1", "s")):
        mine = x[y == sign]
        axes.plot(mine[:, 0], mine[:, 1], marker, color=colour, markersize=7, zorder=4)
    turn = np.linspace(0, 2 * np.pi, 100)
    for (a, b), sign in zip(x.tolist(), y.tolist(), strict=True):
        half = np.hypot(1, 2 * h) / 2
        axes.plot(
            a + half * np.cos(turn),
            b + half * np.sin(turn),
            color="C0" if sign > 0 else "C1",
            linewidth=0.9,
        )
    axes.plot([], [], color="0.45", linewidth=2.2, label="the hyperplane: radius $h$")
    axes.plot([], [], color="C2", label="1-NN: radius of the balls")
    axes.legend(loc="lower center", frameon=True, edgecolor="none")
    axes.set_aspect("equal")
    axes.grid(False)
    axes.set(xlabel="along the hyperplane", ylabel="height")
    axes.set_title(f"Figure 4: points at height $\\pm h$ ($h={h:g}$)")
