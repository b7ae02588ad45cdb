"""The panels of `allenzhu2020.from_pure`."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from tacit.papers._shared.panels import THEORY
from tacit.papers.allenzhu2020.from_pure.settings import FromPure


def draw(data: xr.Dataset, config: FromPure) -> Figure:
    """Neurons in the dictionary at the start and later, the mixture, and accuracies."""
    figure = Figure(figsize=(12.4, 3.6))
    panels = figure.subplots(1, 4, width_ratios=[1, 1, 0.9, 1])
    pictures = data.picture.values
    unit = config.k / config.d
    steps = sum(config.clean_steps)
    n = pictures.shape[1]
    for axes, table, title in (
        (panels[0], np.eye(n), r"start: $w_i=w^\star_iM_i$"),
        (panels[1], pictures[-1], f"after {config.times * steps:,} clean steps"),
    ):
        scale = np.abs(np.diag(table)).mean()
        image = axes.imshow(
            table / scale, cmap="RdBu_r", vmin=-4 * unit, vmax=4 * unit, interpolation="nearest"
        )
        axes.set(xlabel="feature $j$", xticks=[], yticks=[], title=title)
        axes.grid(visible=False)
    panels[0].set_ylabel("neuron $i$")
    bar = figure.colorbar(image, ax=panels[1], fraction=0.046)
    bar.set_label(r"$w^\star_j\langle w_i,M_j\rangle/\alpha$", fontsize="small")
    axes = panels[2]
    names = {"pure": f"{steps:,}", "longer": f"{config.times * steps:,}", "clean": "random\nstart"}
    for place, name in enumerate(names):
        values = data.relative.sel(course=name).values / unit
        axes.plot(np.full(len(values), place), values, "o", color="C3", alpha=0.6, markersize=5)
    axes.axhline(1, **THEORY)
    axes.set_xticks(range(len(names)), names.values(), fontsize="small")
    axes.set(
        ylabel=r"mean $\beta/\alpha$ in $k/d$",
        ylim=(0, None),
        xlim=(-0.5, 2.5),
        title="the mixture",
    )
    axes = panels[3]
    for i, (kind, label) in enumerate(
        (("clean", "clean"), ("universal", r"along $Mw^\star$"), ("worst", "worst attack"))
    ):
        for place, name in enumerate(names):
            values = data[kind].sel(course=name).mean("point").values
            axes.plot(
                place + 0.12 * (i - 1) + 0 * values,
                values,
                "os^"[i],
                color=f"C{i}",
                alpha=0.6,
                markersize=5,
            )
        axes.plot([], [], "os^"[i], color=f"C{i}", label=label)
    axes.set_xticks(range(len(names)), names.values(), fontsize="small")
    axes.set(
        ylabel=rf"accuracy, $\tau$ = {config.tau:g}",
        ylim=(-0.03, 1.04),
        xlim=(-0.5, 2.5),
        title="what it does",
    )
    axes.legend(loc="lower left", fontsize="small")
    return figure
