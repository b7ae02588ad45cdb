"""Figure 7: images, and what is added to them to break either net."""

import xarray as xr
from matplotlib.figure import Figure

from tacit.papers.allenzhu2020.deep.figure import NAMES, mosaic, setting_of, show, stretched
from tacit.papers.allenzhu2020.fig7.settings import Perturbations

LABELS = {"clean": "perturbation of\nthe clean net", "robust": "perturbation of\nthe robust net"}


def draw(data: xr.Dataset, config: Perturbations) -> Figure:
    """Three rows: the images, and the perturbations of either net, mid-grey where nothing is changed."""
    n = config.shown
    figure = Figure(figsize=(max(1.05 * n + 1.8, 7.0), 4.4))
    rows = figure.subplots(3, 1)
    show(rows[0], mosaic(data.picture.values, n), label="test image")
    for axes, (name, label) in zip(rows[1:], LABELS.items(), strict=True):
        here = data.sel(net=name)
        told = f"{label}\ncoarse shapes: {100 * float(here.coarse.mean()):.0f}%"
        show(axes, mosaic(stretched(here.delta.values, 0.0), n), label=told)
    within = f"perturbations within {NAMES[config.attacker]}, each stretched to its own range"
    figure.suptitle(f"{setting_of(config)}\n{within}", fontsize="medium")
    return figure
