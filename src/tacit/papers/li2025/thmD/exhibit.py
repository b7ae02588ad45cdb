"""Theorems D.1 to D.3: f_avg is accurate and breaks at the order sqrt(d/k), f_dec survives sqrt(d)/3.

Biases. At the centres f_avg has margins d + b+ - b- (positive) and d + b- - b+ (negative), and the
plane where its two neurons balance has a normal of length sqrt(k d). Accuracy needs |b+ - b-| < d, and
the two classes' radii then add up to at most 2 sqrt(d/k), whatever the biases: one class can be kept
beyond sqrt(d/k) only at the other's expense, and none beyond 2 sqrt(d/k).

Ties. Where f = 0 breaks, f_dec's radius at a centre is sqrt(d)/2. With sign(0) = -1, the paper's
reading, positive points still break there, but negative ones need f > 0: sqrt(d/2).

f_avg and f_dec see x through the centres alone, so samples are drawn in span(centres): exact in law.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
import xarray as xr

from tacit.certify import radius
from tacit.data import ClusterMixture, Samples, cluster_mixture, orthogonal_centres
from tacit.lab import Bench, Claim, Expected, Outcome
from tacit.measure import critical_radius, proportion
from tacit.nets import TwoLayerNet, average_net, decoupled_net
from tacit.papers._shared.panels import rows
from tacit.papers.li2025.thmD.figure import ACCURATE, draw
from tacit.papers.li2025.thmD.settings import Biases

__all__ = ["draw", "run"]

WHERE = "Appendix D, Theorem "
BEYOND = 2.2  # in units of sqrt(d/k): past the 2 that no accurate bias exceeds, with room for noise
RADII = 121
NETS = ("f_avg", "f_dec", "f_dec, sign(0) = -1")


def run(config: Biases, bench: Bench) -> Outcome:
    """Exact radii of both nets, and of f_avg over the grid of biases."""
    mixture = spanned(config)
    data = xr.merge(
        [
            bench.part("nets", lambda: both_nets(config, mixture, bench)),
            bench.part("biases", lambda: bias_grid(config, mixture, bench)),
        ]
    )
    claims = [*average_claims(data, config, bench), *decoupled_claims(data, config, bench)]
    nets = {"f_avg": average_net(mixture), "f_dec": decoupled_net(mixture)}
    return Outcome(data, tuple(claims), nets)


def spanned(config: Biases) -> ClusterMixture:
    """Orthogonal centres of norm sqrt(d), in the K coordinates of their span."""
    centres = orthogonal_centres(config.K, config.K, math.sqrt(config.D))
    return cluster_mixture(centres, config.K1, config.sigma)


def both_nets(config: Biases, mixture: ClusterMixture, bench: Bench) -> xr.Dataset:
    """Robust accuracy of f_avg (no bias) and f_dec by radius, and their critical radii by class."""
    at = np.linspace(0, 0.9 * math.sqrt(config.D), RADII)
    third = math.sqrt(config.D) / 3
    points = mixture.sample(config.n, bench.generator("nets"))
    dec, avg = decoupled_net(mixture), average_net(mixture)
    ties = radius(dec, points.x, points.y).upper
    strict = radius(dec, points.x, points.y, ties_break=False).upper
    paper = torch.where(points.y > 0, ties, strict)
    found = [radius(avg, points.x, points.y).upper, ties, paper]
    kept = [[int((r > e).sum()) for e in at] for r in found]
    median = [rows(critical_radius(r[points.y == s]) for s in (1, -1)).T for r in found]
    return xr.Dataset(
        {
            "kept": (("net", "radius"), np.array(kept)),
            "critical": (("net", "side", "end"), np.array(median)),
            "kept_third": ("net", np.array([int((r > third).sum()) for r in found])),
            "clean": ((), int((avg(points.x) * points.y > 0).sum())),
        },
        coords={
            "net": list(NETS),
            "radius": at,
            "side": ["+", "-"],
            "end": ["median", "low", "high"],
        },
    )


def bias_grid(config: Biases, mixture: ClusterMixture, bench: Bench) -> xr.Dataset:
    """f_avg by bias: clean accuracy, survivors at 2.2 sqrt(d/k) and sqrt(d/k), critical radii by class."""
    b = np.linspace(config.low, config.high, config.steps)
    unit = math.sqrt(config.D / config.K)
    points = mixture.sample(min(config.n, 20_000), bench.generator("biases"))
    cells = [(plus, minus) for plus in b for minus in b]
    rows = []
    for plus, minus in bench.steps(cells, "biases"):
        net = average_net(mixture, plus * config.D, minus * config.D)
        rows.append(cell(net, points, unit))
    values = np.array(rows).reshape(config.steps, config.steps, 5)
    names = ("accuracy", "survive_beyond", "survive_unit", "median_plus", "median_minus")
    return xr.Dataset(
        {name: (("b_plus", "b_minus"), values[..., i]) for i, name in enumerate(names)},
        coords={"b_plus": b, "b_minus": b},
    )


def cell(net: TwoLayerNet, points: Samples, unit: float) -> list[float]:
    """One bias: accuracy, the two robust accuracies, and the classes' median radii over sqrt(d/k)."""
    found = radius(net, points.x, points.y).upper / unit
    shares = [float((found > e).double().mean()) for e in (0, BEYOND, 1)]
    return shares + [float(found[points.y == s].median()) for s in (1, -1)]


