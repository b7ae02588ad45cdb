"""The figure of `frei2023.remarks`: errors, lengths along z and P1 to P6 of every case."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import MARKERS, THEORY
from tacit.papers.frei2023.remarks.settings import Remarks

KINDS = ("noise", "norms", "sigma")


def draw(data: xr.Dataset, config: Remarks) -> Figure:
    """Three panels over the same cases."""
    figure = Figure(figsize=(12, 7))
    panels = figure.subplots(3, 1, sharex=True, height_ratios=(1, 1, 1.1))
    error_panel(panels[0], data, config)
    eta_panel(panels[1], data)
    property_panel(panels[2], data)
    return figure


def titles(data: xr.Dataset) -> list[str]:
    """What sets each case apart."""
    made = []
    for kind, name, d in zip(data.kind.values, data.name.values, data.d.values, strict=True):
        power = {"0.125": "1/8", "0.25": "1/4"}.get(str(name), str(name))
        made.append(
            {
                "noise": f"{name}\nnoise",
                "norms": f"norms\n$1\\pm{name}$",
                "sigma": f"$\\sigma=d^{{{power}}}$\n$d={d}$",
            }[str(kind)]
        )
    return made


def spread_dots(axes: Axes, data: xr.Dataset, values: np.ndarray) -> None:
    """One dot a data set, in the colour of the remark."""
    seeds = values.shape[1]
    for i, kind in enumerate(data.kind.values):
        index = KINDS.index(str(kind))
        x = i + 0.3 * (np.arange(seeds) / max(seeds - 1, 1) - 0.5)
        axes.plot(x, values[i], MARKERS[index], color=f"C{index}", markersize=5, alpha=0.75)


def error_panel(axes: Axes, data: xr.Dataset, config: Remarks) -> None:
    """Test errors; one below a third of a point is drawn there."""
    floor = 0.3 / config.tests
    spread_dots(
        axes, data, np.maximum(data.wrong.transpose("case", "seed").values / config.tests, floor)
    )
    axes.axhline(0.01, **THEORY)
    axes.set(yscale="log", ylim=(floor / 2, 1), ylabel="test error")
    axes.set_title(f"test errors (none of {config.tests:,} points is drawn at the bottom), bar 1%")


def eta_panel(axes: Axes, data: xr.Dataset) -> None:
    """k eta with 1, and twice it, by which 99% should flip."""
    spread_dots(axes, data, data.eta_k.transpose("case", "seed").values)
    axes.axhline(1, **THEORY)
    axes.set(ylim=(0.88, 1.12), ylabel=r"$k\,\eta$")
    axes.set_title(
        r"length along $z=\eta\sum y\mu$ that flips half of the points: class averages say $\eta=1/k$"
    )


def property_panel(axes: Axes, data: xr.Dataset) -> None:
    """The share of data sets in which each property holds."""
    share = (data.worst <= 1).mean("seed").transpose("property", "case").values
    axes.imshow(share, aspect="auto", vmin=0, vmax=1, cmap="Blues")
    for (p, c), value in np.ndenumerate(share):
        axes.text(c, p, f"{value:.2g}", ha="center", va="center", fontsize=8,
                  color="white" if value > 0.5 else "black")  # fmt: skip
    axes.set_yticks(range(data.sizes["property"]), [str(p) for p in data.property.values])
    axes.set_xticks(range(data.sizes["case"]), titles(data), fontsize=8)
    axes.grid(False)
    axes.set_title(
        "share of data sets with each property that the proof needs, with the paper's constants"
    )
