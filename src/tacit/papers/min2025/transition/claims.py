"""The claims of `min2025.transition`: the poster's, and the predicted boundaries next to the measured ones."""

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.lab import Bench, Claim, Expected
from tacit.papers.min2025.transition.settings import Transition

WHERE = "Poster, Observations"
TURNING = "Beyond the poster (turning before the lag is over)"
THEORY = "Beyond the poster (alignment phase in closed form)"
SHARE = 0.95
SMALL = 1e-7  # the init of min2024
SMALLISH = 1e-3  # from here down the prediction is meant to hold


def claims(data: xr.Dataset, config: Transition, bench: Bench) -> tuple[Claim, ...]:
    """All of them."""
    return (
        *phases(data, bench),
        *turning(data, bench),
        *limits(data, config, bench),
        *predictions(data, bench),
        *radii(data, config, bench),
        *fitting(data, config, bench),
    )


def share_of(passed: xr.DataArray, id: str, text: str, where: str, bench: Bench) -> Claim:
    """The share of trainings that passed: all are expected to."""
    return bench.judge(
        id, text + " (measured: the share of trainings)", where, Expected(min=1.0),
        float(passed.mean()), n=int(passed.size),
    )  # fmt: skip


def phases(data: xr.Dataset, bench: Bench) -> Iterator[Claim]:
    """p = 1 and p > 2 from small init, and what a large init leaves, over both kinds of counts."""
    share = data.share
    small = share.sel(init=share.init[share.init <= SMALL])
    ones, above = small.sel(p=small.p[small.p == 1]), small.sel(p=small.p[small.p > 2])
    if ones.size:
        yield share_of(
                ones.sel(side="average") >= SHARE,
                "average", f"p = 1, init <= {SMALL:g}: neurons learn the class averages", WHERE, bench,
            )  # fmt: skip
    if above.size:
        yield share_of(
                above.sel(side="centres") >= SHARE,
                "centres", f"p > 2, init <= {SMALL:g}: neurons learn the cluster centres", WHERE, bench,
            )  # fmt: skip
    large = share.sel(init=share.init[share.init >= 1])
    if large.size:
        yield share_of(
                (large < SHARE).all("side"),
                "lazy", "init 1: neurons learn neither, at any p", "Beyond the poster (lazy training)", bench,
            )  # fmt: skip
    yield share_of(data.arrived, "arrived", "every training of the diagrams fits", THEORY, bench)


def turning(data: xr.Dataset, bench: Bench) -> list[Claim]:
    """With noise: the boundary rises as the init shrinks where counts are drawn; how good the estimate is."""
    at = data.noisy_boundary.sel(counts="drawn").sortby("noisy_init", ascending=False)
    steps = at.diff("noisy_init")
    gap = np.abs(data.noisy_boundary - data.estimated_boundary)
    made = [
        bench.judge(
            "noise.estimated",
            "with noise, centres are learned from the p on at which turning takes as long as the lag "
            "(measured: the largest gap in p)",
            TURNING,
            Expected(max=0.3),
            float(gap.max()),
            n=int(gap.size),
        )
    ]
    if steps.size:
        made.insert(
            0,
            bench.judge(
                "noise.rises",
                "with noise and drawn counts the boundary rises as the init shrinks (measured: the least rise "
                "from one init to the next; a scratch run had seen 2.4 at 1e-30 and 2.7 at 1e-70)",
                TURNING,
                Expected(min=0.0),
                float(steps.min()),
                n=int(steps.size),
            ),
        )
    return made


def limits(data: xr.Dataset, config: Transition, bench: Bench) -> Iterator[Claim]:
    """Where centres begin at the smallest init: 2 for any counts."""
    least = min(config.init)
    for kind in ("equal", "drawn"):
        at = data.boundary.sel(counts=kind, side="centres", init=least)
        yield bench.judge(
            f"limit.{kind}",
            f"{kind} counts, init {least:g}: centres are learned from p = 2 on",
            THEORY,
            Expected(value=2.0, tolerance=0.05),
            float(at.mean()),
            spread=half_range(at),
            n=int(at.size),
        )


def predictions(data: xr.Dataset, bench: Bench) -> Iterator[Claim]:
    """The largest gap between the boundaries of the flow and of the prediction."""
    small = data.init[data.init <= SMALLISH]
    for side in data.side.values:
        for kind in data.counts.values:
            at = {"side": side, "counts": kind, "init": small}
            gap = np.abs(data.boundary.sel(at) - data.predicted_boundary.sel(at))
            known = gap.values[np.isfinite(gap.values)]
            if not len(known):
                continue
            yield bench.judge(
                f"predicted.{side}.{kind}",
                f"{kind} counts, init <= {SMALLISH:g}: the boundary of the {side} phase is the predicted one "
                "(measured: the largest gap in p)",
                THEORY,
                Expected(max=0.05),
                float(known.max()),
                n=len(known),
                because="the prediction ends when the first cluster is fitted, and with unequal counts the "
                "others follow while its pull fades"
                if kind == "drawn"
                else "",
            )


def radii(data: xr.Dataset, config: Transition, bench: Bench) -> Iterator[Claim]:
    """The radius that each phase has."""
    learned = data.share.sel(counts="equal").isel(seed=0) >= SHARE
    attacked = data.radius
    for side, value, text in (
        ("average", 1 / math.sqrt(config.K), "1/sqrt(K)"),
        ("centres", math.sqrt(0.5), "sqrt(2)/2"),
    ):
        found = attacked.values[learned.sel(side=side).values]
        if len(found):
            yield bench.judge(
                f"radius.{side}",
                f"where the {side} phase is, the robust radius of a centre is {text} (measured: the median)",
                WHERE,
                Expected(value=value, tolerance=0.02 * value),
                float(np.median(found)),
                spread=half_range(found),
                n=len(found),
            )


def fitting(data: xr.Dataset, config: Transition, bench: Bench) -> list[Claim]:
    """The p-bar of Conjecture 1: no p fails to fit, and the time is the predicted one."""
    gap = np.abs(data.time - data.predicted_time)
    return [
        share_of(
            data.fitted,
            "p-bar",
            f"training fits at every p up to {max(config.fit_p):g}, D in {list(config.fit_dims)}: no p-bar met",
            "min2024, Conjecture 1",
            bench,
        ),
        bench.judge(
            "time",
            "the time to fit is the predicted one (measured: the largest gap in log10)",
            THEORY,
            Expected(max=0.1),
            float(gap.max()),
            n=int(gap.size),
        ),
    ]


def half_range(values: xr.DataArray | np.ndarray) -> float:
    """Half of max - min."""
    return float(np.ptp(np.asarray(values)) / 2)
