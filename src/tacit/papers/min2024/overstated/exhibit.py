r"""How far common attacks overstate robust accuracy as p grows, where the truth is known and where it is bounded.

An attack's robust accuracy is an upper bound of the truth. At p = 1 the bound of any good attack is near the
truth. At larger p it need not be: the gradient of relu(z)^p vanishes at the kink of each neuron that is off at
the point, so that a search follows the neurons that are on and does not see those that it would have to switch
on. On clusters it ends at a local minimum of the margin (docs/guide/other-tools.md); on images the same happens
by degrees.

Nets of each p are trained on clusters and on images (`grounds`) and attacked in ten ways (`attacks`). A point
that an attack leaves and another breaks is overstated. Certificates bound the truth from below.
"""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from tacit.lab import Bench, Outcome
from tacit.papers.min2024.images.claims import other_data
from tacit.papers.min2024.images.nets import pictures_of
from tacit.papers.min2024.images.training import trained_nets
from tacit.papers.min2024.overstated.attacks import ALL, TOOLS, costs, missing
from tacit.papers.min2024.overstated.claims import claims
from tacit.papers.min2024.overstated.figure import cost_panel, curve_panel, growth_panel
from tacit.papers.min2024.overstated.grounds import on_clusters, on_images
from tacit.papers.min2024.overstated.settings import Overstated


def run(config: Overstated, bench: Bench) -> Outcome:
    """Train, attack, certify, judge."""
    bench.tell(other_data(config, bench))
    bench.tell(other_tools(bench))
    # a part without them is another part than one with them
    tools = () if bench.smoke else tuple(name for name in TOOLS if name not in missing())
    seeds = bench.seeds(config.repeats)
    along = xr.Variable("seed", seeds)
    clusters = [
        bench.part(f"clusters-{seed}", partial(on_clusters, config, bench, seed, tools))
        for seed in bench.steps(seeds, "data sets of clusters, a net for each p")
    ]
    pictures = pictures_of(config.dataset, config.classes).to(bench.device)
    nets, curves = trained_nets(config, bench, pictures, own_order=True)
    cells = [(kind, seed) for kind in ("linf", "l2") for seed in seeds]
    found = {
        cell: bench.part(
            f"images-{cell[0]}-{cell[1]}", partial(on_images, config, nets, pictures, *cell, tools)
        )
        for cell in bench.steps(cells, "norms on images, all attacks each")
    }
    images = xr.concat(
        [xr.concat([found[kind, seed] for seed in seeds], along) for kind in ("linf", "l2")],
        "row",
        data_vars="minimal",
        coords="minimal",
        compat="override",
    )
    data = xr.merge([xr.concat(clusters, along), images])
    starts = {"cluster": int(data.cluster_starts.max()), "image": int(data.starts.max())}
    classes = {"cluster": 2, "image": config.classes}
    for place, count in starts.items():
        cost = costs(config, classes[place], count)
        data[f"{place}_cost"] = ("attack", np.array([cost.get(name, 0) for name in ALL]))
    data["clean"] = curves.test_accuracy.isel(epoch=-1, drop=True).sortby("p")
    # the first ball is each net's own, and has no one radius
    data = data.assign_coords(ball_radius=("ball", [np.nan, *config.radius]))
    data = data.assign_attrs(test_points=len(pictures.test_x))
    saved = {f"p{p:g}-seed{bench.seed}": nets[p, bench.seed] for p in config.p}
    return Outcome(data, tuple(claims(data, config, bench)), saved)


def other_tools(bench: Bench) -> str | None:
    """What to tell where foolbox or ART are not there."""
    packages = sorted(set(missing().values()))
    if bench.smoke or not packages:
        return None
    return f"not installed: {', '.join(packages)}; their rows are left out (pip install them to have them)"


def draw(data: xr.Dataset, config: Overstated) -> Figure:
    """Overstatement over p on clusters and on images, robust curves at the largest p, and cost."""
    figure = Figure(figsize=(13.0, 7.2))
    axes = figure.subplots(2, 2)
    growth_panel(axes[0, 0], data, "clusters", "a")
    growth_panel(axes[0, 1], data, "images", "b")
    curve_panel(axes[1, 0], data, "c")
    cost_panel(axes[1, 1], data, "d")
    where = f"clusters: D = {config.D}, K = {config.K}, alpha = {config.alpha:g}; images: {config.dataset}, "
    where += f"{config.classes} classes, {config.epochs} epochs; {config.repeats} trainings of each"
    figure.suptitle(where, fontsize="medium")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=7,
        fontsize="small",
    )
    return figure
