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

from tacit.certify import radius
from tacit.data import ClusterMixture, Samples, cluster_mixture, min2024_mixture, orthogonal_centres
from tacit.lab import Bench, Claim, Expected, judge, untestable
from tacit.measure import Tail, critical_radius, largest_constant
from tacit.measure.tails import C
from tacit.nets import average_net, centre_net
from tacit.papers.min2024.bounds.settings import Bounds

Counter = Callable[[ClusterMixture, Samples], dict[str, tuple[tuple[str, ...], np.ndarray]]]


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


def bound_claim(id: str, statement: str, where: str, found: list[Tail], bench: Bench) -> Claim:
    """The verdict is at C = 1/2; what is reported is the largest C that the counts support."""
    largest = largest_constant(found)
    telling = sum(tail.bound() < 1 for tail in found)
    if not telling:
        reason = f"at C = 1/2 the bound is 1 or more in all {len(found)} settings: nothing can violate it"
        return untestable(id, f"{statement}, C = 1/2", where, Expected(min=C), reason)
    return bench.judge(
        id,
        f"{statement}, C = 1/2 (measured: the largest C; the bound is below 1 in {telling} of "
        f"{len(found)} settings)",
        where,
        Expected(min=C),
        largest,
        n=found[0].n,
        because=f"the counts exclude C = 1/2: the largest C is {largest:.3g}",
    )


def critical_radii(config: Bounds, bench: Bench) -> xr.DataArray:
    """Median exact radii of F and F^(p) at the centres and at (alpha, D), by K."""

    def medians(mixture: ClusterMixture, points: Samples) -> list[list[float]]:
        nets = [average_net(mixture), *(centre_net(mixture, p) for p in config.p)]
        found = [critical_radius(radius(net, points.x, points.y, up_to=0).upper) for net in nets]
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
    critical: xr.DataArray, config: Bounds, where: str, bench: Bench
) -> Iterator[Claim]:
    """Critical radii over theory: 1/sqrt(K) for F, sqrt(2)/2 for F^(p), at the K farthest off."""
    for net in map(str, critical.net.values):
        theory = 1 / np.sqrt(config.K) if net == "F" else np.full(len(config.K), math.sqrt(0.5))
        name = "1/sqrt(K)" if net == "F" else "sqrt(2)/2"
        for points, tolerance, setting in (
            ("centres", 1e-6, "alpha -> 0"),
            ("noisy", 0.01, f"alpha = {config.alpha:g}, D = {config.D}"),
        ):
            ratio = critical.sel(net=net, points=points).transpose("end", "K").values / theory
            worst = int(np.abs(ratio[0] - 1).argmax())
            exact = points == "centres"
            yield judge(
                f"radius.{net}.{points}",
                f"critical radius of {net} is {name} (measured: their ratio) at {setting}",
                where,
                Expected(value=1.0, tolerance=tolerance),
                float(ratio[0, worst]),
                spread=None if exact else float(ratio[2, worst] - ratio[1, worst]) / 2,
                n=config.K[worst] if exact else min(config.n, 20_000),
                smoke=bench.smoke and not exact,
            )
