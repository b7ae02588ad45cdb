r"""From which p on centres are learned, over the init, noise, counts, K and n: measured and predicted.

A training has learned the centres where 95% of the mass of each sign lies within cosine .95 of them, as in
`min2025.transition`. The critical p of a data set and a start is found by bisection between 2 and `top`, and
between `top` and 8 where `top` has not learned them; where 8 has not either it counts as 8, as a prediction above
8 does. So every cell has a number, min(p, 8). All trainings of one n are one tensor program. It is predicted
without training, as the larger of two:

- the p from which on neurons reach centres before the first cluster is fitted (`transition.theory`: the alignment
  phase without noise, on the same starts); it falls as the init shrinks;
- the p from which on no neuron turns before the lag is over (`law`, on the means of the same points); it rises.

`law_p` is the second for data that are not known yet, from alpha, the counts, K, n, D and h alone.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from torch import Tensor

from tacit.data import ClusterMixture, Samples, cluster_mixture, orthogonal_centres
from tacit.data.clusters import apportion
from tacit.lab import Bench, Outcome
from tacit.nets import TwoLayerNet
from tacit.papers.min2025.limits import figure as panels
from tacit.papers.min2025.limits.claims import claims
from tacit.papers.min2025.limits.law import Numbers, Pair, critical_p, pairs_of, typical_pair
from tacit.papers.min2025.limits.settings import LARGEST, Limits, Setting
from tacit.papers.min2025.transition import theory
from tacit.papers.min2025.transition.claims import SHARE
from tacit.papers.min2025.transition.exhibit import LEVEL, SIDES, bisected, shares
from tacit.train import FlowWarning, Until, gradient_flow

ALIGNED_TOP, ALIGNED = 3.0, 0.04  # where p is sought, and how closely, without noise
BUDGET = 3000  # looks at the data
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class World:
    """A setting's mixture, one data set of it, and the neurons before they are scaled: w (h, D), signs (h,)."""

    mixture: ClusterMixture
    points: Samples
    w: Float[Tensor, "h D"]
    sign: Float[Tensor, " h"]


def run(config: Limits, bench: Bench) -> Outcome:
    """All settings: those of one n in one program."""
    sizes = sorted({each.n for each in config.settings})
    parts = [
        bench.part(f"n{n}", partial(of_size, config, bench, n))
        for n in bench.steps(sizes, "numbers of points")
    ]
    data = xr.concat(parts, "setting", data_vars="minimal").sel(
        setting=[each.name for each in config.settings]
    )
    return Outcome(data, tuple(claims(data, config, bench)))


def draw(data: xr.Dataset, config: Limits) -> Figure:
    """The critical p over the init, and predicted against measured."""
    return panels.figure(data, config)


def of_size(config: Limits, bench: Bench, n: int) -> xr.Dataset:
    """The settings with n points: critical p measured, and what predicts it."""
    here = [each for each in config.settings if each.n == n]
    seeds = bench.seeds(config.repeats)
    worlds = [world(config, bench, each, seed) for each in here for seed in seeds]
    shape = (len(here), len(seeds), len(config.init))
    dims = ("setting", "seed", "init")
    log_init = np.log(config.init)
    law = [critical_p(log_init, [typical(config, each)], config.D, config.h) for each in here]
    turning = [
        critical_p(log_init, pairs_of(
            one.points.x.numpy(), one.points.z.numpy(), one.mixture.labels.numpy(), one.mixture.sd
        ), config.D, config.h)
        for one in worlds
    ]  # fmt: skip
    aligned = [aligned_p(one, config.init) for one in worlds]
    found, tried, fitted = measured(config, worlds)
    return xr.Dataset(
        {
            "p": (dims, found.reshape(shape)),
            "turning_p": (dims, np.reshape(turning, shape)),
            "aligned_p": (dims, np.reshape(aligned, shape)),
            "law_p": (("setting", "init"), np.array(law)),
            "tried": (dims, tried.reshape(shape)),
            "fitted": (dims, fitted.reshape(shape)),
            "resolution": ((), max(half_bracket(config, *ends) for ends in stretches(config))),
        },
        coords={
            "setting": [each.name for each in here],
            "role": ("setting", [each.role for each in here]),
            "seed": seeds,
            "init": list(config.init),
        },
    )


def mixture_of(config: Limits, setting: Setting) -> ClusterMixture:
    """The last cluster of each class has `ratio` times the weight of the others."""
    half = setting.K // 2
    weights = torch.ones(setting.K, dtype=torch.float64)
    weights[[half - 1, setting.K - 1]] = setting.ratio
    centres = orthogonal_centres(setting.K, config.D)
    return cluster_mixture(centres, half, setting.alpha / math.sqrt(config.D), weights)


def world(config: Limits, bench: Bench, setting: Setting, seed: int) -> World:
    """One data set and one start of a setting."""
    mixture = mixture_of(config, setting)
    # a start of its own for each kind of data, so that no luck is shared
    stream = bench.generator("start", setting.name, seed=seed)
    w = torch.randn(config.h, config.D, generator=stream, dtype=torch.float64)
    sign = torch.where(torch.arange(config.h) % 2 == 0, 1.0, -1.0).double()
    drawn = bench.generator("points", setting.name, seed=seed)
    return World(mixture, mixture.sample(setting.n, drawn, equal_counts=True), w, sign)


