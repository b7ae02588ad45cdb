"""Figure 8: winners and losers over the epochs, the norms of all filters, and how early the winners are known."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import THEORY, rows
from tacit.papers.allenzhu2020.deep.figure import Images, mosaic, setting_of, show
from tacit.papers.allenzhu2020.fig8.claims import CHANCE, foretold
from tacit.papers.allenzhu2020.fig8.settings import Tickets

WON, LOST = "C3", "0.6"
CELL = 0.42  # inches a filter
CLIPPED = 99.5  # percent of the weights in a row of pictures that are within its scale


def draw(data: xr.Dataset, config: Tickets) -> Figure:
    """All pictures on one scale: what grows is seen to grow."""
    wide = CELL * data.sizes["frame"]
    figure = Figure(figsize=(wide + 7.0, 2 * (CELL * config.shown + 0.9)))
    cells = figure.add_gridspec(2, 2, width_ratios=[wide, 5.5])
    pictures = data.picture.values  # frame, shown, C, H, W
    scale = float(np.percentile(np.abs(pictures), CLIPPED))
    for k, title in enumerate(("largest at the end", "smallest at the end")):
        axes = figure.add_subplot(cells[k, 0])
        few = pictures[:, k * config.shown : (k + 1) * config.shown]
        film(axes, few, scale, [str(epoch) for epoch in data.frame.values], title)
    norms(figure.add_subplot(cells[0, 1]), data)
    known(figure.add_subplot(cells[1, 1]), data, config)
    figure.suptitle(
        f"First-layer filters in clean training: {setting_of(config)}", fontsize="medium"
    )
    return figure


def film(axes: Axes, pictures: Images, scale: float, epochs: list[str], title: str) -> None:
    """One row a filter, one column an epoch; 0 is mid-grey."""
    frames, shown, channels, height, width = pictures.shape
    flat = pictures.swapaxes(0, 1).reshape(frames * shown, channels, height, width)
    show(axes, mosaic(0.5 + flat / (2 * scale), frames), title)
    axes.set_xticks((np.arange(frames) + 0.5) * (width + 1) - 1, epochs)
    axes.tick_params(length=0)
    axes.set_xlabel("epochs")


def norms(axes: Axes, data: xr.Dataset) -> None:
    """(a) ||w|| of every filter."""
    won = data.won.values > 0
    for which, colour, label in (
        (~won, LOST, "losers"),
        (won, WON, "winners: the larger half at the end"),
    ):
        lines = axes.plot(data.epoch, data.norm.values[:, which], color=colour, linewidth=0.7)
        lines[0].set_label(label)
    epochs_of(axes, data, r"$\|w_i\|$")


def known(axes: Axes, data: xr.Dataset, config: Tickets) -> None:
    """(b) the share of winners that are in the larger half already, by norm and by response."""
    last = data.norm.isel(epoch=-1)
    for name, label, colour in (
        ("norm", "by norm", "C3"),
        ("response", "by response to the data", "C0"),
    ):
        every = [data[name].sel(epoch=t) for t in data.epoch.values]
        value, low, high = rows(foretold(each, last) for each in every)
        axes.plot(data.epoch, value, "o-", color=colour, markersize=3, label=label)
        axes.fill_between(data.epoch, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.axhline(CHANCE, **THEORY, label="chance")
    axes.set_ylim(0, 1.03)
    epochs_of(axes, data, "winners foretold")


def epochs_of(axes: Axes, data: xr.Dataset, label: str) -> None:
    """The first epochs wide, the later ones narrow."""
    axes.set_xscale("symlog", linthresh=2)
    axes.set_xticks(data.frame.values, [str(epoch) for epoch in data.frame.values])
    axes.minorticks_off()
    axes.set(xlabel="epochs", ylabel=label, xlim=(0, data.epoch.values[-1]))
    axes.legend(fontsize="small")
