"""The nets of Figures 3, 4 and 6 and of Table 1, trained or taken from the store (Section 5.2).

All nets of a seed see the points in one order, so that what differs between them is p; seeds trained together or
one by one end alike. A net does not depend on what is watched: exhibits with the same data and settings share it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from tacit.base.identity import identity_of
from tacit.lab import Bench
from tacit.lab.models.shelf import Recipe
from tacit.lab.models.store import Checkpoint, Made
from tacit.nets import PolyReLUNet, poly_relu_start
from tacit.papers.min2024.images.nets import Nets, Pictures, accuracy, curves_at, workers
from tacit.papers.min2024.images.settings import ImageNets
from tacit.train import train_logits

Key = tuple[float, int]
"""p and seed of a net."""

DIMS = {"w": ("neuron", "dim"), "v": ("class", "neuron"), "b": ("class",)}


@dataclass(frozen=True)
class Watched:
    """What is measured after these epochs: on the first `shown` training points, and on all test points."""

    shown: int
    epochs: tuple[int, ...]


def starts_of(
    config: ImageNets, bench: Bench, seeds: Sequence[int], centre: Float[Tensor, " D"]
) -> dict[float, PolyReLUNet]:
    """An ensemble over the seeds for each p; w uniform in +-sqrt(6/width), as the released code draws it."""
    return {
        p: poly_relu_start(
            len(centre),
            config.width,
            config.classes,
            p,
            [bench.generator("net", p, seed=seed) for seed in seeds],
            bound=math.sqrt(6 / config.width),
            centre=centre,
            normalize_input=config.layer == "released",
            unit=config.layer == "written",
        )
        for p in config.p
    }


def trained_nets(
    config: ImageNets,
    bench: Bench,
    pictures: Pictures,
    watched: Watched | None = None,
    *,
    own_order: bool = False,
    name: str = "nets",
) -> tuple[Nets, xr.Dataset]:
    """The trained nets, and what they were on the way (if nothing is watched, at the end alone).

    The data set has test_accuracy and, where points are watched, train_accuracy and stable_rank (epoch, p, seed).
    All seeds see the points in the order of the run's first seed, or (`own_order`) each in its own. Each seed is
    a part called `name`-seed; a GPU trains all of one order at once.
    """
    seeds = bench.seeds(config.repeats)
    here = pictures.to(bench.device)
    apart = own_order or bench.device != "cuda"
    chunks = [
        Chunk(config, bench, here, tuple(some), own_order, watched)
        for some in ([[seed] for seed in seeds] if apart else [seeds])
    ]
    found = [
        bench.part(f"{name}-{seed}", partial(of_seed, chunk, seed))
        for chunk in chunks
        for seed in chunk.seeds
    ]
    whole = xr.concat(found, "seed") if len(found) > 1 else found[0]
    like = next(iter(starts_of(config, bench, seeds[:1], here.centre).values()))
    nets = {
        (p, seed): net_of(whole.sel(p=p, seed=seed), p, like).to(bench.device)
        for p in config.p
        for seed in seeds
    }
    return nets, whole.drop_vars(list(DIMS))


@dataclass(frozen=True)
class Chunk:
    """Seeds that are trained at once; `done` is what came of it, and decides nothing."""

    config: ImageNets
    bench: Bench
    pictures: Pictures
    seeds: tuple[int, ...]
    own_order: bool
    watched: Watched | None
    done: list[xr.Dataset] = field(default_factory=list)

    def identity(self) -> tuple[object, ...]:
        """What its parts depend on."""
        return (*(getattr(self, each.name) for each in fields(self) if each.name != "done"),)


def of_seed(chunk: Chunk, seed: int) -> xr.Dataset:
    """One part of the run; the first that is asked for makes all of its chunk."""
    if not chunk.done:
        chunk.done.append(train_chunk(chunk))
    return chunk.done[0].sel(seed=[seed])


def train_chunk(chunk: Chunk) -> xr.Dataset:
    """p = 1, 2, ... and these seeds, an ensemble for each p."""
    config, bench, pictures, seeds = chunk.config, chunk.bench, chunk.pictures, chunk.seeds
    watched, order = (
        chunk.watched,
        bench.generator("order", seed=seeds[0] if chunk.own_order else None),
    )
    starts = starts_of(config, bench, seeds, pictures.centre)
    recipes = recipes_of(config, bench.device, pictures, starts, seeds, order)
    like = starts[config.p[0]].to(bench.device)
    tested = like.prepared(pictures.test_x)

    def train(todo: list[Key], checkpoint: Checkpoint) -> Mapping[Key, Made]:
        """Those of p that lack a net, all their seeds at once."""
        missing = [p for p in config.p if any(p == other for other, _ in todo)]
        shown = watched.shown if watched else 0
        seen = like.prepared(pictures.x[:shown])
        with bench.progress.track("training", config.epochs) as advance:
            done = 0

            def watch(epoch: int, nets: tuple[PolyReLUNet, ...]) -> None:
                """Measure, and tell how far the training is."""
                nonlocal done
                if watched and epoch in watched.epochs:
                    values = {"test_accuracy": accuracy(nets, tested, pictures.test_y)}
                    values |= curves_at(nets, seen, pictures.y[:shown])
                    for name, value in values.items():
                        checkpoint.curves.setdefault(name, []).append(value)
                for _ in range(epoch - done):
                    advance()
                done = epoch

            nets = train_logits(
                [starts[p].to(bench.device) for p in missing],
                pictures.x,
                pictures.y,
                epochs=config.epochs,
                batch=min(config.batch, len(pictures.x)),
                generator=order,
                step=config.step,
                watch=watch,
                workers=workers(bench.device),
                checkpoints=checkpoint,
            )
        curves = {name: np.stack(values) for name, values in checkpoint.curves.items()}
        return {
            (p, seed): Made(
                net.members()[e].to("cpu"), {name: v[:, i, e] for name, v in curves.items()}
            )
            for i, (p, net) in enumerate(zip(missing, nets, strict=True))
            for e, seed in enumerate(seeds)
        }

    made = bench.models.made(recipes, train, watched_recipe(watched, pictures) if watched else None)
    if not watched:
        ends = [alone(one.net).to(bench.device) for one in made.values()]
        right = accuracy(ends, tested, pictures.test_y)
        made = {
            key: Made(one.net, {"test_accuracy": share})
            for (key, one), share in zip(made.items(), right, strict=True)
        }
    epochs = watched.epochs if watched else (config.epochs,)
    rows = [
        xr.concat(
            [dataset_of(made[p, seed], epochs) for seed in seeds], xr.Variable("seed", list(seeds))
        )
        for p in config.p
    ]
    whole = xr.concat(rows, xr.Variable("p", list(config.p)))
    return whole.transpose("epoch", "p", "seed", ...)


def dataset_of(made: Made, epochs: Sequence[int]) -> xr.Dataset:
    """A net and its curves."""
    weights = {name: (dims, getattr(made.net, name).numpy()) for name, dims in DIMS.items()}
    curves = {name: ("epoch", values) for name, values in made.curves.items()}
    return xr.Dataset({**weights, **curves}, coords={"epoch": list(epochs)})


def recipes_of(
    config: ImageNets,
    device: str,
    pictures: Pictures,
    starts: Mapping[float, PolyReLUNet],
    seeds: Sequence[int],
    order: torch.Generator,
) -> dict[Key, Recipe]:
    """What makes each net; on a GPU also the seeds beside it: one product for all rounds in its own way."""
    settings = ("classes", "width", "epochs", "batch", "step", "layer")
    common = {
        "training": "logits",
        "data": pictures.name,
        **{name: getattr(config, name) for name in settings},
        "beside": list(seeds) if device == "cuda" else [],
        "points": [pictures.digests[name] for name in ("x", "y")],
        "order": identity_of(order),
        "code": identity_of(train_logits, PolyReLUNet),
    }
    return {
        (p, seed): {
            "p": p,
            "seed": seed,
            **common,
            "start": identity_of(start.members()[e].state()),
        }
        for p, start in starts.items()
        for e, seed in enumerate(seeds)
    }


def watched_recipe(watched: Watched, pictures: Pictures) -> Recipe:
    """What the curves are: the training points are the net's own."""
    return {
        "shown": watched.shown,
        "epochs": list(watched.epochs),
        "test": [pictures.digests[name] for name in ("test_x", "test_y")],
        "code": identity_of(accuracy, curves_at),
    }


def alone(net: PolyReLUNet) -> PolyReLUNet:
    """An ensemble of one."""
    assert net.b is not None
    return replace(net, w=net.w[None], v=net.v[None], b=net.b[None])


def net_of(data: xr.Dataset, p: float, like: PolyReLUNet) -> PolyReLUNet:
    """One trained net, reading its points as its start did."""
    w, v, b = (torch.from_numpy(np.array(data[name].values)) for name in DIMS)
    return replace(like, w=w, v=v, b=b, p=p)
