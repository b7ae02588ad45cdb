"""Figures 6 and 11: one row a layer; random, clean and robust side by side."""

import xarray as xr
from matplotlib.figure import Figure

from tacit.papers.allenzhu2020.deep.figure import NAMES, mosaic, setting_of, show, stretched
from tacit.papers.allenzhu2020.fig11.settings import Purified

TITLES = {
    "random": "random",
    "clean": "after clean training",
    "robust": "after adversarial training",
}


def draw(data: xr.Dataset, config: Purified) -> Figure:
    """`shown` neurons of each layer; on grey stretched about it, on black as they are, to their brightest."""
    layers = [int(layer) for layer in data.layer.values]
    columns = 4 if len(layers) < 5 else 8  # few layers leave room for large pictures
    rows = -(-min(config.shown, data.sizes["neuron"]) // columns)
    figure = Figure(figsize=(13.0, 0.6 + len(layers) * (0.4 + 4.0 / columns * rows)))
    axes = figure.subplots(len(layers), 3, squeeze=False)
    for i, layer in enumerate(layers):
        for j, (stage, title) in enumerate(TITLES.items()):
            here = data.sel(layer=layer, stage=stage)
            images = here.image.dropna("neuron").values[: config.shown]
            if config.rest == "grey":
                images = stretched(images, 0.5)
            else:
                images = images / images.max((1, 2, 3), keepdims=True).clip(1e-9)
            told = f"coarse shapes: {100 * float(here.coarse.mean()):.0f}%"
            show(
                axes[i, j],
                mosaic(images, columns),
                f"{title}; {told}" if i == 0 else told,
                f"layer {layer}" if j == 0 else "",
            )
    natural = f"natural images: {100 * float(data.natural_coarse.mean()):.0f}%"
    figure.suptitle(
        f"{setting_of(config)}, {NAMES[config.attacker]}; layers below are robust and frozen; {natural}",
        fontsize="medium",
    )
    return figure
