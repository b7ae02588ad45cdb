r"""Figure 4: PolyReLU nets on the features of a frozen net.

    features z of images  ->  c = z - mean of the training features  ->  PolyReLU net (Section 5.2.1)

Superclasses are labels modulo their number, as in the released code: they mean nothing, and each holds several
classes, which the frozen net keeps apart. So the data have the subclasses that the theory asks for.

The attack is in feature space: APGD on the cross-entropy from one random start, as released, in units of the
features as they come. The released code scales them into [0, 1] with so much room that its box never binds: there
is none here.
`strict` are the points left at the largest radius by another attack, on the margin and from three starts (along
the gradient, by chance, towards another class): what it breaks besides, the released one had missed.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import torch
import xarray as xr
from matplotlib.figure import Figure

from tacit.attack import margin
from tacit.data.features import prepare
from tacit.data.images import Features
from tacit.lab import Bench, Outcome
from tacit.nets import PolyReLUNet
from tacit.papers._shared.embeddings import Embeddings, embeddings_of
from tacit.papers.min2024.fig3.figure import accuracy_panel, rank_panel
from tacit.papers.min2024.fig4.claims import claims
from tacit.papers.min2024.fig4.figure import correlation_panel, robust_panel
from tacit.papers.min2024.fig4.settings import FeatureNets
from tacit.papers.min2024.images.nets import Attack, Nets, Pictures, outlived, unbroken
from tacit.papers.min2024.images.training import Watched, trained_nets

RELEASED = ("random",)
THREE = ("gradient", "random", "towards")


def run(config: FeatureNets, bench: Bench) -> Outcome:
    """Extract, train, attack, judge."""
    bench.tell(substitute(config, bench))
    found = embeddings_of(config, bench)
    count = config.counted(found.classes)
    pictures = pictures_of(found, count, config.named)
    watched = Watched(config.shown, tuple(config.looks))
    nets, data = trained_nets(config.curves(count), bench, pictures, watched, own_order=True)
    attack = partial(outlived, nets, bench, pictures, steps=config.steps, box=None)
    released = Attack("inf", config.radius, config.points)
    left = attack(released, starts=RELEASED, name="released")
    largest = replace(released, radii=(max(config.radius),))
    strict = attack(largest, loss=margin, starts=THREE, name="strict")
    robust = unbroken(left, config.radius).mean("point")
    measured = {"outlived": left, "robust": robust, "strict": strict}
    measured["right"] = right_of(nets, pictures)
    data = data.assign(measured | correlations(found, config)).assign_attrs(
        test_points=len(found.test.y), superclasses=count, classes=found.classes
    )
    saved = {f"p{p:g}-seed{bench.seed}": nets[p, bench.seed] for p in config.p}
    return Outcome(data, tuple(claims(data, config, bench)), saved)


def substitute(config: FeatureNets, bench: Bench) -> str | None:
    """What to tell where images and net are not the paper's."""
    if bench.smoke or (config.is_path and config.extractor == "timm:resnet152"):
        return None
    return (
        f"{config.named} in place of the paper's Caltech-256 by ResNet152: for those, --set "
        "dataset=PATH/256_ObjectCategories --set extractor=timm:resnet152"
    )


def pictures_of(found: Embeddings, count: int, name: str) -> Pictures:
    """Features in superclasses, as nets are trained on images."""
    train, test = found.train, found.test
    shape = tuple(train.x.shape[1:])
    return Pictures(train.x, train.y % count, train.y, test.x, test.y % count, test.y, shape, name)


def right_of(nets: Nets, pictures: Pictures) -> xr.DataArray:
    """Which test points each net gets right, (p, seed, test): points of two nets are compared one by one."""
    ps, seeds = (sorted(set(values)) for values in zip(*nets, strict=True))
    x, y = pictures.test_x, pictures.test_y

    def one(net: PolyReLUNet) -> np.ndarray:
        found: np.ndarray = (margin(net(x.to(net.w.device)).cpu(), y) > 0).numpy()
        return found

    right = np.array([[one(nets[p, seed]) for seed in seeds] for p in ps])
    return xr.DataArray(right, dims=("p", "seed", "test"), coords={"p": ps, "seed": seeds})


def correlations(found: Embeddings, config: FeatureNets) -> dict[str, xr.DataArray]:
    """cos(z_i, z_j) of centred training features, `each` of every class (the first `mapped`), sorted by class."""
    train = found.train
    kinds = range(min(found.classes, config.mapped))
    rows = torch.cat([(train.y == kind).nonzero().squeeze(1)[: config.each] for kind in kinds])
    some = Features(train.x[rows], train.y[rows], train.classes)
    u = prepare(train, some).test
    assert u is not None
    u = u.double()
    return {
        "correlation": xr.DataArray((u @ u.T).numpy(), dims=("map_row", "map_column")),
        "label": xr.DataArray(train.y[rows].numpy(), dims="map_row"),
    }


def draw(data: xr.Dataset, config: FeatureNets) -> Figure:
    """(a) correlation, (b) accuracy, (c) stable rank, (d) robust accuracy."""
    figure = Figure(figsize=(13.5, 3.6))
    a, b, c, d = figure.subplots(1, 4, width_ratios=[1.15, 1, 1, 1])
    curves = config.curves(int(data.attrs["superclasses"]))
    correlation_panel(a, data)
    accuracy_panel(b, data, curves)
    b.legend(loc="lower right")
    rank_panel(c, data, curves)
    robust_panel(d, data, config)
    classes, count = data.attrs["classes"], data.attrs["superclasses"]
    shown = f"{config.named}, {classes} classes in {count} superclasses, layer as {config.layer}"
    figure.suptitle(shown, fontsize="medium")
    return figure
