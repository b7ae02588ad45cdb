r"""Figure 4: PolyReLU nets on the features of a frozen net.

    features z of images  ->  c = z - mean of the training features  ->  PolyReLU net (Section 5.2.1)

Superclasses are labels modulo their number, as in the released code: they mean nothing, and each holds several
classes, which the frozen net keeps apart. So the data have the subclasses that the theory asks for.

The attack is in feature space: APGD on the cross-entropy from one random start, as released, in units of the
features as they come. The released code scales them into [0, 1] with so much room that its box never binds: there
is none here.
`strict` is the robust accuracy at the largest radius under another attack, on the margin and from three starts
(along the gradient, by chance, towards another class): what it breaks besides, the released one had missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int64
from matplotlib.figure import Figure
from torch import Tensor

from tacit.attack import apgd, cross_entropy, margin
from tacit.attack.ball.driver import AnyLoss
from tacit.base.threads import cores, side_by_side
from tacit.data.features import prepare
from tacit.data.images import Features
from tacit.lab.bench import Bench
from tacit.lab.exhibit import Outcome
from tacit.nets import PolyReLUNet
from tacit.papers._shared.embeddings import Embeddings, embeddings_of
from tacit.papers.min2024.fig3.figure import accuracy_panel, rank_panel
from tacit.papers.min2024.fig4.claims import claims
from tacit.papers.min2024.fig4.figure import correlation_panel, robust_panel
from tacit.papers.min2024.fig4.settings import FeatureNets
from tacit.papers.min2024.images.nets import (
    Nets,
    accuracy,
    curves_at,
    moved,
    net_of,
    starts_of,
    unbroken,
)
from tacit.train import train_logits

RELEASED = ("random",)
THREE = ("gradient", "random", "towards")


def run(config: FeatureNets, bench: Bench) -> Outcome:
    """Extract, train, attack, judge."""
    bench.tell(substitute(config, bench))
    found = embeddings_of(config, bench)
    count = config.counted(found.classes)
    seeds = bench.seeds(config.repeats)
    parts = [
        bench.part(f"nets-{seed}", partial(train_seed, config, bench, found, count, seed))
        for seed in seeds
    ]
    like = starts_of(config.curves(count), bench, seeds[:1], found.train.x.mean(0))[0]
    nets: Nets = {
        (p, seed): moved(net_of(part.sel(p=p), p, like), bench.device)
        for seed, part in zip(seeds, parts, strict=True)
        for p in config.p
    }
    curves = xr.concat([part.drop_vars(["w", "v", "b"]) for part in parts], "seed")
    data = curves.assign_coords(seed=seeds).transpose("epoch", "p", "seed", ...)
    x, y = (t[: config.points].to(bench.device) for t in (found.test.x, found.test.y % count))
    attack = partial(outlived, nets, bench, x, y, steps=config.steps)
    left = attack(config.radius, loss=cross_entropy, starts=RELEASED, name="released")
    strict = attack((max(config.radius),), loss=margin, starts=THREE, name="strict")
    robust = unbroken(left, config.radius).mean("point")
    measured = {"outlived": left, "robust": robust, "strict": strict.mean("point")}
    data = data.assign(measured | correlations(found, config)).assign_attrs(
        test_points=len(found.test.y), superclasses=count, classes=found.classes
    )
    saved = {f"p{p:g}-seed{seeds[0]}": nets[p, seeds[0]] for p in config.p}
    return Outcome(data, claims(data, config, bench), saved)


def substitute(config: FeatureNets, bench: Bench) -> str | None:
    """What to tell where images and net are not the paper's."""
    if bench.smoke or (config.is_path and config.extractor == "timm:resnet152"):
        return None
    return (
        f"{config.named} in place of the paper's Caltech-256 by ResNet152: for those, --set "
        "dataset=PATH/256_ObjectCategories --set extractor=timm:resnet152"
    )


def train_seed(
    config: FeatureNets, bench: Bench, found: Embeddings, count: int, seed: int
) -> xr.Dataset:
    """The nets of one seed, all p together: their weights, and what they were on the way."""
    x, test_x = (part.x.to(bench.device) for part in (found.train, found.test))
    y, test_y = ((part.y % count).to(bench.device) for part in (found.train, found.test))
    starts = starts_of(config.curves(count), bench, [seed], found.train.x.mean(0))
    like = moved(starts[0], bench.device)
    shown, tested = like.prepared(x[: config.shown]), like.prepared(test_x)
    looks = config.looks
    seen: list[dict[str, np.ndarray]] = []
    with bench.progress.track("training", config.epochs) as advance:

        def watch(epoch: int, nets: tuple[PolyReLUNet, ...]) -> None:
            """Measure, and tell that an epoch is done."""
            if epoch in looks:
                now = curves_at(nets, shown, y[: config.shown])
                seen.append(now | {"test_accuracy": accuracy(nets, tested, test_y)})
            if epoch:
                advance()

        nets = train_logits(
            [moved(net, bench.device) for net in starts],
            x,
            y,
            epochs=config.epochs,
            batch=min(config.batch, len(x)),
            generator=bench.generator("order", seed=seed),
            step=config.step,
            watch=watch,
            workers=cores(),
        )
    curves = {
        name: (("epoch", "p"), np.stack([now[name][:, 0] for now in seen])) for name in seen[0]
    }
    dims = {"w": ("neuron", "dim"), "v": ("class", "neuron"), "b": ("class",)}
    weights = {
        name: (("p", *dim), np.stack([getattr(net, name)[0].cpu().numpy() for net in nets]))
        for name, dim in dims.items()
    }
    return xr.Dataset(curves | weights, coords={"epoch": looks, "p": list(config.p)})


def outlived(
    nets: Nets,
    bench: Bench,
    x: Float[Tensor, "n d"],
    y: Int64[Tensor, " n"],
    radii: Sequence[float],
    *,
    steps: int,
    loss: AnyLoss,
    starts: Sequence[str],
    name: str,
) -> xr.DataArray:
    """How many of the linf radii each point outlives (p, seed, point): `image_nets.outlived` without a box."""
    ps, seeds = sorted({p for p, _ in nets}), sorted({seed for _, seed in nets})
    workers = 1 if bench.device == "cuda" else cores()

    def of_seed(seed: int) -> xr.Dataset:
        """One part of the run."""

        def one(p: float) -> np.ndarray:
            count = np.zeros(len(x), np.int16)
            left = torch.arange(len(x), device=x.device)
            for radius in sorted(radii):
                if len(left):
                    found = apgd(
                        nets[p, seed], x[left], y[left], (radius,), norm="inf", loss=loss,
                        starts=starts, steps=steps, seed=seed,
                    )  # fmt: skip
                    left = left[~found.broken[0]]
                    count[left.cpu().numpy()] += 1
            return count

        values = np.stack(side_by_side(one, ps, workers))
        return xr.Dataset({"outlived": (("p", "point"), values)}, coords={"p": ps})

    parts = [
        bench.part(f"{name}-{seed}", partial(of_seed, seed))
        for seed in bench.steps(seeds, f"{name} attack")
    ]
    whole = xr.concat(parts, xr.Variable("seed", seeds)).outlived
    return whole.transpose("p", "seed", "point")


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
    b.legend(loc="center right")
    rank_panel(c, data, curves)
    robust_panel(d, data, config)
    classes, count = data.attrs["classes"], data.attrs["superclasses"]
    shown = f"{config.named}, {classes} classes in {count} superclasses, layer as {config.layer}"
    figure.suptitle(shown, fontsize="medium")
    return figure
