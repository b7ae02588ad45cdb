"""The figure of `li2025.appendixC`."""

import xarray as xr
from matplotlib.figure import Figure

from tacit.papers.li2025.appendixC.settings import Classes


def draw(data: xr.Dataset, config: Classes) -> Figure:
    """To come."""
    figure = Figure()
    figure.subplots().plot([0, 1])
    return figure
