r"""A phase diagram of the certified median radius: power p x noise sigma x number of labels.

Each cell has a net (`nets`) trained on several data sets. The radius of each test point is an interval from
certificate to attack. At the same points stand two classifiers that nobody trains: the nearest centre, and
the averages of the classes (f_FA); with the medians of both,

    place = (median radius - averages) / (centres - averages)

is 0 where a net averages and 1 where it has decoupled all clusters. A cell *averages* where all of the 95%
interval of its mean place over trainings is below 1/2, *decouples* where all of it is above, and is *undecided*
otherwise. What is expected is derived in `theory`.
"""

import math
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from tacit.base.estimate import Estimate, between
from tacit.data import ClusterMixture, Samples
from tacit.lab import Bench, Outcome
from tacit.measure import mean_of
from tacit.papers._shared.assumptions import missing_line
from tacit.papers.li2025._shared.synthetic import mixture_of
from tacit.papers.li2025.phase.claims import claims
from tacit.papers.li2025.phase.figure import draw
from tacit.papers.li2025.phase.nets import flat_of, radii_of, start, train
from tacit.papers.li2025.phase.settings import Phase
from tacit.papers.li2025.phase.theory import predicted
from tacit.papers.li2025.story.exhibit import learned

__all__ = ["draw", "run"]

AVERAGES, UNDECIDED, DECOUPLES = -1, 0, 1
HALF = 0.5  # of the way from averages to centres


def run(config: Phase, bench: Bench) -> Outcome:
    """The untrained radii, then each pair of power and labels with all its noises and trainings at once."""
    for seed in bench.seeds(config.trainings):
        mixture, sample, _ = drawn(config, bench, config.sigma[0], seed)
        bench.tell(missing_line(sample, mixture))
    parts = [bench.part("ideal", partial(ideal, config, bench))]
    pairs = [(p, labels) for labels in config.labels for p in config.p]
    cells = {
        pair: bench.part(f"p{pair[0]:g}.labels{pair[1]}", partial(cell, config, bench, *pair))
        for pair in bench.steps(pairs, "nets")
    }
    rows = [xr.concat([cells[p, labels] for labels in config.labels], "labels") for p in config.p]
    parts.append(xr.concat(rows, "p"))
    data = xr.merge(parts).assign_coords(
        p=list(config.p), labels=list(config.labels), sigma=list(config.sigma),
        seed=bench.seeds(config.trainings),
    )  # fmt: skip
    data = with_places(data)
    axes = (config.p, config.labels, config.sigma)
    theory = np.array([predicted(config, *at) for at in product(*axes)])
    data["theory"] = (("p", "labels", "sigma"), theory.reshape([len(axis) for axis in axes]))
    return Outcome(data, tuple(claims(data, config, bench)))


def drawn(
    config: Phase, bench: Bench, sigma: float, seed: int
) -> tuple[ClusterMixture, Samples, Samples]:
    """The mixture in units of sqrt(d), training points and test points: the same draws at every noise."""
    stream = bench.generator("data", seed=seed)
    unit = 1 / math.sqrt(config.d)
    mixture = mixture_of(
        config.d, config.k, config.k // 2, alpha=unit, sigma=sigma * unit, generator=stream
    )
    return mixture, mixture.sample(config.n, stream), mixture.sample(config.points, stream)


def ideal(config: Phase, bench: Bench) -> xr.Dataset:
    """The radii that nobody trained at the test points, (ideal, sigma, seed, point)."""
    counts = sorted({2, *config.labels, config.k})
    found = []
    for sigma in config.sigma:
        for seed in bench.seeds(config.trainings):
            mixture, _, test = drawn(config, bench, sigma, seed)
            found.append(torch.stack([planes(mixture, test, count) for count in counts]))
    shape = (len(config.sigma), config.trainings)
    radii = torch.stack(found).unflatten(0, shape).numpy()
    return xr.Dataset({"ideal": (("sigma", "seed", "count", "point"), radii)}, {"count": counts})


def planes(mixture: ClusterMixture, test: Samples, labels: int) -> Float[Tensor, " n"]:
    """Distances to the plane between the leading sums of g = k/labels centres of both classes; 0 where broken.

    2 labels: the averages, f_FA. k labels: the nearest centre. The normal of a plane has length sqrt(2g).
    """
    group = mixture.K // labels
    along = (test.x @ mixture.centres.T).unflatten(1, (labels, group)).sum(2)
    own = mixture.labels[::group] == test.y.unsqueeze(1)
    lead, rival = (along.masked_fill(~mine, -torch.inf).amax(1) for mine in (own, ~own))
    return ((lead - rival) / math.sqrt(2 * group)).clamp_min(0)


def cell(config: Phase, bench: Bench, p: float, labels: int) -> xr.Dataset:
    """All noises and trainings of one power and number of labels: radii, losses, clusters with an own neuron."""
    seeds = bench.seeds(config.trainings)
    sets = [drawn(config, bench, sigma, seed) for sigma in config.sigma for seed in seeds]
    starts = [
        bench.generator("start", p, labels, seed=seed) for _ in config.sigma for seed in seeds
    ]
    group = config.k // labels
    x = torch.stack([sample.x for _, sample, _ in sets]).float()
    z = torch.stack([sample.z // group for _, sample, _ in sets])
    net = start(config, p, labels, starts).to(bench.device)
    trained, loss = train(config, net, x.to(bench.device), z.to(bench.device))
    ends, own = [], []
    for net, (mixture, _, test) in zip(trained.to("cpu").double().members(), sets, strict=True):
        found = radii_of(net, test.x, test.y)
        ends.append(torch.stack([found.lower, found.upper]))
        own.append(learned(flat_of(net), mixture))
    shape = (len(config.sigma), len(seeds))
    radii = torch.stack(ends).unflatten(0, shape).numpy()
    dims = ("sigma", "seed")
    return xr.Dataset(
        {
            "lower": ((*dims, "point"), radii[:, :, 0]),
            "upper": ((*dims, "point"), radii[:, :, 1]),
            "loss": (dims, loss.cpu().unflatten(0, shape).numpy()),
            "learned": (dims, np.array(own).reshape(shape)),
        }
    )


def with_places(data: xr.Dataset) -> xr.Dataset:
    """Medians over points, the place of each training, and the phase of each cell."""
    data["median_ideal"] = data.ideal.median("point")
    near, far = (data.median_ideal.isel(count=at, drop=True) for at in (0, -1))
    for end in ("lower", "upper"):
        data[f"median_{end}"] = data[end].median("point")
        data[f"place_{end}"] = (data[f"median_{end}"] - near) / (far - near)
    low, high, phase = (np.zeros(data.lower.shape[:3]) for _ in range(3))
    order = ("p", "labels", "sigma")
    ends = [data[f"place_{end}"].transpose(*order, "seed").values for end in ("lower", "upper")]
    for index in np.ndindex(*low.shape):
        found = place_of(ends[0][index], ends[1][index])
        low[index], high[index] = found.low, found.high
        phase[index] = (
            DECOUPLES if found.low > HALF else AVERAGES if found.high < HALF else UNDECIDED
        )
    for name, values in (("place_low", low), ("place_high", high), ("phase", phase)):
        data[name] = (order, values)
    return data


def place_of(lower: npt.ArrayLike, upper: npt.ArrayLike) -> Estimate:
    """The mean place over trainings, from certificate to attack."""
    return between(*(mean_of(end, over="trainings") for end in (lower, upper)))
