"""The sweep that Proposition 1 and Theorems 1 and 3 share: events counted over (K, ratio).

Samples are drawn in the K coordinates of span(centres): F and F^(p) see nothing else, so this is exact
in law for every D with the same alpha^2/D.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
import xarray as xr

from tacit.base.estimate import Certain, farthest, least
from tacit.certify import radius
from tacit.data import ClusterMixture, Samples, cluster_mixture, min2024_mixture, orthogonal_centres
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import Estimate, Tail, critical_radius, proportion, upper_limit
from tacit.measure.tails import VISIBLE, C
from tacit.nets import average_net, centre_net
from tacit.papers.min2024.bounds.settings import Bounds

Counter = Callable[[ClusterMixture, Samples], dict[str, tuple[tuple[str, ...], np.ndarray]]]

LEMMA = "derived: C = 1/2 is what the Gaussian tail lemma of the proof gives"
INTEGRATED = "min2024.tails integrates the probabilities there"
EVERYWHERE = "inside: stated for every D, K, alpha"


def count_events(config: Bounds, bench: Bench, counter: Counter) -> xr.Dataset:
    """Events by K and ratio, each setting a part of its own; samples are streamed."""
    settings = [(K, K1, r) for K, K1 in zip(config.K, config.K1, strict=True) for r in config.ratio]

    def count(K: int, K1: int, ratio: float) -> xr.Dataset:
        mixture = cluster_mixture(orthogonal_centres(K, K), K1, 1 / math.sqrt(K * ratio))
        generator = bench.generator("sweep", K, K1, ratio)
        total: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
        for samples in mixture.stream(config.n, generator):
            for name, (dims, events) in counter(mixture, samples).items():
                total[name] = (dims, total[name][1] + events if name in total else events)
        return xr.Dataset(total)

    found = [
        bench.part(f"K{K}-{K1}-ratio{r}", partial(count, K, K1, r))
        for K, K1, r in bench.steps(settings, "settings")
    ]
    rows = [found[i : i + len(config.ratio)] for i in range(0, len(found), len(config.ratio))]
    data: xr.Dataset = xr.combine_nested(rows, concat_dim=["K", "ratio"])
    return data.assign_coords(
        K=list(config.K),
        K1=("K", list(config.K1)),
        ratio=list(config.ratio),
        p=list(config.p),
        rho=list(config.rho),
        delta=list(config.delta),
    ).assign_attrs(n=config.n)


def survivors(radii: torch.Tensor, at: list[float]) -> np.ndarray:
    """How many points survive an attack of each radius."""
    return np.array([int((radii > r).sum()) for r in at], dtype=np.int64)


def tails(
    events: xr.DataArray, n: int, bound: Callable[[xr.DataArray], tuple[float, float]]
) -> list[Tail]:
    """One `Tail` a cell: `bound` gives (a, b) of a exp(-C b) from the cell's coordinates."""
    cells = (events[i] for i in np.ndindex(events.shape))
    return [Tail(int(cell), n, *bound(cell)) for cell in cells]


def bound_claim(judge: Judge, id: str, statement: str, found: list[Tail]) -> Claim:
    """Whether P(event) <= a exp(-C b) at C = 1/2: measured is the largest C that all settings together allow.

    A setting says something of C = 1/2 where the bound is below 1 and no event in n would confirm it (or where
    there are events all the same). Settings with a bound of 1 or more give C only where events are seen. What is
    too rare to be counted is integrated in `min2024.tails`.
    """
    of = len(found)
    reach = upper_limit(0, found[0].n, 1 - 0.025 / of)
    telling = [t for t in found if t.bound() < 1 and (t.bound() > reach or t.events)]
    seen = [t for t in found if t.b and t.events >= VISIBLE]
    text = f"{statement}, C = 1/2 (largest C; {len(telling)} of {of} settings can tell)"
    expected = Expected(min=C)
    if all(t.bound() >= 1 for t in found):
        grow = min(math.log(t.a) / (C * t.b) if t.b else math.inf for t in found)
        why = f"at C = 1/2 the bound is 1 or more in all {of} settings: nothing can violate it; the nearest "
        if math.isinf(grow):
            why += (
                "where it is below has a positive rho or delta: at 0 it is 1 or more at any noise"
            )
        else:
            why += f"where it is below has D/alpha^2 more than {grow:.3g} times as large ({INTEGRATED})"
        return judge(
            id, text, expected, Certain(C, "no setting can tell", of), vacuous=why, any_size=True
        )
    if not telling:
        # no event was seen and none is expected: what D/alpha^2 would bring the bound to what n can show
        grow = max(math.log(t.a / reach) / (C * t.b) for t in found if t.bound() < 1)
        why = f"where the bound is below 1 it is below {reach:.2g}, the limit of no event in {found[0].n:,}; the "
        why += f"nearest where it is above has D/alpha^2 less than {grow:.3g} times as large ({INTEGRATED})"
        return judge.cannot(id, text, expected, why)
    largest = least(constant(t, of) for t in {*telling, *seen})
    return judge(id, text, expected, largest, because="the counts exclude C = 1/2")


