"""The filters of a net's first layer, looked at as pictures, beside patches of natural images.

Section 8.1: AlexNet's first layer has 3 x 11 x 11 weights a filter, "which gives the RGB color of 11 x 11
patches"; for a ResNet "such visualization can be less meaningful", its tensors are 3 x 3 x 3.
"""

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor, nn

from tacit.errors import CallError
from tacit.lab import Bench
from tacit.measure.attacked import kept_right
from tacit.measure.features import spectrum, total_variation
from tacit.nn.layered import LayeredNet
from tacit.papers._shared.deep import deep_nets
from tacit.papers.allenzhu2020.deep.features import DIMS
from tacit.papers.allenzhu2020.deep.nets import (
    alex_jobs,
    alex_start,
    ball_of,
    clean_from,
    images_of,
)
from tacit.papers.allenzhu2020.deep.settings import Alex

LEAST = 5  # pixels a side: AlexNet's later filters; less shows no shapes
AMONG = 2000  # training images that patches are from

Filters = Float[Tensor, "h C k l"]


def filters_of(net: nn.Module) -> Filters:
    """The weights of the first convolution; a call error where they are too small to look at."""
    assert isinstance(net, LayeredNet)
    weight = net.convolutions[0].weight.detach()
    height, width = weight.shape[2:]
    if min(height, width) < LEAST:
        raise CallError(
            f"the first layer's filters are {height} x {width} pixels: nothing can be seen in them; take a net "
            f"whose filters have {LEAST} x {LEAST} pixels or more, such as AlexNet's 11 x 11"
        )
    return weight


def net_of(config: Alex, bench: Bench, name: str, again: int = 0) -> LayeredNet:
    """One of these, trained with those on the way to it.

    `random`, `clean` and `robust`; `longer`, after as many more clean epochs as `robust` has adversarial ones;
    `again`, after `again` clean epochs from `robust` (Section 6.2).
    """
    images = images_of(config)
    if name == "random":
        return alex_start(config, bench, images).to(bench.device)
    jobs = alex_jobs(config, bench, images)
    more = {"longer": ("clean", config.epochs), "again": ("robust", again)}
    if name in more:
        start, epochs = more[name]
        jobs[name] = clean_from(start, config, bench, images, epochs)
    way: list[str] = [name]
    while isinstance(before := jobs[way[0]].start, str):
        way.insert(0, before)
    return deep_nets(bench, {each: jobs[each] for each in way})[name]


def all_looked_at(
    config: Alex, bench: Bench, names: Sequence[str], *, points: int, again: int = 0
) -> xr.Dataset:
    """Several nets along `net`, as one part of a run.

    A GPU does not train the same net twice: looks at w from one run and at w', from another w, would not belong
    together. What an interrupted run had trained is in the store.
    """
    looks = [
        looked_at(config, bench, name, points=points, again=again)
        for name in bench.steps(names, "nets")
    ]
    return xr.concat(looks, xr.Variable("net", list(names)))


def looked_at(
    config: Alex, bench: Bench, name: str, *, points: int, again: int = 0
) -> xr.Dataset:  # fmt: skip
    """One net: `filter`, as it is, with the numbers of `seen`, and the accuracies on the first test images.

    `plain` has whether an image is right, `own` the share of its noisy copies that are right after the attack of
    the training (Table 1's protocol).
    """
    net = net_of(config, bench, name, again)
    filters = filters_of(net).cpu()
    x, y = images_of(config).tested(points, bench.device)
    accuracies = {
        "plain": kept_right(net, x, y),
        "own": kept_right(net, x, y, ball_of(config.attacker), seed=bench.seed),
    }
    kept = {key: ("point", t.cpu().numpy().astype(np.float32)) for key, t in accuracies.items()}
    return seen(filters).assign({"filter": (DIMS, filters.numpy())} | kept)


def seen(pictures: Filters) -> xr.Dataset:
    """`variation`, the total variation; `spectrum`, the shares of energy by frequency; `coarse`, its first."""
    shares = spectrum(pictures)
    values = {
        "variation": ("neuron", total_variation(pictures)),
        "coarse": ("neuron", shares[:, 0]),
        "spectrum": (("neuron", "band"), shares),
    }
    return xr.Dataset({name: (dims, t.cpu().numpy()) for name, (dims, t) in values.items()})


def patches(config: Alex, bench: Bench, count: int, side: int) -> Float[Tensor, "count C k l"]:
    """Patches of side x side (or of all an image) of training images, standardised, at random places."""
    images = images_of(config)
    x = images.x[:AMONG].permute(0, 3, 1, 2).float() / images.top
    x = alex_start(config, bench, images).standard(x)
    side = min(side, *x.shape[2:])
    cut = x.unfold(2, side, 1).unfold(3, side, 1)  # (n, C, rows, columns, side, side)
    generator = bench.generator("patches")
    at = [torch.randint(cut.shape[k], (count,), generator=generator) for k in (0, 2, 3)]
    return cut[at[0], :, at[1], at[2]]
