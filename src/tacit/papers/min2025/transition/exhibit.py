r"""What neurons learn, over p and the size of the init: the class average, the centres, or a mixture.

A training has learned the averages (the centres) where 95% of the mass of each sign lies within cosine .95 of
them; else it is a mixture. At alpha = 0 the data are K orthonormal points with their counts as weights, the
flow takes place in K dimensions, and hundreds of trainings are one tensor program (nothing is merged).
`theory` predicts the shares from the same starts without training, and both boundaries are located by
bisection in p in the flow and in the prediction: `centres` from above, `average` from below.

Robust radius: of one centre of each class, the lesser, by attack (an upper bound; the classes' closed forms are
1/sqrt(K) and sqrt(2)/2).
"""

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from torch import Tensor

from tacit.attack import minimal
from tacit.data import min2024_mixture
from tacit.lab import Bench, Outcome
from tacit.measure.neurons import learned_directions
from tacit.nets import TwoLayerNet
from tacit.papers.min2025.transition import figure as transition_panels
from tacit.papers.min2025.transition.claims import SHARE, claims
from tacit.papers.min2025.transition.settings import Transition
from tacit.papers.min2025.transition.theory import Alignment, Clusters, alignment, predicted_shares
from tacit.papers.min2025.transition.turning import turning_boundary
from tacit.train import FlowWarning, Until, gradient_flow

LEVEL = 11.0  # trained to a log-loss of minus this
FITTED = -1.0  # the log-loss at which "the time to fit" is read
COUNTS = ("equal", "drawn")
SIDES = ("average", "centres")
BUDGET = 6000  # looks at the data


@dataclass(frozen=True)
class Start:
    """Neurons before they are scaled: w Gaussian (h, K) and signs (h,), and the points they will see."""

    w: Float[Tensor, "h K"]
    sign: Float[Tensor, " h"]
    clusters: Clusters


def run(config: Transition, bench: Bench) -> Outcome:
    """The diagram for both kinds of counts, its boundaries, and the cuts."""
    steps: list[tuple[str, Callable[[], xr.Dataset]]] = [
        ("diagram", partial(diagram, config, bench)),
        ("starts", partial(more_starts, config, bench)),
        ("clusters", partial(more_clusters, config, bench)),
        ("noise", partial(noise, config, bench)),
        ("time", partial(fit_times, config, bench)),
    ]
    parts = [bench.part(name, make) for name, make in bench.steps(steps, "parts of the diagram")]
    parts.append(bench.part("boundaries", partial(boundaries, config, bench, parts[0])))
    data = xr.merge(parts, join="exact")
    return Outcome(data, tuple(claims(data, config, bench)))


def draw(data: xr.Dataset, config: Transition) -> Figure:
    """Two phase diagrams, the radius, and three cuts."""
    return transition_panels.figure(data, config)


def start(
    config: Transition, bench: Bench, kind: str, seed: int, *name: str | float, K: int, K1: int, h: int
) -> Start:  # fmt: skip
    """The neurons of a seed and a name (the same for all p), and the counts of its clusters."""
    draw_w = bench.generator("start", K, *name, seed=seed)
    draw_n = bench.generator("counts", K, *name, seed=seed)
    w = torch.randn(h, K, generator=draw_w, dtype=torch.float64)
    labels = torch.where(torch.arange(K) < K1, 1.0, -1.0).double()
    counts = torch.ones(K, dtype=torch.float64)
    if kind == "drawn":
        # one point a cluster at least
        drawn = torch.multinomial(counts, config.n - K, True, generator=draw_n)
        counts += torch.bincount(drawn, minlength=K)
    sign = torch.where(torch.rand(h, generator=draw_w) < 0.5, 1.0, -1.0).double()
    return Start(w, sign, Clusters(labels, counts / counts.sum()))


def trained(
    starts: Sequence[Start], init: Float[Tensor, " E"], p: Float[Tensor, " E"], log_loss: float
) -> tuple[list[TwoLayerNet], Float[Tensor, " E"], Bool[Tensor, " E"]]:
    """Balanced nets followed to the log-loss, in one program; their log-time, and whether they arrived."""
    w = torch.stack([s.w for s in starts]) * init.reshape(-1, 1, 1)
    v = torch.stack([s.sign for s in starts]) * w.norm(dim=-1)
    E, _, D = w.shape
    K = len(starts[0].clusters.labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlowWarning)  # what did not arrive is counted
        flowed = gradient_flow(
            TwoLayerNet(w, v),
            torch.eye(K, D, dtype=torch.float64).expand(E, K, D),
            torch.stack([s.clusters.labels for s in starts]),
            sample_weight=torch.stack([s.clusters.weights for s in starts]),
            until=Until(log_loss=log_loss, evaluations=BUDGET),
            powers=p,
            merge_angle=0.0,
        )
    arrived = torch.tensor([why == "loss" for why in flowed.stopped])
    time = torch.tensor([end.log_time for end in flowed.ended], dtype=torch.float64)
    return [flowed.member(i) for i in range(E)], time, arrived


