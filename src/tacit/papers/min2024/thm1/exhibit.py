"""Theorem 1: F breaks along d0 at radius 1/sqrt(K); F^(p), p >= 2, breaks nowhere below sqrt(2)/2.

    P( F(x - y (1+rho)/sqrt(K) d0) y > 0 )                    <= 2 exp(-C D rho^2 / (K alpha^2))
    P( min_{|d|<=1} F^(p)(x + (sqrt(2)-delta)/2 d) y <= 0 )  <= 2(K+1) exp(-C D delta^2 / (2 K^2 alpha^2))

The first is counted by applying d0, the second from exact radii: no attack can be too weak.
"""

import math

import numpy as np
import torch
import xarray as xr
from matplotlib.figure import Figure

from tacit.attack import min2024_d0
from tacit.base.estimate import Certain
from tacit.certify import radius
from tacit.data import ClusterMixture, Samples, min2024_mixture
from tacit.lab import Bench, Claim, Expected, Judge, Outcome
from tacit.nets import average_net, centre_net
from tacit.papers.min2024.bounds.figure import radius_panel, tail_panel
from tacit.papers.min2024.bounds.sweep import (
    EVERYWHERE,
    LEMMA,
    bound_claim,
    count_events,
    critical_radii,
    radius_claims,
    survivors,
    tails,
)
from tacit.papers.min2024.thm1.settings import TwoRadii

WHERE = "Section 3, Theorem 1"


def run(config: TwoRadii, bench: Bench) -> Outcome:
    """Count survivors of d0 and of every perturbation; measure the critical radii."""
    at = [(math.sqrt(2) - delta) / 2 for delta in config.delta]
    far = 1.01 * max(at)  # farther no lower end is needed

    def counter(
        mixture: ClusterMixture, points: Samples
    ) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        F = average_net(mixture)
        step = points.y.unsqueeze(1) * min2024_d0(mixture) / math.sqrt(mixture.K)
        kept = [int((F(points.x - (1 + rho) * step) * points.y > 0).sum()) for rho in config.rho]
        broken = [
            len(points.y)
            - survivors(radius(centre_net(mixture, p), points.x, points.y, up_to=far).lower, at)
            for p in config.p
        ]
        return {
            "kept_F": (("rho",), np.array(kept)),
            "broken_Fp": (("p", "delta"), np.stack(broken)),
        }

    counts = count_events(config, bench, counter)
    critical = critical_radii(config, bench)
    data = counts.assign(critical=critical)
    first = tails(data.kept_F, config.n, bound_F)
    second = tails(data.broken_Fp, config.n, bound_Fp)
    judge = bench.claims(WHERE, source="formula", bar=LEMMA, regime=EVERYWHERE)
    claims = [
        bound_claim(judge, "F", "d0 of length (1+rho)/sqrt(K) breaks F as often as stated", first),
        bound_claim(judge, "Fp", "F^(p) survives (sqrt(2)-delta)/2 as often as stated", second),
        *radius_claims(judge.but(where="Section 3, Remark 2"), critical, config),
        below_two(judge, config),
    ]
    return Outcome(data, tuple(claims))


def bound_F(cell: xr.DataArray) -> tuple[float, float]:
    """2 exp(-C D rho^2 / (K alpha^2))."""
    return 2.0, float(cell.ratio * cell.rho**2)


def bound_Fp(cell: xr.DataArray) -> tuple[float, float]:
    """2(K+1) exp(-C D delta^2 / (2 K^2 alpha^2))."""
    return 2.0 * (int(cell.K) + 1), float(cell.ratio * cell.delta**2 / (2 * cell.K))


def below_two(judge: Judge, config: TwoRadii) -> Claim:
    """The theorem's p >= 2 is needed: for 1 < p < 2 the opposite centres rise together.

    At a centre facing K2 opposite ones, radius^2 = q/(1+q) with q = K2^(1-2/p) < 1.
    """
    gaps = []
    for K, K1 in zip(config.K, config.K1, strict=True):
        mixture = min2024_mixture(K, K, K1, 0.0)
        against = torch.where(mixture.labels > 0, K - K1, K1).double()
        for p in (1.2, 1.5, 1.8):
            q = against ** (1 - 2 / p)
            found = radius(centre_net(mixture, p), mixture.centres, mixture.labels).upper
            gaps.append(float((found - (q / (1 + q)).sqrt()).abs().max()))
    text = "for 1 < p < 2 the radius at a centre is sqrt(q/(1+q)), q = K2^(1-2/p) (largest gap)"
    worst = Certain(max(gaps), "exact radii of given points", 3 * sum(config.K))
    return judge("radius.below2", text, Expected(max=1e-6), worst, source="ours", any_size=True,
                 bar="ours: rounding of the exact radii", regime="outside: p >= 2 is asked")  # fmt: skip


def draw(data: xr.Dataset, config: TwoRadii) -> Figure:
    """Both bounds against the counts, and the critical radii."""
    figure = Figure(figsize=(11.5, 4))
    left, middle, right = figure.subplots(1, 3)
    tail_panel(left, tails(data.kept_F, config.n, bound_F), data.kept_F)
    left.set(title=r"$F$ survives the attack $d_0$", xlabel=r"$D\rho^2/(K\alpha^2)$")
    tail_panel(middle, tails(data.broken_Fp, config.n, bound_Fp), data.broken_Fp)
    middle.set(title=r"some perturbation breaks $F^{(p)}$", xlabel=r"$D\delta^2/(2K^2\alpha^2)$")
    radius_panel(right, data.critical, config)
    return figure
