"""The figure of `li2025.thm4.6`: the distance from C f_FA, relative and absolute, along d, n and time."""

import math

import xarray as xr
from matplotlib.figure import Figure

from tacit.papers.li2025.sweeps.figure import At, PanelRow, sweep_panels
from tacit.papers.li2025.sweeps.settings import Sweep
from tacit.papers.li2025.sweeps.sweep import growth


def draw(data: xr.Dataset, config: Sweep) -> Figure:
    """Two rows of three panels."""

    def law(at: At) -> float:
        return growth(at.d, at.k, at.n, config.m, at.time) * at.k / math.sqrt(at.n)

    relative = PanelRow(
        r"relative to $\lambda=Cd$",
        ((r"$k/\sqrt{n}$", lambda at: at.k / math.sqrt(at.n)),),
        (("relative", r"distance$/\lambda$", 0),),
    )
    absolute = PanelRow(
        r"$\inf_C\,\sup_{\Vert x\Vert=\sqrt{d}}|Cf_{FA}-f|$",
        ((r"$\lambda k/\sqrt{n}$, $\lambda$ of theory", law),),
        (("absolute", "distance", 3), ("lam", r"$\lambda$", 2)),
    )
    title = r"Theorem 4.6 {around}, $\eta T=1$ ({seeds})"
    figure, panels = sweep_panels(data, config, ("d", "n", "time"), (relative, absolute), title)
    panels[0, 1].legend(loc="best", fontsize=8)
    panels[1, 0].legend(loc="best", fontsize=8)
    return figure
