"""Figure 2: the angles of each layer's neurons, and what the nets of its stages can do."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import THEORY
from tacit.papers.allenzhu2020.deep.figure import NAMES, setting_of
from tacit.papers.allenzhu2020.fig2.claims import LARGE, SMALL, residual
from tacit.papers.allenzhu2020.fig2.settings import Turned

ANGLES = {
    "start_clean": (r"$\theta(w^{(0)}, w)$: start, clean", "0.55"),
    "start_robust": (r"$\theta(w^{(0)}, w')$: start, robust", "C1"),
    "clean_robust": (r"$\theta(w, w')$: clean, robust", "C0"),
}
STEPS = {"stage 1": ("0.55", "stage 1, whole net robust"), "clean": ("C1", "stage 2, clean from this layer on"),
         "robust": ("C0", "stage 3, robust from this layer on")}  # fmt: skip


def draw(data: xr.Dataset, config: Turned) -> Figure:
    """Angles above, accuracies below."""
    figure = Figure(figsize=(max(8.0, 1.5 + 0.75 * data.sizes["unit"]), 7.4))
    top, bottom = figure.subplots(2, 1, height_ratios=[1.5, 1])
    turned(top, data)
    can_do(bottom, residual(data), config)
    figure.suptitle(f"AlexNet and {setting_of(config)}", fontsize="medium")
    return figure


def turned(axes: Axes, data: xr.Dataset) -> None:
    """Median and the middle 80% of the neurons, one group a layer."""
    across = np.arange(data.sizes["unit"])
    for k, (name, (label, colour)) in enumerate(ANGLES.items()):
        low, middle, high = (data[name].quantile(q, "neuron").values for q in (0.1, 0.5, 0.9))
        spread = np.stack([middle - low, high - middle])
        axes.errorbar(
            across + 0.2 * (k - 1), middle, spread, fmt="o", capsize=3, color=colour, label=label
        )
    for line in (SMALL, LARGE):
        axes.axhline(line, **THEORY)
    axes.set_xticks(
        across,
        [f"{net}\n{layer}" for net, layer in zip(data.net.values, data.layer.values, strict=True)],
    )
    axes.set(ylim=(0, 1.02), ylabel=r"$\theta$ = |cosine| of a neuron's weights")
    axes.set_title(
        "(a) median and middle 80% of the neurons of each layer; lines: the paper's .2 and .8"
    )
    axes.legend(loc="upper center", ncols=3, bbox_to_anchor=(0.5, -0.12))


def can_do(axes: Axes, data: xr.Dataset, config: Turned) -> None:
    """Robust accuracy as bars, clean accuracy as ticks above."""
    across = np.arange(data.sizes["unit"])
    for k, (stage, (colour, label)) in enumerate(STEPS.items()):
        here = data.sel(stage=stage)
        at = across + 0.26 * (k - 1)
        axes.bar(at, here.own.mean("point"), 0.24, color=colour, label=label)
        axes.plot(
            at, here.plain.mean("point"), "_", color=colour, markersize=16, markeredgewidth=2.5
        )
    axes.set_xticks(across, [f"layer {layer}" for layer in data.layer.values])
    axes.set(ylim=(0, 1), ylabel="accuracy")
    axes.set_title(f"(b) bars: under {NAMES[config.attacker]}; ticks: clean")
    axes.legend(loc="upper center", ncols=3, fontsize="small")