def constant(tail: Tail, of: int) -> Estimate:
    """The C with P(event) = a exp(-C b), one of so many; inf where there was no event."""
    return proportion(tail.events, tail.n, of=of).through(
        lambda q: math.log(tail.a / q) / tail.b if q else math.inf
    )


def critical_radii(config: Bounds, bench: Bench) -> xr.DataArray:
    """Median exact radii of F and F^(p) at the centres and at (alpha, D), by K."""

    def medians(mixture: ClusterMixture, points: Samples) -> list[list[float]]:
        nets = [average_net(mixture), *(centre_net(mixture, p) for p in config.p)]
        each = (radius(net, points.x, points.y, up_to=0).upper for net in nets)
        found = [critical_radius(radii, of=len(config.K)) for radii in each]
        return [[e.value, e.low, e.high] for e in found]

    def compute() -> xr.Dataset:
        rows = []
        for K, K1 in zip(config.K, config.K1, strict=True):
            still, noisy = (
                min2024_mixture(config.D, K, K1, alpha).reduced() for alpha in (0.0, config.alpha)
            )
            centres = Samples(still.centres, still.labels, torch.arange(K))
            points = noisy.sample(min(config.n, 20_000), bench.generator("critical", K, K1))
            rows.append([medians(still, centres), medians(noisy, points)])
        return xr.Dataset(
            {"critical": (("K", "points", "net", "end"), np.array(rows))},
            coords={
                "K": list(config.K),
                "points": ["centres", "noisy"],
                "net": ["F", *(f"F^({p:g})" for p in config.p)],
                "end": ["median", "low", "high"],
            },
        )

    return bench.part("critical", compute)["critical"]


def radius_claims(
    judge: Judge, critical: xr.DataArray, config: Bounds, same_as: str = ""
) -> Iterator[Claim]:
    """Critical radii over theory, 1/sqrt(K) for F and sqrt(2)/2 for F^(p): how far from 1 at the K farthest off.

    `same_as`: the exhibit that has measured them before.
    """
    for net in map(str, critical.net.values):
        theory = 1 / np.sqrt(config.K) if net == "F" else np.full(len(config.K), math.sqrt(0.5))
        text = f"the critical radius of {net} is {'1/sqrt(K)' if net == 'F' else 'sqrt(2)/2'}"
        ratio = critical.sel(net=net).transpose("points", "end", "K").values / theory
        off, number = float(np.abs(ratio[0, 0] - 1).max()), sum(config.K)
        exact = Certain(off, "exact radii of given points", number)
        yield judge(f"radius.{net}.centres", f"{text} at the centres (largest relative gap)", Expected(max=1e-6),
                    exact, bar="ours: rounding of the exact radii", any_size=True,
                    same_as=same_as and f"{same_as}:radius.{net}.centres")  # fmt: skip
        text += f" at alpha = {config.alpha:g}, D = {config.D} (largest relative gap of a median over K)"
        n = min(config.n, 20_000)
        found = [Estimate(value, low, high, n) for value, low, high in ratio[1].T.tolist()]
        yield judge(f"radius.{net}.noisy", text, Expected(max=0.01), farthest(found),
                    bar="ours: 1%; noise moves a coordinate by alpha/sqrt(D), here 1% of the least radius",
                    same_as=same_as and f"{same_as}:radius.{net}.noisy")  # fmt: skip
