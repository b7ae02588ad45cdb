"""The panels of `allenzhu2020.angles`: one for each angle."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from tacit.papers.allenzhu2020.angles.settings import Turned

BINS = np.linspace(0, 1, 41)


def draw(data: xr.Dataset, config: Turned) -> Figure:
    """Histograms over neurons that fire, all trainings; the median of each training as a tick."""
    figure = Figure(figsize=(11.2, 3.3))
    panels = figure.subplots(1, 4, sharex=True)
    centres = (BINS[1:] + BINS[:-1]) / 2
    for axes, name, title, colour in zip(
        panels,
        ("start_clean", "start_pure", "clean_pure", "pairs"),
        (
            r"$\theta(w^{(0)},w)$: start, clean",
            r"$\theta(w^{(0)},w')$: start, purified",
            r"$\theta(w,w')$: clean, purified",
            r"$\theta(w_i,w_j)$: two neurons",
        ),
        ("C0", "C1", "C2", "C3"),
        strict=True,
    ):
        if name == "pairs":
            share, middle = data.pairs.mean("seed").values, data.pair_median.values
        else:
            values = data[name].values
            share = np.histogram(values[np.isfinite(values)], BINS)[0] / np.isfinite(values).sum()
            middle = data[name].median("neuron").values
        axes.bar(centres, share, width=BINS[1] - BINS[0], color=colour, alpha=0.75)
        axes.plot(
            middle, np.full(len(middle), -0.03 * share.max()), "|", color="0.15", markersize=9
        )
        axes.set(xlim=(0, 1), yticks=[], xlabel=rf"$\theta$, median {np.median(middle):.2f}")
        axes.set_title(title, fontsize="medium")
        axes.grid(visible=False)
    panels[0].set_ylabel(f"share of neurons, {data.sizes['seed']} trainings")
    return figure
