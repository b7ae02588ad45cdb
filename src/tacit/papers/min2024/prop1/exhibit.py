"""Proposition 1: both classifiers are right on clean samples, but for exponentially few.

P( F(x) y <= 0 )      <= 4 exp(-C D / (4 alpha^2 K))
P( F^(p)(x) y <= 0 )  <= 2(K+1) exp(-C D / (alpha^2 K^2)),   p >= 1

Where these are far below 1 nothing is left to count: `min2024.tails` integrates the probabilities there.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from tacit.data import ClusterMixture, Samples
from tacit.lab import Bench, Outcome
from tacit.nets import average_net, centre_net
from tacit.papers.min2024.bounds.figure import tail_panel
from tacit.papers.min2024.bounds.settings import Bounds
from tacit.papers.min2024.bounds.sweep import (
    EVERYWHERE,
    LEMMA,
    bound_claim,
    count_events,
    tails,
)

WHERE = "Section 3, Proposition 1"


def run(config: Bounds, bench: Bench) -> Outcome:
    """Count clean errors; f = 0 is an error."""

    def counter(
        mixture: ClusterMixture, points: Samples
    ) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        nets = [centre_net(mixture, p) for p in config.p]
        wrong = [
            int((net(points.x) * points.y <= 0).sum()) for net in (average_net(mixture), *nets)
        ]
        return {"wrong_F": ((), np.array(wrong[0])), "wrong_Fp": (("p",), np.array(wrong[1:]))}

    data = count_events(config, bench, counter)
    first = tails(data.wrong_F, config.n, bound_F)
    second = tails(data.wrong_Fp, config.n, bound_Fp)
    judge = bench.claims(WHERE, source="formula", bar=LEMMA, regime=EVERYWHERE)
    claims = (
        bound_claim(judge, "F", "F errs no more often than stated", first),
        bound_claim(judge, "Fp", "F^(p) errs no more often than stated, p >= 1", second),
    )
    return Outcome(data, claims)


def bound_F(cell: xr.DataArray) -> tuple[float, float]:
    """4 exp(-C D / (4 alpha^2 K))."""
    return 4.0, float(cell.ratio / 4)


def bound_Fp(cell: xr.DataArray) -> tuple[float, float]:
    """2(K+1) exp(-C D / (alpha^2 K^2))."""
    return 2.0 * (int(cell.K) + 1), float(cell.ratio / cell.K)


def draw(data: xr.Dataset, config: Bounds) -> Figure:
    """Both bounds against the counts."""
    figure = Figure(figsize=(9, 4))
    left, right = figure.subplots(1, 2)
    tail_panel(left, tails(data.wrong_F, config.n, bound_F), data.wrong_F)
    left.set(title=r"$F$ errs on clean data", xlabel=r"$D/(4\alpha^2 K)$")
    tail_panel(right, tails(data.wrong_Fp, config.n, bound_Fp), data.wrong_Fp)
    right.set(title=r"$F^{(p)}$ errs on clean data", xlabel=r"$D/(\alpha^2 K^2)$")
    return figure
