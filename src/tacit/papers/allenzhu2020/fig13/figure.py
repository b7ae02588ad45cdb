"""Figure 13: one panel a net."""

import xarray as xr
from matplotlib.figure import Figure

from tacit.papers.allenzhu2020.deep.figure import NAMES, mosaic, setting_of, show, stretched
from tacit.papers.allenzhu2020.fig13.settings import Attackers

COLUMNS = 4


def draw(data: xr.Dataset, config: Attackers) -> Figure:
    """`shown` neurons of each net side by side, each stretched about mid-grey."""
    nets = [str(name) for name in data.net.values]
    rows = -(-min(config.shown, data.sizes["neuron"]) // COLUMNS)
    figure = Figure(figsize=(2.75 * len(nets), 0.9 + 0.65 * rows))
    for axes, name in zip(figure.subplots(1, len(nets), squeeze=False)[0], nets, strict=True):
        here = data.sel(net=name)
        title = f"{NAMES.get(name, 'clean')}\ncoarse shapes: {100 * float(here.coarse.mean()):.0f}%"
        show(axes, mosaic(stretched(here.image.values[: config.shown], 0.5), COLUMNS), title)
    figure.suptitle(f"{setting_of(config)}: features of layer {config.layer}", fontsize="medium")
    return figure
