"""Theorem 3: 1/sqrt(K) and sqrt(2)/2 are critical, the other halves of Theorem 1.

    P( min_{|d|<=1} F(x + (1-rho)/sqrt(K) d) y <= 0 )        <= 2 exp(-C D rho^2 / (K alpha^2))
    P( min_{|d|<=1} F^(p)(x + (sqrt(2)+delta)/2 d) y > 0 )   <= 4 exp(-C D delta^2 / (8 K^2 alpha^2))

Both are counted from exact radii. (The proof of the first ends at 4 exp(-C D rho^2/(4 K alpha^2)); the
statement is the stronger one, and is what is tested.) Where nothing is left to count, `min2024.tails` integrates.
"""

import math

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from tacit.certify import radius
from tacit.data import ClusterMixture, Samples
from tacit.lab import Bench, Outcome
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
from tacit.papers.min2024.thm1.exhibit import bound_F
from tacit.papers.min2024.thm3.settings import Critical

WHERE = "Appendix C.4, Theorem 3"


def run(config: Critical, bench: Bench) -> Outcome:
    """Count by exact radii on both sides of the critical ones."""
    above = [(math.sqrt(2) + delta) / 2 for delta in config.delta]

    def counter(
        mixture: ClusterMixture, points: Samples
    ) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        below = [(1 - rho) / math.sqrt(mixture.K) for rho in config.rho]
        F = radius(average_net(mixture), points.x, points.y).lower
        kept = [
            survivors(radius(centre_net(mixture, p), points.x, points.y, up_to=0).upper, above)
            for p in config.p
        ]
        return {
            "broken_F": (("rho",), len(F) - survivors(F, below)),
            "kept_Fp": (("p", "delta"), np.stack(kept)),
        }

    counts = count_events(config, bench, counter)
    critical = critical_radii(config, bench)
    data = counts.assign(critical=critical)
    # the theorem asks rho <= 1: beyond that the radius (1-rho)/sqrt(K) is negative
    first = tails(data.broken_F.sel(rho=[rho for rho in config.rho if rho <= 1]), config.n, bound_F)
    second = tails(data.kept_Fp, config.n, bound_Fp)
    judge = bench.claims(WHERE, source="formula", bar=LEMMA, regime=EVERYWHERE)
    claims = [
        bound_claim(judge, "F", "F survives (1-rho)/sqrt(K) as often as stated", first),
        bound_claim(judge, "Fp", "F^(p) breaks at (sqrt(2)+delta)/2 as often as stated", second),
        *radius_claims(judge.but(where="Section 3, Remark 2"), critical, config, "min2024.thm1"),
    ]
    return Outcome(data, tuple(claims))


def bound_Fp(cell: xr.DataArray) -> tuple[float, float]:
    """4 exp(-C D delta^2 / (8 K^2 alpha^2))."""
    return 4.0, float(cell.ratio * cell.delta**2 / (8 * cell.K))


def draw(data: xr.Dataset, config: Critical) -> Figure:
    """Both bounds against the counts, and the critical radii."""
    figure = Figure(figsize=(11.5, 4))
    left, middle, right = figure.subplots(1, 3)
    tail_panel(left, tails(data.broken_F, config.n, bound_F), data.broken_F)
    left.set(title=r"$F$ breaks below $1/\sqrt{K}$", xlabel=r"$D\rho^2/(K\alpha^2)$")
    tail_panel(middle, tails(data.kept_Fp, config.n, bound_Fp), data.kept_Fp)
    middle.set(title=r"$F^{(p)}$ survives above $\sqrt{2}/2$", xlabel=r"$D\delta^2/(8K^2\alpha^2)$")
    radius_panel(right, data.critical, config)
    return figure
