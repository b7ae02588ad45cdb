"""Figure 4: images above, what a few robust features make of them below."""

import xarray as xr
from matplotlib.figure import Figure

from tacit.papers.allenzhu2020.deep.figure import NAMES, mosaic, setting_of, show
from tacit.papers.allenzhu2020.fig4.settings import Rebuilt


def draw(data: xr.Dataset, config: Rebuilt) -> Figure:
    """Each rebuilt image with its share of the coefficients."""
    n = config.shown
    figure = Figure(figsize=(max(1.05 * n + 1.8, 7.0), 3.3))
    rows = {"picture": "image", "rebuilt": "from robust\nfeatures"}
    panels = figure.subplots(2, n, squeeze=False)
    for line, (name, label) in zip(panels, rows.items(), strict=True):
        for k, axes in enumerate(line):
            here = data[name].values[k : k + 1]
            show(axes, mosaic(here, 1), label=label if k == 0 else "")
    for axes, share in zip(panels[1], data.sparsity.values[:n], strict=True):
        axes.set_xlabel(f"{100 * share:.1f}%", fontsize="medium")
    mean, psnr = (float(data[name].mean()) for name in ("sparsity", "psnr"))
    told = f"{100 * mean:.2f}% of the coefficients are not 0 on average over {data.sizes['image']} images"
    at = f"relative squared error {config.error:g}, PSNR {psnr:.1f} dB"
    head = f"{setting_of(config)}, trained against {NAMES[config.attacker]}"
    figure.suptitle(f"{head}\n{told}\n{at}", fontsize="medium")
    return figure