def shares(
    net: TwoLayerNet, centres: Float[Tensor, "K D"], labels: Float[Tensor, " K"]
) -> tuple[float, float]:
    """The mass within cosine .95 of the class averages and of the centres, the lesser of the two signs."""
    averages = torch.stack([centres[labels == label].sum(0) for label in (1.0, -1.0)])
    found = [learned_directions(net, candidates).within for candidates in (averages, centres)]
    return float(found[0].min()), float(found[1].min())


def flow_shares(
    starts: Sequence[Start], init: Float[Tensor, " E"], p: Float[Tensor, " E"]
) -> tuple[Float[Tensor, "E 2"], Bool[Tensor, " E"], list[TwoLayerNet]]:
    """Shares of trainings (average, centres), whether each was fitted, and the nets."""
    nets, _, arrived = trained(starts, init, p, -LEVEL)
    found = [
        shares(net, torch.eye(len(s.clusters.labels), dtype=torch.float64), s.clusters.labels)
        for net, s in zip(nets, starts, strict=True)
    ]
    return torch.tensor(found, dtype=torch.float64), arrived, nets


def theory_shares(
    starts: Sequence[Start], init: Float[Tensor, " E"], p: Float[Tensor, " E"]
) -> Float[Tensor, "E 2"]:
    """The same shares predicted from the starts alone."""
    return torch.tensor(
        [
            predicted_shares(curves_of(s, float(e), float(q)), LEVEL)
            for s, e, q in zip(starts, init, p, strict=True)
        ],
        dtype=torch.float64,
    )


def curves_of(s: Start, init: float, p: float) -> Alignment:
    """The alignment of a start at a size of init."""
    length = s.w.norm(dim=1)
    K = len(s.clusters.labels)
    log_mass = 2 * math.log(init) + 2 * length.log()
    return alignment(s.w[:, :K] / length.unsqueeze(1), s.sign, log_mass, s.clusters, p, LEVEL)


def starts_of(config: Transition, bench: Bench, cells: Iterable[tuple[int, ...]]) -> list[Start]:
    """The starts of cells (counts, seed, init, ...) of the diagram: one for each of these three."""
    seeds, sizes = bench.seeds(config.repeats), {"K": config.K, "K1": config.K1, "h": config.h}

    @cache
    def at(c: int, s: int, i: int) -> Start:
        name = (COUNTS[c], config.init[i])
        return start(config, bench, COUNTS[c], seeds[s], *name, **sizes)

    return [at(c, s, i) for c, s, i, *_ in cells]


def diagram(config: Transition, bench: Bench) -> xr.Dataset:
    """Shares over counts, seed, init and p, measured and predicted; radii for the first seed and equal counts."""
    shape = (len(COUNTS), config.repeats, len(config.init), len(config.p))
    cells = list(np.ndindex(shape))
    starts = starts_of(config, bench, cells)
    init = torch.tensor([config.init[i] for _, _, i, _ in cells], dtype=torch.float64)
    p = torch.tensor([config.p[k] for *_, k in cells], dtype=torch.float64)
    found, arrived, nets = flow_shares(starts, init, p)
    radii = [radius_of(net, starts[0].clusters.labels) for net in nets[: shape[2] * shape[3]]]
    dims = ("counts", "seed", "init", "p")
    return xr.Dataset(
        {
            "share": ((*dims, "side"), found.reshape(*shape, 2).numpy()),
            "predicted": ((*dims, "side"), theory_shares(starts, init, p).reshape(*shape, 2).numpy()),
            "arrived": (dims, arrived.reshape(shape).numpy()),
            "radius": (("init", "p"), np.array(radii).reshape(shape[2:])),
        },
        coords={
            "counts": list(COUNTS), "seed": bench.seeds(config.repeats), "init": list(config.init),
            "p": list(config.p), "side": list(SIDES),
        },
    )  # fmt: skip


def radius_of(net: TwoLayerNet, labels: Float[Tensor, " K"]) -> float:
    """The attacked radius of the first and the last centre, the lesser."""
    ends = [0, len(labels) - 1]
    x = torch.eye(len(labels), dtype=torch.float64)[ends]
    return float(minimal(net, x, labels[ends]).radius.min())