def average_claims(data: xr.Dataset, config: Biases, bench: Bench) -> list[Claim]:
    """D.1 and D.2."""
    clean = proportion(int(data.clean), config.n)
    accurate = data.where(data.accuracy >= ACCURATE)
    cells = int((data.accuracy >= ACCURATE).sum())
    n = min(config.n, 20_000)
    setting = f"over the {cells} of {data.accuracy.size} biases with accuracy >= {ACCURATE}"
    both = (accurate.median_plus + accurate.median_minus) / 2
    return [
        bench.judge(
            "D1",
            "f_avg without biases classifies clean samples (measured: accuracy)",
            WHERE + "D.1",
            Expected(min=ACCURATE),
            clean.value,
            spread=clean.spread,
            n=config.n,
        ),
        bench.judge(
            "D2.beyond",
            f"robust accuracy of f_avg at {BEYOND:g} sqrt(d/k), the largest {setting}",
            WHERE + "D.2",
            Expected(value=0.0, tolerance=1e-3),
            float(accurate.survive_beyond.max()),
            n=n,
        ),
        bench.judge(
            "D2.unit",
            f"robust accuracy of f_avg at sqrt(d/k) itself, the largest {setting}: one class survives",
            WHERE + "D.2",
            Expected(max=max(config.K1, config.K - config.K1) / config.K, tolerance=0.015),
            float(accurate.survive_unit.max()),
            n=n,
        ),
        bench.judge(
            "D2.average",
            f"critical radius of f_avg averaged over the classes, over sqrt(d/k), the largest {setting}",
            WHERE + "D.2",
            Expected(max=1.0, tolerance=0.01),
            float(both.max()),
            n=n,
        ),
    ]


def decoupled_claims(data: xr.Dataset, config: Biases, bench: Bench) -> Iterator[Claim]:
    """D.3, and the critical radius by both readings of f = 0."""
    kept = proportion(int(data.kept_third.sel(net="f_dec")), config.n)
    yield bench.judge(
        "D3",
        "f_dec is sqrt(d)/3-robust (measured: robust accuracy there)",
        WHERE + "D.3",
        Expected(min=ACCURATE),
        kept.value,
        spread=kept.spread,
        n=config.n,
    )
    readings = (
        ("ties", "f_dec", "+", 1 / 2, 0.02, "sqrt(d)/2 where f = 0 breaks"),
        (
            "negative",
            "f_dec, sign(0) = -1",
            "-",
            math.sqrt(0.5),
            0.05,
            "sqrt(d/2) at negative points",
        ),
    )
    for id, net, side, theory, tolerance, name in readings:
        median, low, high = (
            data.critical.sel(net=net, side=side).values / math.sqrt(config.D) / theory
        )
        reading = "" if id == "ties" else " where sign(0) = -1"
        yield bench.judge(
            f"D3.{id}",
            f"critical radius of f_dec is {name}{reading} (measured: their ratio)",
            WHERE + "D.3",
            Expected(value=1.0, tolerance=tolerance),
            float(median),
            spread=float(high - low) / 2,
            n=config.n // 2,
        )
