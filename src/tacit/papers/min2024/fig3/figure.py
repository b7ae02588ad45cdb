"""The panels of Figures 3 and 6."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.ticker import MaxNLocator
from sklearn.isotonic import isotonic_regression

from tacit.papers.min2024.fig3.settings import Curves
from tacit.papers.min2024.images.claims import sampling_error

LABEL = 0.08  # height of a label, of the axes


def correlation_panel(axes: Axes, data: xr.Dataset) -> None:
    """(a) cos(x_i, x_j), labels in order."""
    label = data.label.values
    image = axes.imshow(
        data.correlation, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest", rasterized=True
    )
    kinds = np.unique(label)
    middle = [float(np.flatnonzero(label == kind).mean()) for kind in kinds]
    axes.set_xticks(middle, [str(kind) for kind in kinds])
    axes.set_yticks(middle, [str(kind) for kind in kinds])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.set_xlabel("label of $x_j$")
    axes.set_ylabel("label of $x_i$")
    axes.set_title("(a) $\\cos(x_i, x_j)$, centred points")
    axes.figure.colorbar(image, ax=axes, ticks=[-1, 0, 1], pad=0.02, fraction=0.05)


def accuracy_panel(axes: Axes, data: xr.Dataset, config: Curves) -> None:
    """(b) test (full) and train accuracy (dashed): mean and range over seeds."""
    later = data.sel(epoch=slice(1, None))
    for index, p in enumerate(config.p):
        band(axes, later.test_accuracy.sel(p=p), f"C{index}", label=f"$p$ = {p:g}")
        band(axes, later.train_accuracy.sel(p=p), f"C{index}", linestyle="--", linewidth=1.1)
    settled = data.sel(epoch=slice(max(1, config.epochs // 10), None))
    low = float(min(settled.test_accuracy.min(), settled.train_accuracy.min()))
    axes.set_ylim(low - 0.1 * (1 - low), 1 + 0.05 * (1 - low))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("epoch")
    axes.set_ylabel("accuracy")
    axes.set_title("(b) test (full), train (dashed)")
    axes.legend(loc="best")


def rank_panel(axes: Axes, data: xr.Dataset, config: Curves) -> None:
    """(c) stable rank of the hidden features of the training points."""
    for index, p in enumerate(config.p):
        band(axes, data.stable_rank.sel(p=p), f"C{index}")
    axes.set_ylim(0, None)
    end = data.stable_rank.isel(epoch=-1).mean("seed").sel(p=list(config.p)).values
    places = apart(end, LABEL * axes.get_ylim()[1])
    for index, (p, place) in enumerate(zip(config.p, places, strict=True)):
        axes.annotate(
            f"$p$ = {p:g}",
            (config.epochs, float(place)),
            xytext=(3, 0),
            textcoords="offset points",
            color=f"C{index}",
            va="center",
            annotation_clip=False,
        )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("epoch")
    axes.set_ylabel(r"$\|A\|_F^2\,/\,\|A\|_2^2$")
    axes.set_title("(c) stable rank of the features")


def apart(at: np.ndarray, gap: float) -> np.ndarray:
    """The places nearest to `at` (least squares) in the same order, with at least `gap` from one to the next."""
    order, room = at.argsort(), gap * np.arange(len(at))
    places = np.empty(len(at))
    places[order] = isotonic_regression(at[order] - room) + room
    return places


def robust_panel(axes: Axes, data: xr.Dataset, config: Curves) -> None:
    """(d) robust accuracy over the radius: mean over seeds, their range and the 95% sampling error."""
    points = data.sizes["point"]
    for index, p in enumerate(config.p):
        here = data.robust.sel(p=p)
        mean = here.mean("seed")
        axes.plot(
            here.radius,
            mean,
            "o-",
            color=f"C{index}",
            markersize=3.5,
            label=f"$p$ = {p:g}",
            clip_on=False,
        )
        error = sampling_error(mean, points, int(data.attrs["test_points"]))
        axes.fill_between(
            here.radius,
            np.minimum(here.min("seed"), mean - error),
            np.maximum(here.max("seed"), mean + error),
            color=f"C{index}",
            alpha=0.2,
            linewidth=0,
        )
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, None)
    axes.set_xlabel(r"$\ell_\infty$ radius of the attack")
    axes.set_ylabel("robust accuracy")
    axes.set_title(f"(d) robustness, {points:,} points")
    axes.legend(loc="upper right")


def picture_panel(figure: Figure, place: SubplotSpec, data: xr.Dataset) -> None:
    """(e) images, and the least change found that breaks a net."""
    versions, images = data.picture.shape[:2]
    part = figure.add_subfigure(place)
    part.suptitle(
        r"(e) test images, and the smallest $\ell_\infty$ change found that breaks the net",
        x=0.01,
        ha="left",
        fontsize=10.5,
    )
    for row, column in np.ndindex(versions, images):
        axes = part.add_subplot(versions, images, row * images + column + 1)
        shown = data.picture.values[row, column]
        axes.imshow(
            shown.squeeze(), cmap="gray", vmin=0, vmax=1, interpolation="nearest", rasterized=True
        )
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(True)
        needed = float(data.needed[row, column])
        if row:
            axes.set_title(
                named(needed),
                loc="center",
                pad=2,
                fontsize="small",
            )
        if column == 0:
            axes.set_ylabel(
                str(data.version.values[row]), rotation=0, ha="right", va="center", labelpad=8
            )


def named(needed: float) -> str:
    """The size of a change in words."""
    if needed == 0:
        return "wrong as it is"
    return f"{needed:.2f}" if needed < math.inf else "unbroken"


def band(axes: Axes, values: xr.DataArray, colour: str, **style: object) -> None:
    """Mean over seeds, and the region between their least and largest."""
    low, high = values.min("seed"), values.max("seed")
    axes.plot(values.epoch, values.mean("seed"), color=colour, **style)  # type: ignore[arg-type]
    axes.fill_between(values.epoch, low, high, color=colour, alpha=0.2, linewidth=0)
