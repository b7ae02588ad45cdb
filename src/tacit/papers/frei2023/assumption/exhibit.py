"""Assumption 2.2 and Example 1: how many clusters the assumption admits, and P1 to P6.

    K (p + Delta + 1) <= (d - Delta + 1) / 10,    p = max |<mu_i, mu_j>|,    Delta = 4 sigma sqrt(d) ln d

Orthogonal means have p = 0: the largest K is a formula. For means drawn from the sphere p is sampled from
its exact law at every d (`means.sphere_frame`). For K fixed, the largest admissible cosine p/d tends to
1/(10 K). P1 to P6 are counted on sampled data sets against the probability of Proposition A.1, whose proof
asks only K <= d and sigma <= 1.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
import xarray as xr
from scipy.stats import beta

from tacit.data import sqrt_d_mixture
from tacit.lab import Bench, Claim, Expected, Outcome, judge
from tacit.measure import proportion
from tacit.papers._shared.assumptions import (
    check_assumption,
    cluster_limit,
    most_clusters,
    nice_probability,
    noise_term,
    sample_properties,
)
from tacit.papers.frei2023._shared.means import (
    least_dimension,
    small_noise,
    sphere_frame,
    unit_noise,
)
from tacit.papers.frei2023.assumption.figure import draw as draw
from tacit.papers.frei2023.assumption.settings import Reach

WHERE = "Section 2, Assumption 2.2 and Example 1"
FEW = (2, 4)  # constant K, Example 1's third case
NAMES = ("P1", "P2", "P3", "P4", "P5", "P6")


def run(config: Reach, bench: Bench) -> Outcome:
    """The largest K by dimension, the largest cosine for constant K, and P1 to P6."""
    d = np.unique(
        np.geomspace(100, 10.0**config.decades, config.per_decade * (config.decades - 2) + 1)
    )
    d = np.round(d)
    data = xr.merge(
        [
            bench.part("clusters", lambda: cluster_counts(d, config, bench)),
            bench.part("cosines", lambda: cosines(d)),
            bench.part("properties", lambda: properties(config, bench)),
        ]
    )
    claims = [
        *arithmetic(config),
        *order_claims(data, bench),
        *property_claims(data, config, bench),
    ]
    return Outcome(data, tuple(claims))


def cluster_counts(d: np.ndarray, config: Reach, bench: Bench) -> xr.Dataset:
    """The largest K for orthogonal means with sigma = 1/sqrt(d), and for random means with sigma = 1."""
    orthogonal = [most_clusters(x, 1 / math.sqrt(x)) for x in d]
    ratio = [cluster_limit(x, 1 / math.sqrt(x)) for x in d]
    sphere = [
        [random_most(int(x), bench.generator("sphere", int(x), i)) for i in range(config.draws)]
        for x in bench.steps(d, "dimensions")
    ]
    return xr.Dataset(
        {
            "orthogonal": ("d", orthogonal),
            "orthogonal_ratio": ("d", ratio),
            "sphere": (("d", "draw"), np.array(sphere)),
        },
        coords={"d": d},
    )


def random_most(d: int, generator: torch.Generator) -> int:
    """The largest K that the first K of a sequence of random means satisfy, sigma = 1."""
    cap = min(most_clusters(d, 1.0), d)
    if cap < 2:
        return cap
    frame = sphere_frame(cap, d, generator).numpy()
    gram = np.abs(np.tril(frame @ frame.T, -1))
    overlap = d * np.maximum.accumulate(gram.max(1))
    admitted = [K for K in range(1, cap + 1) if most_clusters(d, 1.0, overlap[K - 1]) >= K]
    return max(admitted, default=0)


def cosines(d: np.ndarray) -> xr.Dataset:
    """The largest cosine that K clusters may have: ((d - Delta + 1)/(10 K) - Delta - 1) / d, if positive."""
    values = np.full((2, len(FEW), len(d)), np.nan)
    for s, sigma in enumerate((small_noise, unit_noise)):
        for i, K in enumerate(FEW):
            for j, x in enumerate(d):
                delta = noise_term(x, sigma(int(x)))
                most = ((x - delta + 1) / (10 * K) - delta - 1) / x
                values[s, i, j] = most if most > 0 else np.nan
    coords = {"noise": ["1/sqrt(d)", "1"], "few": list(FEW), "d": d}
    return xr.Dataset({"cosine": (("noise", "few", "d"), values)}, coords=coords)


def properties(config: Reach, bench: Bench) -> xr.Dataset:
    """The worst ratio to the threshold of each property, by setting and data set."""
    worst = np.empty((len(config.D), 2, config.datasets, len(NAMES)))
    for i, (D, K) in enumerate(
        bench.steps(list(zip(config.D, config.K, strict=True)), "data sets")
    ):
        for s, sigma in enumerate((1 / math.sqrt(D), 1.0)):
            mixture = sqrt_d_mixture(D, K, K // 2, sigma)
            generator = bench.generator("properties", D, K, sigma)
            for j in range(config.datasets):
                samples = mixture.sample(sample_size(D, K), generator)
                found = sample_properties(mixture, samples)
                worst[i, s, j] = [found[name].worst for name in NAMES]
    return xr.Dataset(
        {"worst": (("setting", "noise", "dataset", "property"), worst)},
        coords={
            "D": ("setting", list(config.D)),
            "K": ("setting", list(config.K)),
            "noise": ["1/sqrt(d)", "1"],
            "property": list(NAMES),
        },
    )


def sample_size(D: int, K: int) -> int:
    """n = K ln^2 d, rounded up."""
    return math.ceil(K * math.log(D) ** 2)


def arithmetic(config: Reach) -> Iterator[Claim]:
    """Where two clusters (and 32) begin, in Example 1's cases."""
    small = "orthogonal means, sigma = 1/sqrt(d)"
    by_chance = [
        least_dimension(2, unit_noise, partial(overlap_quantile, q)) for q in (0.5, 0.025, 0.975)
    ]
    for id, K, text, least, spread in (
        ("d.K2.orthogonal", 2, small, least_dimension(2, small_noise), None),
        ("d.K32.orthogonal", 32, small, least_dimension(32, small_noise), None),
        ("d.K2.unit", 2, "orthogonal means, sigma = 1", least_dimension(2, unit_noise), None),
        (
            "d.K2.sphere",
            2,
            "random means, sigma = 1",
            by_chance[0],
            (by_chance[2] - by_chance[1]) / 2,
        ),
    ):
        yield judge(
            id,
            f"Assumption 2.2 admits {K} clusters at some d (measured: the smallest; {text})",
            WHERE,
            Expected(max=10.0**config.decades),
            float(least),
            spread=spread,
            n=1,
            smoke=False,
        )


