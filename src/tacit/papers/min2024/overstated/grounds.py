r"""Nets of each p on clusters and on images, attacked and certified: one seed at a time.

**Clusters.** min2024's mixture, unit centres, noise of length about alpha. Gradient flow of the mean
exponential loss from weights N(0, 1e-14) to the loss exp(-11), as in `min2024.fig2`; what is measured is the
merged net. The first radius of each net is `BEYOND` times its own median radius, where next to nothing is left;
the others are the config's. Every point is certified (`tacit.certify.radius`), exactly but for rounding at p =
1 and to about 1e-3 where a net has a neuron for each centre. Nets of more neurons than `SEARCHED`, as p = 2
leaves them, have the closed form alone.

**Images.** The nets of `papers/min2024/images`, in the box [0, 1]. The first points are certified
(`logits_certified`), without the box, which only helps.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import xarray as xr

from tacit.attack import minimal
from tacit.base.shapes import Numbers, Rows
from tacit.base.threads import side_by_side
from tacit.certify import radius
from tacit.certify.logits.radius import logits_certified
from tacit.certify.radius import Question, answered
from tacit.data import min2024_mixture
from tacit.lab import Bench
from tacit.nets import TwoLayerNet
from tacit.papers.min2024.images.nets import BOX, Nets, Pictures
from tacit.papers.min2024.overstated.attacks import ALL, TOOLS, Ground, broken_by, by_tools
from tacit.papers.min2024.overstated.settings import Overstated
from tacit.papers.min2024.table1_strict.attacks import rival_means
from tacit.train import FlowWarning, Until, gradient_flow

BEYOND = 1.06  # 0.75 is so much more than sqrt(2)/2
INIT, LOG_LOSS, SCOUTS = 1e-7, -11.0, 4
WORKERS = 1  # operations on so few points are short: two threads took 145 s where one takes 103
SEARCHED = 20  # neurons up to which branch and bound takes milliseconds a point


def on_clusters(config: Overstated, bench: Bench, seed: int, tools: Sequence[str]) -> xr.Dataset:
    """One data set, a net for each p, all attacks; `own` (p,) is the net's median radius."""
    stream = bench.generator("overstated", seed=seed)
    mixture = min2024_mixture(config.D, config.K, config.K1, config.alpha, stream)
    test = mixture.sample(config.cluster_points, stream)
    w = INIT * torch.randn(config.h, config.D, generator=stream, dtype=torch.float64)
    v = INIT * torch.randn(config.h, generator=stream, dtype=torch.float64)
    train = mixture.sample(config.n, stream, dtype=torch.float32)
    side = math.isqrt(config.D)
    few = min(config.few, config.cluster_points)

    def one(p: float) -> tuple[TwoLayerNet, Ground, dict[str, Any]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FlowWarning)  # a run that stops early is counted
            flowed = gradient_flow(
                TwoLayerNet(w, v, p=p), train.x, train.y, until=Until(log_loss=LOG_LOSS),
                scout=SCOUTS * config.K, seed=seed,
            )  # fmt: skip
        net = replace(flowed.net, w=flowed.net.w.double(), v=flowed.net.v.double())
        shortest = minimal(net, test.x, test.y, seed=seed).radius
        own = float(shortest.median())
        radii = (BEYOND * own, *config.radius)
        ground = Ground(test.x, test.y, "2", radii, None, None, (side, side, 1), few)
        broken, every, starts = broken_by(net, ground, config, seed)
        at = torch.tensor(radii, dtype=torch.float64).unsqueeze(1)
        lower = proved_radius(net, test.x, test.y, shortest)
        return (
            net,
            ground,
            {
                "broken": broken,
                "strict": np.maximum(every, (shortest <= at).numpy()).astype(np.int8),
                "proved": (lower > at).numpy().astype(np.int8),
                "own": own,
                "starts": starts,
                "reached": int(flowed.ended[0].stopped == "loss"),
            },
        )

    ps = sorted(config.p)
    nets, grounds, found = zip(*side_by_side(one, ps, WORKERS), strict=True)
    for net, ground, each in zip(nets, grounds, found, strict=True):
        each["broken"][-len(TOOLS) :] = by_tools(net, ground, slice(0, 1), seed, tools)
    dims = {
        "broken": ("attack", "ball", "sample"),
        "strict": ("ball", "sample"),
        "proved": ("ball", "sample"),
    }
    return xr.Dataset(
        {
            f"cluster_{name}": (
                ("p", *dims.get(name, ())),
                np.array([each[name] for each in found]),
            )
            for name in found[0]
        },
        coords={"p": ps, "attack": list(ALL)},
    )


def proved_radius(net: TwoLayerNet, x: Rows, y: Numbers, upper: Numbers) -> Numbers:
    """A radius below which nothing breaks each point; what is known from above helps the closed form."""
    if net.p == 1 or len(net.v) <= SEARCHED:
        return radius(net, x, y).lower
    return answered(net, x, y, Question(searched=False, upper=upper)).lower


def on_images(
    config: Overstated, nets: Nets, pictures: Pictures, kind: str, seed: int, tools: Sequence[str]
) -> xr.Dataset:
    """The nets of one seed in one norm, `linf` or `l2`, at its radii."""
    x, y = pictures.test_x[: config.points], pictures.test_y[: config.points]
    means = rival_means(pictures.x, pictures.y)
    height, width, channels = pictures.shape
    norm, radii = {"linf": "inf", "l2": "2"}[kind], tuple(sorted(getattr(config, kind)))
    ground = Ground(x, y, norm, radii, BOX, means, (height, width, channels), config.few)
    sure = slice(0, config.certified)

    def one(p: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        net = nets[p, seed]
        at = torch.tensor(radii, dtype=torch.float64, device=x.device)
        proved = logits_certified(net, x[sure], y[sure], at, norm=norm)
        broken, every, starts = broken_by(net, ground, config, seed)
        return broken, every, proved.cpu().numpy().astype(np.int8), starts

    ps = sorted(config.p)
    broken, every, proved, starts = zip(*side_by_side(one, ps, WORKERS), strict=True)
    for p, each in zip(ps, broken, strict=True):
        each[-len(TOOLS) :] = by_tools(nets[p, seed], ground, slice(None), seed, tools)
    return xr.Dataset(
        {
            "broken": (("p", "attack", "row", "point"), np.stack(broken)),
            "strict": (("p", "row", "point"), np.stack(every)),
            "proved": (("p", "row", "sure"), np.stack(proved)),
            "starts": ("p", np.array(starts)),
        },
        coords={
            "p": ps,
            "attack": list(ALL),
            "radius": ("row", list(radii)),
            "norm": ("row", [kind] * len(radii)),
        },
    )
