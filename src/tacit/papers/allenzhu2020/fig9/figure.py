"""Figure 9: random, clean = pure + mixture, robust, and clean again: a few filters at each station."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers.allenzhu2020.deep.figure import NAMES, Images, mosaic, setting_of, show, stretched
from tacit.papers.allenzhu2020.fig9.settings import Summary

COLUMNS = 4
TIMES = 3  # the mixture is small: it is drawn with so many times its contrast


def draw(data: xr.Dataset, config: Summary) -> Figure:
    """Filter i at the same place of all mosaics. Clean filters and their pure parts have one scale."""
    few = slice(0, min(config.shown, data.sizes["neuron"]))
    picture = {str(name): data.picture.sel(piece=name).values[few] for name in data.piece.values}
    clean, removed = picture["clean"], picture["removed"]
    most = np.abs(clean).max((1, 2, 3), keepdims=True)
    together: dict[str, Images] = {
        "clean": clean,
        "pure": clean - removed,
        "removed": TIMES * removed,
    }
    sheets = {name: 0.5 + each / (2 * most) for name, each in together.items()}
    sheets |= {name: stretched(picture[name], 0.0) for name in ("random", "robust", "again")}
    stations = {
        "random": (r"random $w^{(0)}$", ""),
        "clean": ("clean $w$", "clean\ntraining\n→"),
        "pure": ("part along $w'$", "="),
        "removed": (f"removed: mixture (x {TIMES})", "+"),
        "robust": ("robust $w'$", f"against\n{NAMES[config.attacker]}\n→"),
        "again": (f"{config.again} clean epochs later", "clean\nagain\n→"),
    }
    rows = -(-len(clean) // COLUMNS)
    figure = Figure(figsize=(14.5, 1.6 + 0.4 * rows))
    figure.set_layout_engine("constrained", wspace=0.36)
    panels = figure.subplots(1, len(stations))
    for axes, (name, (title, sign)) in zip(panels, stations.items(), strict=True):
        show(axes, mosaic(sheets[name], COLUMNS), title)
        told(axes, data, name)
        between = axes.text(
            -0.23, 0.5, sign, transform=axes.transAxes, ha="center", va="center", fontsize="small",
            linespacing=1.3,
        )  # fmt: skip
        between.set_in_layout(False)
    figure.suptitle(f"First-layer filters: {setting_of(config)}", fontsize="medium")
    return figure


def told(axes: Axes, data: xr.Dataset, name: str) -> None:
    """The numbers of a station, below it."""
    lines = []
    if name in data.net.values:
        plain, own = (
            f"{100 * float(data[key].sel(net=name).mean()):.0f}%" for key in ("plain", "own")
        )
        lines = [f"accuracy {plain}", f"attacked {own}"]
    elif name == "removed":
        lines = [f"{100 * float(data.removed_share.mean()):.0f}% of " + r"$\|w\|^2$"]
    else:
        lines = [f"{100 * float(1 - data.removed_share.mean()):.0f}% of " + r"$\|w\|^2$"]
    piece = "robust" if name == "pure" else name  # the same direction
    here = data.sel(piece=piece)
    lines.append(f"coarse shapes {100 * float(here.coarse.mean()):.0f}%")
    lines.append(f"total variation {float(here.variation.mean()):.2f}")
    axes.set_xlabel("\n".join(lines), fontsize="small")
