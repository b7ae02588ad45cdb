"""Assumption 2.2 and Example 1: how many clusters the assumption admits, and P1 to P6.

    K (p + Delta + 1) <= (d - Delta + 1) / 10,    p = max |<mu_i, mu_j>|,    Delta = 4 sigma sqrt(d) ln d

Orthogonal means have p = 0: the largest K, the least d that admits K clusters, and the largest cosine p/d, which
tends to 1/(10 K), are formulas. The orders that Example 1 gives them are judged at d = 10^16 to 10^24, where no
lower order is left and a formula costs as little. For means drawn from the sphere p is sampled from its exact law
at every d (`means.sphere_frame`). What Appendices A and D compute from the assumption alone, Lemmas A.9, D.5 and
D.9, is held against its edge (`edges`).

Proposition A.1's probability of P1 to P6 is held against the union of exact Gaussian tails (`laws.nice_failure`)
inside the assumption, where no sample could show a failure, and against counts where the promise is small enough
for a few hundred data sets to decide; its proof asks only K <= d and sigma <= 1.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
import xarray as xr

from tacit.base.estimate import Certain
from tacit.data import sqrt_d_mixture
from tacit.lab import Bench, Claim, Expected, Judge, Outcome, Part
from tacit.measure import proportion
from tacit.papers._shared.assumptions import (
    check_assumption,
    most_clusters,
    nice_probability,
    noise_term,
    sample_properties,
)
from tacit.papers._shared.fits import exponent, listed
from tacit.papers.frei2023._shared.laws import nice_failure
from tacit.papers.frei2023._shared.means import (
    least_dimension,
    small_noise,
    sphere_frame,
    unit_noise,
)
from tacit.papers.frei2023._shared.trained import PROOF_CONSTANT
from tacit.papers.frei2023.assumption.edges import edges
from tacit.papers.frei2023.assumption.figure import draw as draw
from tacit.papers.frei2023.assumption.settings import Reach

FEW = (2, 4)  # constant K, Example 1's third case
NOISE = (1e-3, 1.0)  # of the sampled data sets: inside Assumption 2.2, outside
FAR = np.geomspace(1e16, 1e24, 17)  # where the orders of Example 1 are read off
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
            bench.part("far", far),
            bench.part("edges", lambda: edges(d)),
            bench.part("properties", lambda: properties(config, bench)),
        ]
    )
    return Outcome(data, tuple(claims(data, config, bench)))


def cluster_counts(d: np.ndarray, config: Reach, bench: Bench) -> xr.Dataset:
    """The largest K for orthogonal means with sigma = 1/sqrt(d), and for random means with sigma = 1."""
    orthogonal = [most_clusters(x, small_noise(x)) for x in d]
    cases = ((2, small_noise), (32, small_noise), (2, unit_noise))
    sphere = [
        [random_most(int(x), bench.generator("sphere", int(x), i)) for i in range(config.draws)]
        for x in bench.steps(d, "dimensions")
    ]
    return xr.Dataset(
        {
            "orthogonal": ("d", orthogonal),
            "least_d": ("case", [least_dimension(K, sigma) for K, sigma in cases]),
            "sphere": (("d", "draw"), np.array(sphere)),
        },
        coords={"d": d, "case": ["k = 2", "k = 32", "k = 2, sigma = 1"]},
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
                delta = noise_term(x, sigma(x))
                most = ((x - delta + 1) / (10 * K) - delta - 1) / x
                values[s, i, j] = most if most > 0 else np.nan
    coords = {"noise": ["1/sqrt(d)", "1"], "few": list(FEW), "d": d}
    return xr.Dataset({"cosine": (("noise", "few", "d"), values)}, coords=coords)


def far() -> xr.Dataset:
    """Far out: the largest K for orthogonal means with sigma = 1/sqrt(d), the largest cosine for constant K."""
    orthogonal = [float(most_clusters(x, small_noise(x))) for x in FAR]
    few = cosines(FAR).rename(d="far", cosine="far_cosine")
    return few.assign(far_clusters=("far", orthogonal))


def properties(config: Reach, bench: Bench) -> xr.Dataset:
    """The worst ratio to the threshold of each property, by setting and data set."""
    worst = np.empty((len(config.D), len(NOISE), config.datasets, len(NAMES)))
    for i, (D, K) in enumerate(
        bench.steps(list(zip(config.D, config.K, strict=True)), "data sets")
    ):
        for s, sigma in enumerate(NOISE):
            mixture = sqrt_d_mixture(D, K, K // 2, sigma)
            generator = bench.generator("properties", D, K, sigma)
            for j in range(config.datasets):
                samples = mixture.sample(sample_size(D, K), generator)
                found = sample_properties(mixture, samples)
                worst[i, s, j] = [found[name].worst for name in NAMES]
    return xr.Dataset(
        {"worst": (("setting", "sigma", "dataset", "property"), worst)},
        coords={
            "D": ("setting", list(config.D)),
            "K": ("setting", list(config.K)),
            "sigma": list(NOISE),
            "property": list(NAMES),
        },
    )


def sample_size(D: int, K: int) -> int:
    """n = K ln^2 d, rounded up."""
    return math.ceil(K * math.log(D) ** 2)


def claims(data: xr.Dataset, config: Reach, bench: Bench) -> Iterator[Claim]:
    """Example 1's order for random means; Proposition A.1 by exact tails inside, by counts at small d."""
    most = data.sphere[data.d.values >= data.d.values[-1] / 1e4]
    d = most.d.values
    reach = f"d = {d[0]:.0e} to {d[-1]:.0e}"
    judge = bench.claims(
        "Section 2, Example 1", source="order", bar="ours: half of what one more factor ln d would add",
        regime="inside: the most clusters that Assumption 2.2 admits",
    )  # fmt: skip
    half = math.log(math.log(d[-1]) / math.log(d[0])) / math.log(d[-1] / d[0]) / 2
    slope = exponent(d.tolist(), most.values * np.log(d)[:, None], over="draws of the means")
    text = f"random means, sigma = 1: exponent of d in k ln d for the largest k admitted ({reach})"
    yield judge("order.sphere", text, Expected(value=0.5, tolerance=half), slope)

    yield from far_claims(data, judge)
    yield from edge_claims(data, judge)

    judge = judge.but(
        where="Appendix A.1, Proposition A.1", source="formula", bar="paper: its bound"
    )
    d_all = [int(x) for x in data.d.values]
    sizes = [(x, most_clusters(x, s(x))) for x in d_all for s in (small_noise, unit_noise)]
    over = [nice_failure(sample_size(x, K), x, K) for x, K in sizes if K >= 2]
    text = "chance that one of P1 to P6 fails, by exact Gaussian tails, over the one stated: the largest ratio"
    tails = Certain(max(over), "a union bound over closed-form tails", len(over))
    yield judge("P.tails", text, Expected(max=1.0), tails, any_size=True)

    for name, sigma in (("small", NOISE[0]), ("unit", NOISE[1])):
        parts, outside = [], []
        for i, (D, K) in enumerate(zip(config.D, config.K, strict=True)):
            nice = int((data.worst.sel(sigma=sigma)[i] <= 1).all("property").sum())
            share = proportion(nice, config.datasets, of=len(config.D), over="data sets")
            promised = nice_probability(sample_size(D, K), D)
            if promised > 0:  # the proposition is silent otherwise
                parts.append(Part(f"d{D}.k{K}", f"d = {D}, k = {K}", Expected(min=promised), share))
            if not check_assumption(sqrt_d_mixture(D, K, K // 2, sigma)).holds:
                outside.append(f"d = {D}, k = {K}")
        regime = (
            f"outside: {', '.join(outside)}" if outside else "inside: Assumption 2.2 holds in all"
        )
        text = f"P1 to P6 hold in the share of data sets that is stated (sigma = {sigma:g}, n = k ln^2 d)"
        if parts:
            yield judge.but(regime=regime).family(f"P.{name}", text, parts)


def far_claims(data: xr.Dataset, judge: Judge) -> Iterator[Claim]:
    """Example 1's orders for orthogonal means and for few clusters, which are formulas."""
    d = data.far.values
    half = math.log(math.log(d[-1]) / math.log(d[0])) / math.log(d[-1] / d[0]) / 2
    expected, reach = Expected(value=1.0, tolerance=half), f"d = {d[0]:.0e} to {d[-1]:.0e}"
    clusters = exponent(d.tolist(), (data.far_clusters.values * np.log(d))[:, None])
    text = f"orthogonal means, sigma = 1/sqrt(d): exponent of d in k ln d for the largest k admitted ({reach})"
    found = Certain(clusters.value, "a formula in d, rounded down", len(d))
    yield judge("order.orthogonal", text, expected, found, any_size=True)
    overlaps = (data.far_cosine * data.far).stack(case=("noise", "few")).transpose("far", "case")
    slopes = [exponent(d.tolist(), column[:, None]).value for column in overlaps.values.T]
    text = f"k = {listed(FEW)}, sigma = 1/sqrt(d) and 1: exponent of d in the largest overlap p admitted, "
    found = Certain(
        max(slopes, key=lambda s: abs(s - 1)), "a formula in d, k and sigma", len(slopes)
    )
    yield judge("order.few", f"{text}the farthest from 1 ({reach})", expected, found, any_size=True,
                regime="inside: the largest overlap that Assumption 2.2 admits")  # fmt: skip


def edge_claims(data: xr.Dataset, judge: Judge) -> Iterator[Claim]:
    """Lemmas A.9, D.5 and D.9 where the assumption is used up."""
    judge = judge.but(source="formula", regime="inside: as far as Assumption 2.2 admits")
    of = f"the largest along the edge of Assumption 2.2 (d = {data.d.values[0]:.0e} to {data.d.values[-1]:.0e})"
    chain = "derived: Lemma D.9's chain with its numbers"
    for name, where, what, most, source, bar in (
        ("A.9", "Appendix A.2", "Delta over d/21", 1.0, "formula", "paper: its inequality"),
        ("D.5", "Appendix D", "k (p + Delta) over d - Delta", 1.0, "formula", "paper: its inequality"),
        ("D.9", "Appendix D", "(eta_1 + eta_2) ||u|| over sqrt(d/(c^2 k))", PROOF_CONSTANT, "order", chain),
    ):  # fmt: skip
        used = data.edge.sel(lemma=name).values
        found = Certain(float(used.max()), "formulas in d, k, sigma, p and c; no data", len(used))
        yield judge(f"lemma.{name}", f"Lemma {name}: {what}, {of}", Expected(max=most), found, any_size=True,
                    where=f"{where}, Lemma {name}", source=source, bar=bar)  # fmt: skip
