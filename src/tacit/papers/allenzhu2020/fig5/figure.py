"""Figure 5: the share of active neurons over the epochs, one line a ReLU."""

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tacit.papers.allenzhu2020.deep.figure import images_told
from tacit.papers.allenzhu2020.fig5.settings import Active

LIGHT, DARK = 0.25, 1.0  # of the colour map that runs from early layers to late ones


def draw(data: xr.Dataset, config: Active) -> Figure:
    """Thin lines from early (light) to late (dark), their mean thick."""
    figure = Figure(figsize=(7.4, 4.6))
    axes = figure.subplots()
    layers, epochs = data.layer.values, data.epoch.values
    colours = matplotlib.colormaps["Blues"]
    shades = colours(np.linspace(LIGHT, DARK, len(layers)))
    for layer, shade in zip(layers, shades, strict=True):
        axes.plot(epochs, data.share.sel(layer=layer), linewidth=0.9, color=shade)
    axes.plot(epochs, data.share.mean("layer"), linewidth=3, color="C1", label="mean over ReLUs")
    axes.set_xlabel("epochs of clean training")
    axes.set_ylabel("active neurons (share)")
    axes.set_xlim(0, epochs[-1])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(0, max(0.7, 1.05 * float(data.share.max())))
    axes.legend(loc="upper right")
    shown = matplotlib.colors.ListedColormap(shades)
    scale = matplotlib.cm.ScalarMappable(Normalize(0.5, len(layers) + 0.5), shown)
    figure.colorbar(scale, ax=axes, label="ReLU, from first to last")
    accuracy = f"clean accuracy {100 * float(data.right.mean()):.1f}%"
    over = f"{data.sizes['image']:,} test images, all positions"
    axes.set_title(f"{over}; {accuracy} at the end", fontsize="medium")
    figure.suptitle(f"{config.net}, {images_told(config.training)}", fontsize="medium")
    return figure
