"""The figure of `li2025.fig10`: both maps, the cosines of the class means, and their histograms."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers.li2025.fig10.settings import Correlations

MOST_NAMED = 12


def draw(data: xr.Dataset, config: Correlations) -> Figure:
    """A row for raw, one for centred embeddings."""
    figure = Figure(figsize=(11.5, 7.0))
    axes = figure.subplots(2, 3, width_ratios=[1, 1, 1])
    for row, reading in zip(axes, data.reading.values, strict=True):
        here = data.sel(reading=reading)
        image = row[0].imshow(
            here.correlation,
            cmap="RdBu_r",
            vmin=-1,
            vmax=1,
            interpolation="nearest",
            rasterized=True,
        )
        named(row[0], class_middles(data), data.feature.values)
        row[0].set_title(rf"$\cos(z_i, z_j)$, {reading}")
        row[1].imshow(here.of_means, cmap="RdBu_r", vmin=-1, vmax=1)
        named(row[1], list(range(data.sizes["feature"])), data.feature.values)
        row[1].set_title(rf"$\cos(\mu_a, \mu_b)$, {reading}")
        figure.colorbar(image, ax=row[:2].tolist(), ticks=[-1, 0, 1], pad=0.01, fraction=0.03)
        histogram(row[2], here, data.label.values, 1 / data.sizes["feature"])
    each = data.sizes["row"] // data.sizes["feature"]
    figure.suptitle(f"{config.named}, {each} images a class", fontsize="medium")
    return figure


def class_middles(data: xr.Dataset) -> list[float]:
    """Where the labels of the map stand."""
    label = data.label.values
    return [float(np.flatnonzero(label == kind).mean()) for kind in np.unique(label)]


def named(axes: Axes, at: list[float] | list[int], names: np.ndarray) -> None:
    """The classes by name, where there are few."""
    axes.grid(visible=False)
    axes.tick_params(length=0)
    few = len(names) <= MOST_NAMED
    axes.set_xticks(at if few else [], list(names) if few else [], rotation=90, fontsize="small")
    axes.set_yticks(at if few else [], list(names) if few else [], fontsize="small")


def histogram(axes: Axes, here: xr.Dataset, label: np.ndarray, bound: float) -> None:
    """Cosines of pairs of images, of one class and of two; the cosines of class means as ticks."""
    cosine, one = here.correlation.values, label[:, None] == label
    upper = np.triu(np.ones_like(one), 1)
    bins = np.linspace(min(-0.25, float(cosine.min())), 1, 61).tolist()
    for index, (mask, name) in enumerate(((one, "one class"), (~one, "two classes"))):
        axes.hist(
            cosine[mask & upper], bins, density=True, color=f"C{index}", alpha=0.55, label=name
        )
    means = here.of_means.values
    between = means[np.triu(np.ones_like(means, dtype=bool), 1)]
    axes.plot(
        between, np.zeros_like(between), "|", color="black", markersize=12, label="class means"
    )
    axes.axvspan(-bound, bound, color="0.9", zorder=0, linewidth=0, label=r"$|\cos| \leq 1/k$")
    axes.set(xlabel="cosine of a pair", ylabel="density")
    axes.legend(loc="upper right", fontsize="small")
