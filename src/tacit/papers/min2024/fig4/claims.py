"""The claims of Figure 4; those on correlation, rank and robustness are the ones of Figures 3 and 6."""

import math

import numpy as np
import xarray as xr

from tacit.lab import Bench, Claim, Expected
from tacit.papers.min2024.fig4.settings import FeatureNets
from tacit.papers.min2024.images.claims import (
    MANY,
    Z,
    correlation_claims,
    rank_claims,
    robust_claims,
    seed_error,
)

WHERE = "Section 5.2.2, Figure 4"


def claims(data: xr.Dataset, config: FeatureNets, bench: Bench) -> tuple[Claim, ...]:
    """Clustered features; accuracy, stable rank and robustness that grow with p; a stronger attack."""
    curves = config.curves(int(data.attrs["superclasses"]))
    return (
        *correlation_claims(data, WHERE, bench),
        *accuracy_claims(data, config, bench),
        *rank_claims(data, curves, WHERE, bench),
        *robust_claims(data, curves, WHERE, bench),
        *strict_claims(data, config, bench),
    )


def accuracy_claims(data: xr.Dataset, config: FeatureNets, bench: Bench) -> list[Claim]:
    """ "Higher test accuracy": of each p > 1 next to ReLU.

    The spread is that of two shares of the test points, taken as independent (a bound: they are the same points),
    and of the seeds.
    """
    end, n = data.test_accuracy.isel(epoch=-1), data.attrs["test_points"]
    if 1.0 not in config.p:
        return []
    made = []
    for p in sorted(set(config.p) - {1.0}):
        share, least = (end.sel(p=q).values.astype(np.float64) for q in (p, 1.0))
        gain = share - least
        noise = sum(float(q.mean() * (1 - q.mean())) for q in (share, least)) / n
        half = math.hypot(Z * math.sqrt(noise), float(seed_error(gain)))
        made.append(
            bench.judge(
                f"clean.p{p:g}",
                f"p = {p:g} has a higher test accuracy than ReLU (measured: the difference)",
                WHERE + " (b)",
                Expected(min=0.0),
                float(gain.mean()),
                spread=half,
                n=n,
            )
        )
    return made


def strict_claims(data: xr.Dataset, config: FeatureNets, bench: Bench) -> list[Claim]:
    """The largest radius once more, under the margin and from three starts."""
    ps, n = sorted(config.p), data.sizes["point"]
    strict, released = data.strict.mean("seed"), data.robust.isel(radius=-1).mean("seed")
    at = f"at the radius {max(config.radius):g}"
    made = [
        bench.judge(
            "strict.missed",
            f"{at} margin-loss APGD from three starts breaks next to no more points than the released attack, at "
            "most .02 (measured: the largest share of points over p)",
            WHERE + " (d)",
            Expected(max=0.02),
            float((released - strict).max()),
            n=n,
        )
    ]
    if ps[0] == 1 and len(ps) > 1:
        low, high = (float(strict.sel(p=p)) for p in (1.0, ps[-1]))
        half = Z * math.sqrt((low * (1 - low) + high * (1 - high)) / n)
        made.append(
            bench.judge(
                "strict.much",
                f"{at} p = {ps[-1]:g} is much more robust than ReLU under the stronger attack too (measured: "
                "the gain in robust accuracy)",
                WHERE + " (d)",
                Expected(min=MANY),
                high - low,
                spread=half,
                n=n,
            )
        )
    return made
