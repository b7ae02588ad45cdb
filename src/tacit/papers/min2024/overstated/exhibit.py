r"""How far common attacks overstate robust accuracy as p grows, where the truth is known and where it is bounded.

An attack's robust accuracy is an upper bound of the truth. At p = 1 the bound of any good attack is near the
truth. At larger p it need not be: the gradient of relu(z)^p vanishes at the kink of each neuron that is off at
the point, so that a search follows the neurons that are on and does not see those that it would have to switch
on. On clusters it ends at a local minimum of the margin (docs/guide/other-tools.md); on images the same happens
by degrees.

Nets of each p are trained on clusters and on images (`grounds`) and attacked in ten ways (`attacks`). A point
that an attack leaves and another breaks is overstated. Certificates bound the truth from below.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from tacit.lab import Bench, Claim, Outcome
from tacit.papers.min2024.images.claims import other_data
from tacit.papers.min2024.images.grounds import (
    first_images,
    mnist_missing,
    of_mnist,
    prefixed,
)
from tacit.papers.min2024.images.nets import Nets, pictures_of
from tacit.papers.min2024.images.training import trained_nets
from tacit.papers.min2024.overstated.attacks import ALL, TOOLS, costs, missing
from tacit.papers.min2024.overstated.claims import (
    claims,
    clusters_of,
    image_claims,
    images_of,
    no_mnist,
)
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
    images, nets = on_pictures(config, bench, tools)
    data = xr.merge([xr.concat(clusters, along), images]).assign_attrs(images.attrs)
    # the first ball is each net's own, and has no one radius
    data = data.assign_coords(ball_radius=("ball", [np.nan, *config.radius]))
    data["cluster_cost"] = cost_of(config, 2, int(data.cluster_starts.max()))
    found: list[Claim] = []
    if config.mnist:
        found, more = beside(config, bench, tools)
        data = data if more is None else data.merge(more).assign_attrs(data.attrs | more.attrs)
    saved = {f"p{p:g}-seed{bench.seed}": nets[p, bench.seed] for p in config.p}
    return Outcome(data, (*claims(data, config, bench), *found), saved)


def beside(
    config: Overstated, bench: Bench, tools: Sequence[str]
) -> tuple[list[Claim], xr.Dataset | None]:
    """MNIST, if its images are here: the claims, and what was measured."""
    missing_line, own = mnist_missing(), config.on_mnist()
    bench.tell(missing_line)
    if missing_line is not None:
        return [no_mnist(missing_line, own, bench)], None
    data, _ = on_pictures(own, bench, tools)
    named = prefixed(data, ("p", "attack")).assign_attrs(
        mnist_test_points=data.attrs["test_points"]
    )
    return list(image_claims(data, own, bench, "mnist")), named


def on_pictures(config: Overstated, bench: Bench, tools: Sequence[str]) -> tuple[xr.Dataset, Nets]:
    """The nets of `config.dataset`, in both norms."""
    seeds = bench.seeds(config.repeats)
    along = xr.Variable("seed", seeds)
    pictures = pictures_of(config.dataset, config.classes).to(bench.device)
    if config.dataset == "mnist":
        pictures = first_images(pictures, config.mnist_train)
    nets, curves = trained_nets(config, bench, pictures, own_order=True)
    cells = [(kind, seed) for kind in ("linf", "l2") for seed in seeds]
    found = {
        cell: bench.part(
            f"{config.dataset}-{cell[0]}-{cell[1]}",
            partial(on_images, config, nets, pictures, *cell, tools),
        )
        for cell in bench.steps(cells, f"norms on {config.dataset}, all attacks each")
    }
    data: xr.Dataset = xr.concat(
        [xr.concat([found[kind, seed] for seed in seeds], along) for kind in ("linf", "l2")],
        "row",
        data_vars="minimal",
        coords="minimal",
        compat="override",
    )
    data["image_cost"] = cost_of(config, config.classes, int(data.starts.max()))
    data["clean"] = curves.test_accuracy.isel(epoch=-1, drop=True).sortby("p")
    return data.assign_attrs(test_points=len(pictures.test_x)), nets


def cost_of(config: Overstated, classes: int, starts: int) -> xr.DataArray:
    """Looks of each attack at a point."""
    cost = costs(config, classes, starts)
    return xr.DataArray([cost[name] for name in ALL], dims="attack")


def other_tools(bench: Bench) -> str | None:
    """What to tell where foolbox or ART are not there."""
    packages = sorted(set(missing().values()))
    if bench.smoke or not packages:
        return None
    return f"not installed: {', '.join(packages)}; their rows are left out (pip install them to have them)"


def draw(data: xr.Dataset, config: Overstated) -> Figure:
    """Overstatement over p on clusters and on images, robust curves at the largest p, and cost."""
    places = [clusters_of(data), images_of(data)]
    if "mnist_broken" in data:
        places.append(images_of(of_mnist(data), "mnist"))
    figure = Figure(figsize=(6.5 * len(places), 7.4))
    grid = figure.add_gridspec(2, 2 * len(places))
    letters = iter("abcde")
    for k, place in enumerate(places):
        growth_panel(figure.add_subplot(grid[0, 2 * k : 2 * k + 2]), place, next(letters))
    half = len(places)
    curve_panel(figure.add_subplot(grid[1, :half]), data, next(letters))
    cost_panel(figure.add_subplot(grid[1, half:]), places[:2], next(letters))
    where = f"clusters: D = {config.D}, K = {config.K}, alpha = {config.alpha:g}; images: {config.dataset}, "
    where += f"{config.classes} classes, {config.epochs} epochs; {config.repeats} trainings of each"
    figure.suptitle(where, fontsize="medium")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=5 if len(places) < 3 else 10,
        fontsize="small",
    )
    return figure
