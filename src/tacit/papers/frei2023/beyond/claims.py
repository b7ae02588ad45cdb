"""What `frei2023.beyond` expects of Section 5's questions, written down before it is measured."""

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.stats import binomtest

from tacit.lab import Bench, Claim, Expected, untestable
from tacit.papers._shared.fits import exponent, listed
from tacit.papers.frei2023.beyond.settings import RULES, SLACK, Beyond

WHERE = "Section 5, Discussion"
LEAST = 1e-4  # an error that is divided by: one in the ten thousand test points of laptop scale


def claims(data: xr.Dataset, config: Beyond, bench: Bench) -> list[Claim]:
    """What was to be expected of each question, and what came out."""
    near = np.array(config.inits) <= config.small
    depth = np.concatenate([data.depth.values.ravel(), data.plain_depth.values.ravel()])
    law = [cover(K, config.D) for K in config.K]
    odds = [
        binomtest(int(s), config.draws, p).pvalue
        for s, p in zip(data.split.values, law, strict=True)
    ]
    return [
        bench.judge(
            "cover",
            f"random means are linearly separable as often as Cover's count says, k = {listed(config.K)}, "
            f"d = {config.D} (measured: the least p-value of {config.draws} draws each)",
            "Cover 1965, Theorem 1",
            Expected(min=1e-3),
            min(odds),
            n=config.draws * len(law),
        ),
        bench.judge(
            "fits",
            "every flow reaches L < 1/n, where Theorem 2.1 begins (measured: the share of nets)",
            "Section 2, Theorem 2.1",
            Expected(min=1.0),
            float((depth < 0).mean()),
            n=len(depth),
        ),
        *cluster_claims(data, config, bench),
        *plain_claims(data, near, bench),
    ]


def cluster_claims(data: xr.Dataset, config: Beyond, bench: Bench) -> Iterator[Claim]:
    """The conjecture, where no data set of that k is linearly separable."""
    past = ~data.separable.values.any(1)
    beyond = [K for K, is_past in zip(config.K, past, strict=True) if is_past]
    where = (
        f"k = {listed(beyond)} in d = {config.D}: not linearly separable, outside Assumption 2.2"
    )
    if not beyond:
        reason = f"every k = {listed(config.K)} has a linearly separable data set: raise K"
        yield untestable("generalises", "beyond separability", WHERE, Expected(max=0.05), reason)
        return
    seen = data.sel(k=beyond)
    near = residual(seen.stationarity.values)
    yield bench.judge(
        "generalises",
        f"the test error stays below 0.05 ({where}; {near}; measured: the largest mean over data sets)",
        WHERE,
        Expected(max=0.05),
        float(seen.error.mean("seed").max()),
        n=seen.error.size,
    )
    yield bench.judge(
        "universal",
        "a multiple of u = sum y mu no longer than sqrt(d) still flips 95% of the test points "
        f"({where}; measured: the least share over k)",
        WHERE,
        Expected(min=0.95),
        float(np.isfinite(seen.along_u).mean(("seed", "ray")).min()),
        n=seen.along_u.size,
    )
    yield bench.judge(
        "smaller",
        "1-NN withstands half as much again: the net's median radius is at most 2/3 of 1-NN's "
        f"({where}; measured: the largest ratio over k, radii of the net from above)",
        WHERE,
        Expected(max=2 / 3),
        float(
            (seen.upper.median(("seed", "point")) / seen.radius_1nn.median(("seed", "point"))).max()
        ),
        n=seen.upper.size,
    )
    yield from order_claims(np.median(data.along_u.values, axis=2), config, bench)


def order_claims(length: npt.NDArray[np.float64], config: Beyond, bench: Bench) -> Iterator[Claim]:
    """How the length along u that flips half of the points falls with k, up to d and from d on."""
    K = np.array(config.K)
    expected = Expected(value=-0.5, tolerance=0.1)
    for name, mine in (("few", config.D >= K), ("many", config.D <= K)):
        if mine.sum() < 2:
            continue
        id, where = f"order.{name}", "Section 4, Theorem 4.2; " + WHERE
        text = (
            "the length along u that flips a point is of the order sqrt(d/k): exponent of k, "
            f"k = {listed(K[mine].tolist())}, d = {config.D} (outside Assumption 2.2)"
        )
        if not np.isfinite(length[mine]).all() or not (length[mine] > 0).all():
            reason = (
                "some nets err on half of the points, or keep half of them up to sqrt(d) along u"
            )
            yield untestable(id, text, where, expected, reason)
            continue
        slope = exponent(K[mine].tolist(), length[mine])
        yield bench.judge(
            id,
            text,
            where,
            expected,
            slope.value,
            spread=slope.spread,
            n=int(mine.sum()) * config.repeats,
            because="" if name == "few" else "the length stops falling once k passes d",
        )


def plain_claims(data: xr.Dataset, near: npt.NDArray[np.bool_], bench: Bench) -> Iterator[Claim]:
    """The question about max-margin linear rules, for the nets near KKT points."""
    net = data.plain_error.values[:, :, near]
    size = listed([int(n) for n in data.n.values])
    far = residual(data.plain_stationarity.values[:, :, near])
    for rule in RULES:
        line = np.broadcast_to(data.linear_error.sel(rule=rule).values[:, :, None], net.shape)
        by_set = net.sum((0, 1, 2)) / line.sum((0, 1, 2)).clip(LEAST)
        yield bench.judge(
            f"linear.{rule.replace(' ', '-')}",
            f"nets near KKT points generalise at least as well as the max-margin linear rule {rule}, on "
            f"separable data without clusters, n = {size} ({far}; measured: their errors' sum over its)",
            WHERE,
            Expected(max=1.0, tolerance=0.05),
            float(net.sum() / max(line.sum(), LEAST)),
            spread=float(1.96 * by_set.std(ddof=1) / math.sqrt(len(by_set))),
            n=net.size,
        )
    learnt = data.linear_error.mean(("rule", "seed")).values <= 0.01
    if learnt.any():
        yield bench.judge(
            "learnt",
            "where the max-margin linear rules have learnt (error <= 0.01), so have the nets near KKT points "
            "(measured: the largest error of a start, mean over data sets)",
            WHERE,
            Expected(max=0.01),
            float(net.mean(3)[learnt].max()),
            n=int(learnt.sum()) * net.shape[2] * net.shape[3],
        )


def residual(stationarity: npt.NDArray[np.float64]) -> str:
    """How far the nets of a claim are from KKT points: the loss is finite."""
    middle, most = float(np.median(stationarity)), float(stationarity.max())
    return f"KKT stationarity {middle:.2g}, at most {most:.2g}, with slackness <= {SLACK}"


def cover(K: int, d: int) -> float:
    """The chance that an affine hyperplane splits K points of R^d in general position (Cover 1965, Theorem 1).

    They are labelled by fair coins that do not all agree: (C - 2) / (2^K - 2), C = 2 sum_{i <= d} binom(K-1, i).
    """
    count = 2 * sum(math.comb(K - 1, i) for i in range(d + 1))
    return (count - 2) / (2**K - 2)
