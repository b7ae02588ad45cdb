r"""Theorem 4.7 in sweeps of d, k, n and time: with subclass labels each neuron finds its own feature.

Every setting is looked at where the theorem's window begins, at eta T = k^8 (`sweep` says how it is reached),
and the sweep of k at eta T = 1 too. None is inside Assumption 4.3.

**What to expect at finite n.** A neuron is lambda (mu_j/d + nu), nu the noise of its n/k points, remembered
with weight k/n each: sqrt(d) ||nu|| = sqrt(k/n). Two neurons of opposite classes are sqrt(2 (1 + k/n)/d) lambda
apart, a fresh point has margin lambda, and so its distance to the plane between them is sqrt(d/2) / sqrt(1 +
k/n), less the noise of the nearest of k/2 planes, which does not grow with d. lambda follows (2)'s analogue,
Corollary C.8: with q = kappa lambda, kappa = 1 + k/n, the points' 1 - p is (k-1)/(k-1+e^q), so that q + (e^q -
1)/(k-1) = kappa (d/(hk)) eta t.

**Neurons that learn nothing, and labels that die.** At the start |T_jrj|, the number of own points that activate
a neuron, is uniform on {0, ..., |I_j|} (`lemma5`). Where it is 0, with probability 1/(|I_j| + 1), nothing pulls
the neuron to its feature, unless the noise of other clusters' points happens to turn it. Those that it does not
turn are soon off at every training point, and their gradient is 0 from then on. A label whose h neurons all start
so, of probability E (|I_j| + 1)^-h, may be lost for good; k such chances a training are 0.014 at h = 3, k = 10,
n = 100, and about 0.05 in a sweep of three seeds. `starts` counts them in many short trainings.

The loss of a training with a lost label does not fall, so that the growing steps of `sweep.course`, which take it
to fall as one over time, explode: lambda is then hundreds of times its law. Such a training ends where the label
is seen to be lost, and has no other measurement.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.attack import first_crossing
from tacit.base.linalg import span_axes
from tacit.certify import radius
from tacit.data import ClusterMixture, Samples
from tacit.lab import Bench, Outcome
from tacit.nets import MultiClassNet
from tacit.papers._shared.assumptions import missing_line
from tacit.papers.li2025._shared.compact import Problem, classes_net, compact_problem
from tacit.papers.li2025._shared.synthetic import train_classes
from tacit.papers.li2025.sweeps.settings import Sweep
from tacit.papers.li2025.sweeps.sweep import Cell, course, swept
from tacit.papers.li2025.thm4_7.claims import claims
from tacit.papers.li2025.thm4_7.figure import draw as draw

MOST = 6  # trainings: all of fewer do not show that most are so
DECIDED = 0.03  # eta t after which a neuron that learns nothing is off at every point


def run(config: Sweep, bench: Bench) -> Outcome:
    """Train every setting with every seed and measure what the theorem speaks of."""
    axes: dict[str, Sequence[float]] = {name: getattr(config, name) for name in ("d", "k", "n")}
    base = Cell(config.d0, config.k0, config.n0)

    data = swept(
        axes,
        base,
        lambda cell: tuple(sorted({1.0, window(cell), *(config.time if cell == base else ())})),
        window,
        partial(measure, config, bench),
        bench,
        bench.seeds(config.repeats),
    )
    seeds = bench.seeds(max(config.repeats, MOST))
    shares = [
        bench.part(f"certified.{s}", partial(certified, config, bench, base, s)) for s in seeds
    ]
    data = data.merge(xr.concat(shares, "training"))
    data = data.merge(bench.part("starts", partial(starts, config, bench)))
    return Outcome(data, claims(data, config, bench))


def window(cell: Cell) -> float:
    """eta T from which on the theorem speaks."""
    return float(cell.k) ** 8


def classes_problem(
    config: Sweep, bench: Bench, cell: Cell, seed: int, purpose: str = "classes"
) -> tuple[Problem, MultiClassNet]:
    """The data of one setting and the net it starts from; float64, for 1 - p falls to 1e-12."""
    stream = bench.generator(purpose, cell.name, seed=seed)
    problem = compact_problem(cell.d, cell.k, cell.k // 2, cell.n, cell.k * config.h, stream)
    if purpose == "classes":  # a start may lack a cluster: its law has 1/(0 + 1)
        bench.tell(missing_line(problem.train, problem.mixture))
    return problem, classes_net(problem.rows, problem.mixture, config.sigma_w, torch.float64)


def measure(
    config: Sweep, bench: Bench, cell: Cell, times: Sequence[float], seed: int
) -> xr.Dataset:
    """One setting at each of the times; how many neurons are off, and how many labels have no other.

    Where a label is lost all else is NaN.
    """
    problem, net = classes_problem(config, bench, cell, seed)
    test = problem.mixture.sample(config.test, bench.generator("test", cell.name, seed=seed))
    few = Samples(test.x[: config.points], test.y[: config.points], test.z[: config.points])
    names = ("lam", "close", "close_most", "clean", "radius")
    table, silent = np.full((len(times), len(names)), np.nan), torch.zeros(cell.k, config.h)
    for i, trained in enumerate(
        course(net, train_classes, problem.train, config.eta, config.steps, times)
    ):
        silent = off(trained, problem.train)
        if silent.all(1).any():
            table[:] = np.nan
            break
        lam, away = decoupled(trained, problem.mixture)
        clean = float((trained(test.x) * test.y > 0).double().mean())
        reach = float(towards_others(trained, few).median())
        table[i] = lam, float(away.median()) / lam, float(away.max()) / lam, clean, reach
    data = xr.Dataset({name: ("time", table[:, i]) for i, name in enumerate(names)})
    return data.assign(off=float(silent.sum()), lost=float(silent.all(1).sum()))


def off(net: MultiClassNet, samples: Samples) -> Bool[Tensor, "k h"]:
    """Whether no training point activates the neuron: its gradient is 0 then, and stays so."""
    return (net.w @ samples.x.T < 0).all(2)


def starts(config: Sweep, bench: Bench) -> xr.Dataset:
    """The setting with the fewest points, `starts` times, until what dies is dead.

    `own` counts the points of a cluster, `first_off` tells which neurons (of a label) no point of a cluster
    activates at the start, `last_off` which are off in the end.
    """
    cell, found = Cell(config.d0, config.k0, config.n[0]), []
    for start in bench.steps(range(config.starts), "starts"):
        problem, net = classes_problem(config, bench, cell, bench.seed, f"starts/{start}")
        z = torch.nn.functional.one_hot(problem.train.z, cell.k).to(net.w)
        seen = (net.w @ problem.train.x.T >= 0).to(net.w) @ z  # (label, neuron, cluster)
        steps = max(round(DECIDED / config.eta), 1)
        trained = train_classes(net, problem.train, config.eta, steps).net
        found.append((z.sum(0), (seen == 0).mT, off(trained, problem.train)))
    own, first, last = (
        torch.stack(rows).to(torch.int16).numpy() for rows in zip(*found, strict=True)
    )
    return xr.Dataset(
        {
            "own": (("start", "cluster"), own),
            "first_off": (("start", "label", "cluster", "neuron"), first),
            "last_off": (("start", "label", "neuron"), last),
        }
    )


def decoupled(net: MultiClassNet, mixture: ClusterMixture) -> tuple[float, Float[Tensor, " kh"]]:
    """lambda, the median over neurons of <w_jr, mu_j>; and sqrt(d) ||w_jr - lambda mu_j/d||."""
    w = net.w.flatten(0, 1)
    own = mixture.centres.repeat_interleave(net.w.shape[1], 0)
    d = float(own[0].square().sum())
    lam = float((w * own).sum(1).median())
    return lam, math.sqrt(d) * (w - lam / d * own).norm(dim=1)


def towards_others(net: MultiClassNet, points: Samples) -> Float[Tensor, " n"]:
    """The shortest crossing from the own subclass's mean neuron to one of the other label: an upper radius.

    In coordinates of the neurons' span, which is exact in l2.
    """
    axes = span_axes(net.w.flatten(0, 1))
    small = MultiClassNet(net.w @ axes, net.labels)
    x, mean = points.x @ axes, small.w.mean(1)
    towards = mean - mean[points.z].unsqueeze(1)
    n, k = towards.shape[:2]
    # long enough to pass the midplane twice over
    reach = 2 * x.norm(dim=1).max()
    towards = reach * towards / towards.norm(dim=2, keepdim=True).clamp_min(1e-30)
    every = first_crossing(
        small,
        x.repeat_interleave(k, 0),
        points.y.repeat_interleave(k),
        towards.flatten(0, 1),
    ).unflatten(0, (n, k))
    other = net.labels != points.y.unsqueeze(1)
    return torch.where(other, every, torch.inf).amin(1)


def certified(config: Sweep, bench: Bench, base: Cell, seed: int) -> xr.Dataset:
    """The base's certified radii and the sweeps' upper ones, where the window begins; NaN if a label is lost."""
    problem, net = classes_problem(config, bench, base, seed)
    times, ends = (1.0, window(base)), torch.full((2, config.points), torch.nan)
    for trained in course(net, train_classes, problem.train, config.eta, config.steps, times):
        if off(trained, problem.train).all(1).any():
            break
    else:
        points = problem.mixture.sample(config.points, bench.generator("certified", seed=seed))
        found = radius(trained, points.x, points.y)
        upper = torch.minimum(towards_others(trained, points), found.upper)
        ends = torch.stack([found.lower, upper]) / math.sqrt(base.d)
    return xr.Dataset({"certified": (("end", "point"), ends.numpy())})
