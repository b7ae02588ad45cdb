"""The panels of Figure 4 that differ from those of Figures 3 and 6."""

import xarray as xr
from matplotlib.axes import Axes

from tacit.papers.min2024.fig3 import figure as fig3_panels
from tacit.papers.min2024.fig4.settings import FeatureNets

LABELLED = 10  # class names that find room beside the map


def correlation_panel(axes: Axes, data: xr.Dataset) -> None:
    """(a) cos(z_i, z_j) of centred features, classes in order."""
    fig3_panels.correlation_panel(axes, data)
    for axis in (axes.xaxis, axes.yaxis):
        places, names = axis.get_ticklocs(), [tick.get_text() for tick in axis.get_ticklabels()]
        every = -(-len(names) // LABELLED)
        axis.set_ticks(places[::every], names[::every])
    axes.set_xlabel("class of $z_j$")
    axes.set_ylabel("class of $z_i$")
    axes.set_title(r"(a) $\cos(z_i, z_j)$, centred features")


def robust_panel(axes: Axes, data: xr.Dataset, config: FeatureNets) -> None:
    """(d) robust accuracy over the radius; crosses: the stronger attack."""
    fig3_panels.robust_panel(axes, data, config.curves(int(data.attrs["superclasses"])))
    for index, p in enumerate(config.p):
        axes.plot(
            [max(config.radius)],
            [float(data.strict.sel(p=p).mean())],
            "x",
            color=f"C{index}",
            markersize=8,
            clip_on=False,
            label="margin, 3 starts" if index == 0 else None,
        )
    axes.legend(loc="lower left", fontsize="small")
    axes.set_xlabel(r"$\ell_\infty$ radius in feature space")
