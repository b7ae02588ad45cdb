"""Figure 10: clean features on the left, robust ones on the right, one row a layer."""

import xarray as xr
from matplotlib.figure import Figure

from tacit.papers.allenzhu2020.deep.figure import NAMES, mosaic, setting_of, show, stretched
from tacit.papers.allenzhu2020.fig10.settings import Features

COLUMNS = 8


def draw(data: xr.Dataset, config: Features) -> Figure:
    """`shown` neurons of each layer in both nets, each stretched about mid-grey."""
    rows = -(-min(config.shown, data.sizes["neuron"]) // COLUMNS)
    figure = Figure(figsize=(11.0, 0.7 + len(config.layers) * (0.35 + 0.62 * rows)))
    axes = figure.subplots(len(config.layers), 2, squeeze=False)
    titles = {"clean": "clean net", "robust": f"trained against {NAMES[config.attacker]}"}
    for i, layer in enumerate(config.layers):
        for j, name in enumerate(titles):
            here = data.sel(layer=layer, net=name)
            images = here.image.dropna("neuron").values[: config.shown]
            told = f"coarse shapes: {100 * float(here.coarse.mean()):.0f}%"
            title = f"{titles[name]}; {told}" if i == 0 else told
            label = f"layer {layer}" if j == 0 else ""
            show(axes[i, j], mosaic(stretched(images, 0.5), COLUMNS), title, label)
    figure.suptitle(setting_of(config), fontsize="medium")
    return figure