def boundaries(config: Transition, bench: Bench, seen: xr.Dataset) -> xr.Dataset:
    """For each seed and init the p up to which averages, and from which on centres, are learned."""
    shape = (len(COUNTS), config.repeats, len(config.init), len(SIDES))
    cells = list(np.ndindex(shape))
    starts = starts_of(config, bench, cells)
    init = torch.tensor([config.init[i] for _, _, i, _ in cells], dtype=torch.float64)
    side = torch.tensor([a for *_, a in cells])
    dims = ("counts", "seed", "init", "side")
    found = {}
    for name, share, known in (
        ("", lambda p: flow_shares(starts, init, p)[0], seen.share),
        ("predicted_", lambda p: theory_shares(starts, init, p), seen.predicted),
    ):
        rows = known.transpose(*dims, "p").values.reshape(len(cells), -1)
        ends = [bracket(row, seen.p.values, SIDES[a]) for row, a in zip(rows, side, strict=True)]
        where = bisected(share, side, torch.tensor(ends, dtype=torch.float64), config.rounds)
        found[name + "boundary"] = (dims, where.reshape(shape).numpy())
        half = np.abs(np.diff(ends)) / 2 ** (config.rounds + 1)
        found[name + "resolution"] = (dims, half.reshape(shape))
    return xr.Dataset(found)


def bracket(share: np.ndarray, p: np.ndarray, side: str) -> tuple[float, float]:
    """The neighbours on the grid between which the share falls below SHARE, inside first; NaN: no such phase.

    Averages are learned up to a p, centres from a p on: what is looked for is the failure nearest to that end.
    """
    inside = share >= SHARE
    order = np.arange(len(p)) if side == "average" else np.arange(len(p))[::-1]
    fails = order[~inside[order]]
    if not len(fails) or fails[0] == order[0]:
        return math.nan, math.nan
    at = int(fails[0])
    return float(p[at - 1 if side == "average" else at + 1]), float(p[at])


def bisected(
    share: Callable[[Float[Tensor, " E"]], Float[Tensor, "E 2"]],
    side: Tensor,
    ends: Float[Tensor, "E 2"],
    rounds: int,
) -> Float[Tensor, " E"]:
    """Where the share of each member's side crosses SHARE, between its ends (inside, outside); NaN stays NaN."""
    inside, outside = ends.unbind(1)
    rows = torch.arange(len(side))
    for _ in range(rounds):
        middle = (inside + outside) / 2
        passed = share(middle.nan_to_num(2.0))[rows, side] >= SHARE
        inside, outside = (
            torch.where(passed, middle, inside),
            torch.where(passed, outside, middle),
        )
    return (inside + outside) / 2


def more_starts(config: Transition, bench: Bench) -> xr.Dataset:
    """Shares from `starts` independent starts of each kind of counts at each `share_p`, from one small init."""
    shape = (len(COUNTS), config.starts, len(config.share_p))
    cells, sizes = list(np.ndindex(shape)), {"K": config.K, "K1": config.K1, "h": config.h}
    starts = [start(config, bench, COUNTS[at[0]], bench.seed, *at, **sizes) for at in cells]
    p = torch.tensor([config.share_p[k] for *_, k in cells], dtype=torch.float64)
    found, _, _ = flow_shares(starts, torch.full_like(p, config.cut_init), p)
    return xr.Dataset(
        {"share_again": (("counts", "start", "share_p", "side"), found.reshape(*shape, 2).numpy())},
        coords={"counts": list(COUNTS), "share_p": list(config.share_p), "side": list(SIDES)},
    )


def more_clusters(config: Transition, bench: Bench) -> xr.Dataset:
    """Other numbers of clusters, equal counts, over p at one init."""
    pairs = [(config.K, config.K1), *zip(config.clusters, config.positives, strict=True)]
    p = torch.tensor(config.cut_p, dtype=torch.float64)
    init = torch.full_like(p, config.cut_init)
    found, expected = [], []
    for K, K1 in pairs:
        one = start(config, bench, "equal", bench.seed, K=K, K1=K1, h=config.more_h)
        starts = [one] * len(p)
        found.append(flow_shares(starts, init, p)[0])
        expected.append(theory_shares(starts, init, p))
    dims = ("K", "cut_p", "side")
    return xr.Dataset(
        {
            "share_K": (dims, torch.stack(found).numpy()),
            "predicted_K": (dims, torch.stack(expected).numpy()),
        },
        coords={"K": [K for K, _ in pairs], "cut_p": list(config.cut_p), "side": list(SIDES)},
    )


