"""The figure of `li2025.eps`."""

import xarray as xr
from matplotlib.figure import Figure

from tacit.papers.li2025.eps.settings import Small


def draw(data: xr.Dataset, config: Small) -> Figure:
    """TODO"""
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1])
    return figure
