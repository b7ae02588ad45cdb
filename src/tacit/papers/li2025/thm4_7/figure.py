"""The figure of `li2025.thm4.7`: critical radius and distance to the features, along d, k, n and time."""

import math

import xarray as xr
from matplotlib.figure import Figure

from tacit.papers.li2025.sweeps.figure import LABELS, PanelRow, sweep_panels
from tacit.papers.li2025.sweeps.settings import Sweep

RADIUS = PanelRow(
    r"$\ell_2$ radius",
    (
        (r"$\sqrt{d/2}\,/\sqrt{1+k/n}$", lambda at: math.sqrt(at.d / 2 / (1 + at.k / at.n))),
        (r"$\sqrt{d/k}$ (2 labels)", lambda at: math.sqrt(at.d / at.k)),
    ),
    (("radius", "critical radius (attacked)", 0),),
)
CLOSE = PanelRow(
    r"$\sqrt{d}\;\Vert w_{jr}-\lambda\mu_j/\Vert\mu_j\Vert^2\Vert\;/\;\lambda$",
    ((r"remembered noise, $\sqrt{k/n}$", lambda at: math.sqrt(at.k / at.n)),),
    (("close", "median neuron", 3), ("close_most", "worst neuron (1: nothing learned)", 1)),
)


def draw(data: xr.Dataset, config: Sweep) -> Figure:
    """Two rows of four panels."""
    title = rf"Theorem 4.7 {{around}} at $\eta T=k^8$, $h={config.h}$ ({{seeds}})"
    figure, panels = sweep_panels(data, config, tuple(LABELS), (RADIUS, CLOSE), title)
    panels[0, -1].legend(loc="lower right", fontsize=8)
    panels[1, 1].legend(loc="upper left", fontsize=8)
    return figure