def noise(config: Transition, bench: Bench) -> xr.Dataset:
    """Where centres begin with noise, for both kinds of counts, measured and estimated, over data sets.

    Within [2, 4]: it is 2 where p = 2 has learned them, and NaN where p = 4 has not.
    """
    seeds = bench.seeds(config.noisy_sets)
    shape = (len(seeds), len(config.alpha), len(COUNTS), len(config.noisy_init))
    cells = list(np.ndindex(shape))
    h, each = config.noisy_h, len(cells) // len(seeds)
    streams = [bench.generator("noise", seed=seed) for seed in seeds]
    shape_w = (h, config.noisy_dim)
    w = torch.stack([torch.randn(shape_w, generator=g, dtype=torch.float64) for g in streams])
    sign = torch.stack([torch.rand(h, generator=g) for g in streams]).lt(0.5).double() * 2 - 1
    init = torch.tensor([config.noisy_init[i] for *_, i in cells], dtype=torch.float64)
    w = w.repeat_interleave(each, 0) * init.reshape(-1, 1, 1)
    sign = sign.repeat_interleave(each, 0)
    mixtures = [
        min2024_mixture(config.noisy_dim, config.K, config.K1, alpha) for alpha in config.alpha
    ]
    points = [
        mixtures[a].sample(
            config.noisy_n,
            bench.generator("points", seed=seeds[s]),
            equal_counts=COUNTS[c] == "equal",
        )
        for s, a, c, _ in cells
    ]
    centres, labels = mixtures[0].centres, mixtures[0].labels

    def share(p: Float[Tensor, " E"]) -> Float[Tensor, "E 2"]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FlowWarning)
            flowed = gradient_flow(
                TwoLayerNet(w, sign * w.norm(dim=-1)),
                torch.stack([s.x for s in points]), torch.stack([s.y for s in points]),
                powers=p, until=Until(log_loss=-LEVEL, evaluations=BUDGET),
            )  # fmt: skip
        found = [shares(flowed.member(i), centres, labels) for i in range(len(cells))]
        return torch.tensor(found, dtype=torch.float64)

    ends = torch.tensor([4.0, 2.0], dtype=torch.float64).expand(len(cells), 2)
    side = torch.full((len(cells),), SIDES.index("centres"))
    where, half = (
        bisected(share, side, ends, config.noisy_rounds),
        2 / 2 ** (config.noisy_rounds + 1),
    )
    # next to an end all rounds have agreed, and the end itself has not been seen
    first, last = where < 2 + 1.5 * half, where > 4 - 1.5 * half
    if bool((first | last).any()):
        learned = share(torch.where(first, 2.0, 4.0).double())[:, side[0]] >= SHARE
        where = where.masked_fill(first & learned, 2.0).masked_fill(last & ~learned, math.nan)
    log_mass = 2 * init.log() + math.log(config.noisy_dim)
    estimate = [
        turning_boundary(found, mixtures[a], float(log_mass[row]))
        for row, ((_, a, _, _), found) in enumerate(zip(cells, points, strict=True))
    ]
    dims = ("noisy_seed", "alpha", "counts", "noisy_init")
    return xr.Dataset(
        {
            "noisy_boundary": (dims, where.reshape(shape).numpy()),
            "estimated_boundary": (dims, np.array(estimate).reshape(shape)),
            "noisy_resolution": ((), half),
        },
        coords={
            "noisy_seed": seeds, "alpha": list(config.alpha), "counts": list(COUNTS),
            "noisy_init": list(config.noisy_init),
        },
    )  # fmt: skip


def fit_times(config: Transition, bench: Bench) -> xr.Dataset:
    """log10 of the time at which the log-loss is FITTED, in D dimensions, measured and predicted.

    Only the length of a direction outside the span of the centres matters: D dimensions are K + 1 coordinates.
    """
    K = config.K
    seeds = bench.seeds(config.repeats)
    starts: list[Start] = []
    for seed in seeds:
        base = start(config, bench, "equal", seed, K=K, K1=config.K1, h=config.more_h)
        for D in config.fit_dims:
            stream = bench.generator("outside", D, seed=seed)
            rest = torch.randn(config.more_h, D - K, generator=stream, dtype=torch.float64)
            w = torch.cat([base.w, rest.norm(dim=1, keepdim=True)], 1)
            starts += [Start(w, base.sign, base.clusters)] * len(config.fit_p)
    p = torch.tensor(config.fit_p * (len(starts) // len(config.fit_p)), dtype=torch.float64)
    init = torch.full_like(p, config.fit_init)
    _, log_time, arrived = trained(starts, init, p, FITTED)
    expected = [
        curves_of(s, config.fit_init, float(q)).loss_time(FITTED)
        for s, q in zip(starts, p, strict=True)
    ]
    shape = (len(seeds), len(config.fit_dims), len(config.fit_p))
    dims = ("seed", "D", "fit_p")
    return xr.Dataset(
        {
            "time": (dims, (log_time / math.log(10)).reshape(shape).numpy()),
            "predicted_time": (dims, np.log10(expected).reshape(shape)),
            "fitted": (dims, arrived.reshape(shape).numpy()),
        },
        coords={"seed": seeds, "D": list(config.fit_dims), "fit_p": list(config.fit_p)},
    )
