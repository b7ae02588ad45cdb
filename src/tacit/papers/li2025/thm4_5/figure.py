"""The figure of `li2025.thm4.5`: critical radius and distance to the averages, along d, k, n and time."""

import math

import xarray as xr
from matplotlib.figure import Figure

from tacit.papers.li2025.sweeps.figure import LABELS, PanelRow, sweep_panels
from tacit.papers.li2025.sweeps.settings import Sweep

RADIUS = PanelRow(
    r"$\ell_2$ radius",
    (
        (r"$\sqrt{d/k}\,/\sqrt{1+k/n}$", lambda at: math.sqrt(at.d / at.k / (1 + at.k / at.n))),
        (r"$\sqrt{d/2}$", lambda at: math.sqrt(at.d / 2)),
    ),
    (("radius", "critical radius", 0),),
)
CLOSE = PanelRow(
    r"$\sqrt{d}\;\Vert w-\lambda\sum_{J_s}\mu_j/\Vert\mu_j\Vert^2\Vert\;/\;\lambda$",
    ((r"remembered noise, $k/\sqrt{2n}$", lambda at: at.k / math.sqrt(2 * at.n)),),
    (
        ("close", "all of it, the largest of a neuron", 3),
        ("noise", "noise ($L_4$)", 2),
        ("spread", r"spread of $\lambda$ ($L_2$)", 1),
    ),
)


def draw(data: xr.Dataset, config: Sweep) -> Figure:
    """Two rows of four panels."""
    title = rf"Theorem 4.5 {{around}}, $\eta T=1$ ($\eta={config.eta:g}$; {{seeds}})"
    figure, panels = sweep_panels(data, config, tuple(LABELS), (RADIUS, CLOSE), title)
    panels[0, -1].legend(loc="lower right", fontsize=8)
    low, high = panels[1, 0].get_ylim()
    panels[1, 0].set_ylim(low / 4, high)  # room for the legend
    panels[1, 2].legend(loc="lower left", fontsize=8)
    return figure
