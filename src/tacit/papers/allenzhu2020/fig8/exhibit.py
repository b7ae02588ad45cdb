r"""Figure 8: the filters of AlexNet's first layer over the epochs of clean training.

Section 6.1: neurons whose correlation with a feature of the data is "slightly higher than usual" at random
initialization grow along it and win. A real net's features are not known. What is: which filters end large (the
winners: the larger half by norm), and how much the data excite a filter,

    response(w) = sqrt(<w, S w>),     S the covariance of the patches that the layer multiplies its filters with.

`norm`, `response` and `from_start`, theta(w0, w), are given after every epoch. `multiple` is how much of the
start there is in the last w, <w0, w>/<w0, w0>; `multiple_seen`, <w0, S w>/<w0, S w0>, how much of what the data
excite of it. Both are the same where all parts of w0 grow alike; the second is the larger one where those along
the data grow faster.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import unfold

from tacit.lab import Bench, Outcome
from tacit.measure.purification.angles import theta
from tacit.nn.alexnet import AlexNet
from tacit.papers._shared.deep import DeepImages, deep_trainings
from tacit.papers.allenzhu2020.deep.filters import filters_of
from tacit.papers.allenzhu2020.deep.nets import alex_jobs, alex_start, images_of
from tacit.papers.allenzhu2020.fig8.claims import claims, larger_half
from tacit.papers.allenzhu2020.fig8.figure import draw as draw
from tacit.papers.allenzhu2020.fig8.settings import Tickets
from tacit.train.deep.fit import Watch

Square = Float[Tensor, "D D"]


def run(config: Tickets, bench: Bench) -> Outcome:
    """Train, look on, judge."""
    data = bench.part("epochs", partial(followed, config, bench))
    return Outcome(data, tuple(claims(data, config, bench)))


def followed(config: Tickets, bench: Bench) -> xr.Dataset:
    """One clean training."""
    images = images_of(config)
    job = replace(alex_jobs(config, bench, images)["clean"], watch=Watch(filters_of))
    seen = deep_trainings(bench, {"clean": job})["clean"].watched
    assert seen is not None
    start = alex_start(config, bench, images)
    return measured(torch.from_numpy(seen), covariance(start, images, config.seen), config)


def covariance(net: AlexNet, images: DeepImages, count: int) -> Square:
    """That of the patches of the first training images as the first layer sees them, its padding included."""
    first = net.convolutions[0]
    x = net.standard(images.x[:count].permute(0, 3, 1, 2).float() / images.top)
    rows = unfold(x, first.kernel_size, 1, first.padding, first.stride)  # type: ignore[arg-type]
    return torch.cov(rows.transpose(0, 1).flatten(1).to(torch.float64))


def measured(
    filters: Float[Tensor, "epochs h C k l"], S: Float[Tensor, "D D"], config: Tickets
) -> xr.Dataset:
    """Every filter after every epoch, and the pictures of those that are drawn: winners first, largest first."""
    w = filters.flatten(2).to(torch.float64)
    start, last = w[0], w[-1]
    norm = w.norm(dim=2)
    order = norm[-1].argsort(descending=True, stable=True)
    shown = torch.cat([order[: config.shown], order[-config.shown :]])
    values = {
        "norm": (("epoch", "neuron"), norm),
        "response": (("epoch", "neuron"), (w @ S * w).sum(2).clamp_min(0).sqrt()),
        "from_start": (("epoch", "neuron"), theta(start.expand_as(w), w)),
        "multiple": ("neuron", (start * last).sum(1) / (start * start).sum(1)),
        "multiple_seen": ("neuron", (start @ S * last).sum(1) / (start @ S * start).sum(1)),
        "won": ("neuron", torch.from_numpy(larger_half(norm[-1].numpy()).astype(np.int8))),
    }
    picture = filters[list(config.frames)][:, shown].numpy().astype(np.float32)
    found = {name: (dims, t.numpy()) for name, (dims, t) in values.items()}
    return xr.Dataset(
        {**found, "picture": (("frame", "shown", "channel", "height", "width"), picture)},
        coords={
            "epoch": np.arange(len(w)),
            "frame": list(config.frames),
            "shown": shown.numpy(),
        },
    )
