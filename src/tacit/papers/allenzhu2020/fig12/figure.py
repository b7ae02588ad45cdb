"""Figure 12: error against sparsity, images above and perturbations below."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import THEORY
from tacit.papers.allenzhu2020.deep.figure import NAMES, setting_of
from tacit.papers.allenzhu2020.fig12.settings import EitherNet

FEATURES = {"random": "random features", "clean": "clean features", "robust": "robust features"}
TARGETS = {
    "clean_delta": "perturbations of the clean net",
    "robust_delta": "perturbations of the robust net",
    "robust": "images, as above",
}
COLOURS = {"random": "0.55", "clean": "C1", "robust": "C0"}


def draw(data: xr.Dataset, config: EitherNet) -> Figure:
    """One thin line an image, a thick one for the median at each weight."""
    figure = Figure(figsize=(7.6, 7.4))
    top, bottom = figure.subplots(2, 1, sharex=True)
    curves(top, data, FEATURES, config)
    top.set_title(f"{data.sizes['image']} images, reconstructed from three sets of features")
    curves(bottom, data, TARGETS, config)
    title = f"perturbations ({NAMES[config.attacker]}), reconstructed from robust features"
    bottom.set_title(title)
    bottom.set_xlabel("coefficients that are not 0 (share)")
    figure.suptitle(setting_of(config), fontsize="medium")
    return figure


def curves(axes: Axes, data: xr.Dataset, cases: dict[str, str], config: EitherNet) -> None:
    """The paths of these cases; images among perturbations are dotted."""
    for name, label in cases.items():
        here = data.sel(case=name)
        dotted = cases is TARGETS and name == "robust"
        colour = "0.3" if dotted else COLOURS[name.removesuffix("_delta")]
        if not dotted:
            axes.plot(here.sparsity, here.error, linewidth=0.4, alpha=0.25, color=colour)
        across, down = (np.median(here[key].values, 1) for key in ("sparsity", "error"))
        style = ":" if dotted else "-"
        axes.plot(across, down, style, linewidth=2.2, label=label, color=colour)
    axes.axhline(config.error, **THEORY)
    axes.annotate(
        "compared here", (0.99, config.error), xycoords=("axes fraction", "data"), ha="right",
        xytext=(0, 3), textcoords="offset points", fontsize="small", color="0.35",
    )  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylabel("relative squared error")
    axes.set_ylim(top=1.1)
    axes.set_xlim(left=0)
    axes.legend(loc="upper right")
