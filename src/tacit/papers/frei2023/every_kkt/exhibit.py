r"""Theorems 3.1 and 4.2 on KKT points that the flow does not find.

The theorems are about every KKT point of Problem (2). What a flow from a small start finds is one of them: one
neuron a sign, the class averages. Others come from the convex-concave procedure
(`several_neuron_max_margin`), which keeps neurons apart that begin apart; ends of flows from unusual starts are
made exact by it. Each is certified by `kkt_residual`, over all rows, before it is judged, and functions, not
weights, are counted.

**Which there are.** A neuron that is on at some clusters of its class must be off at the others,

    <u_j, x~_i> = sum_{i'} lambda_i' (<x_i', x_i> + 1) < 0,

so that means of one class with products below -1 allow one neuron for every group of clusters, in any partition.
Orthogonal means with small noise do not: there each neuron is on at all of its class, and one function is left.

**What z does to them.** A group of g clusters has w_j ~ sum_{q in group} mu_q, with v_j <w_j, mu_q> = 1. At
x - y eta u the neuron of x loses eta g and the other class's k_o clusters gain eta k_o, whatever their groups, so

    eta = 1/(g + k_o),     ||z|| = k/(g + k_o) sqrt(d/k)

up to terms of order c'. One neuron a cluster is the most robust and not robust: 2 sqrt(d/k) at most.
"""

import math
from functools import partial

import numpy as np
import torch
import xarray as xr

from tacit.data import ClusterMixture, Samples
from tacit.errors import CallError, RunError
from tacit.lab import Bench, Outcome
from tacit.nets import TwoLayerNet
from tacit.papers._shared.assumptions import assumption_line, check_assumption, sample_properties
from tacit.papers.frei2023._shared.trained import Setting, flowed
from tacit.papers.frei2023.every_kkt.claims import claims
from tacit.papers.frei2023.every_kkt.figure import draw as draw
from tacit.papers.frei2023.every_kkt.points import (
    EXACT,
    NAMES,
    measured,
    nice,
    probes,
    told_apart,
)
from tacit.papers.frei2023.every_kkt.settings import EveryKkt
from tacit.papers.frei2023.every_kkt.starts import (
    Pattern,
    flow_start,
    mixture_of,
    pattern_of,
    patterns,
)
from tacit.train import KktPoint, several_neuron_max_margin


def run(config: EveryKkt, bench: Bench) -> Outcome:
    """All starts on every data set."""
    pairs = [(kind, seed) for kind in config.means for seed in bench.seeds(config.repeats)]
    cells = [
        bench.part(f"{kind}.{seed}", partial(one_set, kind, config, bench, seed))
        for kind, seed in bench.steps(pairs, "data sets")
    ]
    rows = [cells[at : at + config.repeats] for at in range(0, len(cells), config.repeats)]
    data = xr.concat([xr.concat(row, "seed") for row in rows], "means")
    data = data.assign_coords(means=list(config.means), seed=bench.seeds(config.repeats))
    return Outcome(data, claims(data, config, bench))


def one_set(kind: str, config: EveryKkt, bench: Bench, seed: int) -> xr.Dataset:
    """Every start on one data set; NaN where what it leads to is no KKT point."""
    stream = bench.generator("data", kind, config.D, config.K, config.sigma, seed=seed)
    mixture = mixture_of(kind, config, stream)
    bench.tell(assumption_line(mixture))
    setting = Setting(
        config.D, config.K, config.K // 2, config.sigma, 0.0, config.log_loss, config.h
    )
    train = mixture.sample(setting.n, stream)
    test = mixture.sample(config.tests, bench.generator("test", kind, seed=seed))
    begins: dict[str, Pattern | None] = dict(
        patterns(train, mixture, config.draws, bench.generator("patterns", kind, seed=seed))
    )
    ends: dict[str, TwoLayerNet] = {}
    for name in config.flows:
        begin = flow_start(name, mixture, config, bench.generator("start", kind, name, seed=seed))
        net, log_loss = flowed(begin, train, setting, bench.device)
        fits = log_loss < -math.log(setting.n)
        begins[f"flow: {name}"] = pattern_of(net, train) if fits else None
        ends[f"flow: {name}"] = net.double()
    return table(begins, ends, train, test, mixture, bench.generator("probes", kind, seed=seed))


def table(
    begins: dict[str, Pattern | None],
    ends: dict[str, TwoLayerNet],
    train: Samples,
    test: Samples,
    mixture: ClusterMixture,
    generator: torch.Generator,
) -> xr.Dataset:
    """The measurements of each start, with the number of its function and how far a flow's end is from it."""
    fine, looks = nice(test, train, mixture), probes(train, mixture, generator)
    k, rows = mixture.K, len(begins)
    values = {name: np.full(rows, np.nan) for name in NAMES}
    etas, groups = np.full((rows, k), np.nan), np.full((rows, k), np.nan)
    function, moved = np.full(rows, -1), np.full(rows, np.nan)
    outputs, places = [], []
    for i, (name, begin) in enumerate(begins.items()):
        point = reached(begin, train)
        if point is None:
            continue
        row, medians = measured(point, train, test, mixture, fine)
        if not max(row["stationarity"], row["slackness"]) <= EXACT:
            continue
        for key, value in row.items():
            values[key][i] = value
        etas[i], groups[i] = medians, group_sizes(point, train, mixture)
        outputs.append(point.net(looks))
        places.append(i)
        if name in ends:
            moved[i] = distance(ends[name], outputs[-1], train, looks)
    function[places] = told_apart(outputs)
    known = check_assumption(mixture)
    nice_set = all(found.holds for found in sample_properties(mixture, train).values())
    return xr.Dataset(
        {
            **{name: (("start",), found) for name, found in values.items()},
            "eta": (("start", "cluster"), etas),
            "group": (("start", "cluster"), groups),
            "function": (("start",), function),
            "moved": (("start",), moved),
            "tried": (("start",), np.array([begin is not None for begin in begins.values()])),
            "inside": ((), known.holds),
            "nice_set": ((), nice_set),
            "nice_points": ((), float(fine.double().mean())),
            "overlap": ((), known.overlap),
        },
        coords={"start": list(begins)},
    )


def reached(begin: Pattern | None, train: Samples) -> KktPoint | None:
    """The point that the procedure settles at; None where it does not, or where nothing fits."""
    if begin is None:
        return None
    try:
        point = several_neuron_max_margin(train.x, train.y, *begin)
    except (CallError, RunError):
        return None
    return point if point.settled else None


def group_sizes(point: KktPoint, train: Samples, mixture: ClusterMixture) -> np.ndarray:
    """How many clusters share the neuron of each cluster; NaN where a cluster has several, or a part of one.

    A neuron has a cluster of its sign where it is on at all of its points, and does not where at none.
    """
    sizes = np.full(mixture.K, np.nan)
    for side in (1.0, -1.0):
        mine = torch.where(mixture.labels == side)[0]
        on = point.corners[:, point.net.v.sign() == side]
        shares = torch.stack([on[train.z == q].mean(0) for q in mine])
        whole = (shares == 1).double()
        if bool(((shares == 0) | (shares == 1)).all()) and bool((whole.sum(1) == 1).all()):
            sizes[mine.numpy()] = (whole @ whole.sum(0)).numpy()
    return sizes


def distance(net: TwoLayerNet, limit: torch.Tensor, train: Samples, looks: torch.Tensor) -> float:
    """The largest difference of outputs on the probes over the largest output, the net at least margin 1."""
    least = float((train.y * net(train.x)).min())
    return float((net(looks) / least - limit).abs().max() / limit.abs().max())