def overlap_quantile(q: float, d: int) -> float:
    """The q-quantile of |<mu_1, mu_2>| for two random means: cos^2 ~ Beta(1/2, (d-1)/2)."""
    return d * math.sqrt(float(beta.ppf(q, 0.5, (d - 1) / 2)))


def order_claims(data: xr.Dataset, bench: Bench) -> Iterator[Claim]:
    """Example 1's orders: the exponent of d in K ln d over the last four decades; the cosine's limit."""
    last = data.d >= data.d.max() / 1e4
    d = data.d.values[last.values]
    middle = data.sphere.median("draw").values[last.values]
    for name, K, expected, tolerance, text in (
        (
            "orthogonal",
            data.orthogonal_ratio.values[last.values],
            1.0,
            0.02,
            "d: orthogonal, sigma = 1/sqrt(d)",
        ),
        ("sphere", middle, 0.5, 0.05, "sqrt(d): random means, sigma = 1"),
    ):
        slope = np.polyfit(np.log(d), np.log(K * np.log(d)), 1)[0]
        yield bench.judge(
            f"order.{name}",
            f"k may grow like {text} (measured: the exponent of d in k ln d, d up to {d[-1]:.0e})",
            WHERE,
            Expected(value=expected, tolerance=tolerance),
            float(slope),
            n=len(d),
        )
    at_end = data.cosine.isel(d=-1).values * 10 * np.array(FEW)
    yield bench.judge(
        "order.few",
        f"for constant k (2, 4) and any sigma the cosine of the means may stay at 1/(10k) "
        f"(measured: the least ratio to it, d = {float(data.d[-1]):.0e})",
        WHERE,
        Expected(value=1.0, tolerance=0.05),
        float(at_end.min()),
        n=at_end.size,
    )
    # Example 2: c and sigma constant, so Theorem 4.2's ||z|| = O(sqrt(d/k)) up to logarithms
    length = np.polyfit(np.log(d), np.log(np.sqrt(d / (middle * np.log(d)))), 1)[0]
    yield bench.judge(
        "example2",
        "with as many random means as are admitted, sqrt(d/k) grows like d^(1/4) (measured: the exponent "
        f"of d in sqrt(d/(k ln d)), d up to {d[-1]:.0e})",
        "Section 4, Example 2",
        Expected(value=0.25, tolerance=0.025),
        float(length),
        n=len(d),
    )


def property_claims(data: xr.Dataset, config: Reach, bench: Bench) -> Iterator[Claim]:
    """Proposition A.1 for each setting: the share of data sets with P1 to P6."""
    for i, (D, K) in enumerate(zip(config.D, config.K, strict=True)):
        for s, (noise, sigma) in enumerate((("1/sqrt(d)", D**-0.5), ("1", 1.0))):
            nice = (data.worst.values[i, s] <= 1).all(1)
            share = proportion(int(nice.sum()), config.datasets)
            n = sample_size(D, K)
            inside = check_assumption(sqrt_d_mixture(D, K, K // 2, sigma)).holds
            side = "inside" if inside else "outside"
            yield bench.judge(
                f"P.d{D}.k{K}.{'small' if s == 0 else 'unit'}",
                f"P1 to P6 hold as often as stated: d = {D}, k = {K}, sigma = {noise}, n = {n} "
                f"({side} Assumption 2.2)",
                "Appendix A.1, Proposition A.1",
                Expected(min=max(nice_probability(n, D), 0.0)),
                share.value,
                spread=share.spread,
                n=config.datasets,
            )
