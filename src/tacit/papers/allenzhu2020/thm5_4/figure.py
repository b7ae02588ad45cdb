"""Robust accuracy over the linf radius, before and after adversarial training."""

import xarray as xr
from matplotlib.figure import Figure

from tacit.papers._shared.panels import mark
from tacit.papers.allenzhu2020.thm5_4.claims import NAMES
from tacit.papers.allenzhu2020.thm5_4.settings import Box

NETS = {
    "clean": ("after clean training", "C1", "o-"),
    "pure": ("after adversarial training", "C0", "s-"),
}


def draw(data: xr.Dataset, config: Box) -> Figure:
    """One panel a dictionary: means over trainings, with the range of them."""
    count = len(config.dictionaries)
    figure = Figure(figsize=(5.0 * count + 0.4, 4.0))
    panels = figure.subplots(1, count, sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, config.dictionaries, strict=True):
        here = data.sel(dictionary=name).sortby("radius")
        tau = here.radius * config.unit
        for net, (label, colour, style) in NETS.items():
            found = here.sweep.sel(net=net)
            axes.fill_between(
                tau, found.min("seed"), found.max("seed"), color=colour, alpha=0.25, linewidth=0
            )
            axes.plot(tau, found.mean("seed"), style, color=colour, label=label, clip_on=False)
        printed, broken = (float(here["at"].sel(place=p).mean()) for p in ("printed", "broken"))
        mark(axes, printed, r"$k^{-1.75}/\|M\|_\infty$", 0.93)
        mark(axes, broken, r"$\|M\|_1/k^{2}$", 0.35, left=broken < printed)
        axes.set(xscale="log", ylim=(0, 1.03), xlabel=r"$\ell_\infty$ radius of the attack")
        axes.set_title(f"{NAMES[name]}, $d$ = {config.d}, $k$ = {config.k:g}")
    panels[0].set_ylabel("robust accuracy (worst attack)")
    panels[0].legend(loc="lower left", fontsize="small")
    return figure