def typical(config: Limits, setting: Setting) -> Pair:
    """The setting's typical pair."""
    mixture = mixture_of(config, setting)
    counts = torch.bincount(apportion(setting.n, mixture.weights), minlength=setting.K).double()
    half = setting.K // 2
    poor = float(counts[[half - 1, setting.K - 1]].mean())
    rich = (setting.n - 2 * poor) / (setting.K - 2)
    return typical_pair(mixture.sd, rich, poor, setting.K - 2)


def measured(config: Limits, worlds: Sequence[World]) -> tuple[Numbers, Counts, Counts]:
    """The critical p of each world (row) and init (column), cut at LARGEST; how often trained, and fitted."""
    cells = [(one, init) for one in worlds for init in config.init]
    size = torch.tensor([init for _, init in cells], dtype=torch.float64)
    found = torch.full_like(size, LARGEST)
    count = torch.zeros(2, len(cells), dtype=torch.long)  # trained, fitted
    left = torch.arange(len(cells))  # the cells that no p so far has taught centres

    def learned(rows: Tensor, p: Float[Tensor, " E"]) -> Float[Tensor, "E 2"]:
        at, arrived = trained_shares([cells[i][0] for i in rows.tolist()], size[rows], p)
        count[0, rows] += 1
        count[1, rows] += arrived.long()
        return at

    for low, high in stretches(config):
        if not len(left):
            break
        side = torch.full((len(left),), SIDES.index("centres"))
        ends = torch.tensor([high, low], dtype=torch.float64).expand(len(left), 2)
        where = bisected(partial(learned, left), side, ends, config.rounds)
        # next to the high end all rounds have agreed that it is above, and the end itself has not been seen
        last = where > high - 1.5 * half_bracket(config, low, high)
        above = torch.zeros_like(last)
        if bool(last.any()):
            at = learned(left[last], torch.full_like(where[last], high))
            above[last] = at[:, SIDES.index("centres")] < SHARE
        found[left[~above]] = where[~above]
        left = left[above]
    shape = (len(worlds), len(config.init))
    return found.numpy().reshape(shape), *(each.numpy().reshape(shape) for each in count)


def stretches(config: Limits) -> list[tuple[float, float]]:
    """Where p is sought: up to `top`, and from there to LARGEST where that has not learned the centres."""
    ends = [(2.0, config.top), (config.top, LARGEST)]
    return [(low, high) for low, high in ends if low < high]


def half_bracket(config: Limits, low: float, high: float) -> float:
    """What the bisection leaves open on either side."""
    return (high - low) / 2 ** (config.rounds + 1)


def trained_shares(
    worlds: Sequence[World], init: Float[Tensor, " E"], p: Float[Tensor, " E"]
) -> tuple[Float[Tensor, "E 2"], Bool[Tensor, " E"]]:
    """The shares (average, centres) of one balanced net for each world, and whether it fitted: one program.

    The norm of the second layer is taken before the scaling: squares of weights below 1e-154 are no floats. The
    flow itself has logarithms of masses, for which single precision is enough.
    """
    w = torch.stack([one.w for one in worlds])
    v = torch.stack([one.sign for one in worlds]) * w.norm(dim=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlowWarning)  # what did not arrive is counted
        flowed = gradient_flow(
            TwoLayerNet(w * init.reshape(-1, 1, 1), v * init.unsqueeze(1)),
            torch.stack([one.points.x for one in worlds]).float(),
            torch.stack([one.points.y for one in worlds]),
            powers=p,
            until=Until(log_loss=-LEVEL, evaluations=BUDGET),
        )
    found = [
        shares(flowed.member(i), one.mixture.centres, one.mixture.labels)
        for i, one in enumerate(worlds)
    ]
    arrived = torch.tensor([why == "loss" for why in flowed.stopped])
    return torch.tensor(found, dtype=torch.float64), arrived


def aligned_p(one: World, inits: Sequence[float]) -> list[float]:
    """For each init the p from which on neurons are at centres when the first cluster is fitted, without noise.

    By bisection, down to ALIGNED: it falls as the init shrinks, so that a larger init's p is a smaller one's top.
    It is sought up to ALIGNED_TOP alone: from a large init centres are lost again at a larger p, where a neuron
    far from its centre takes the time b^-(p-2).
    """
    K = one.mixture.K
    length = one.w.norm(dim=1)
    clusters = theory.Clusters(one.mixture.labels, one.mixture.weights)
    found, top = {}, ALIGNED_TOP
    for init in sorted(inits, reverse=True):
        log_mass = 2 * math.log(init) + 2 * length.log()
        low, high = 2.0, top
        while high - low > ALIGNED:
            middle = (low + high) / 2
            curves = theory.alignment(
                one.w[:, :K] / length.unsqueeze(1), one.sign, log_mass, clusters, middle, LEVEL
            )
            there = theory.predicted_shares(curves, LEVEL)[1] >= SHARE
            low, high = (low, middle) if there else (middle, high)
        found[init], top = (low + high) / 2, high
    return [found[init] for init in inits]
