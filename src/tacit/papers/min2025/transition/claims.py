"""The claims of `min2025.transition`: the poster's, and the predicted boundaries next to the measured ones.

What varies from start to start is a share of independent starts, or a mean over them; where a claim is about a
sweep, each start counts with its largest gap. A boundary is known to half of its last bracket, which widens the
interval.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import xarray as xr

from tacit.lab import Bench, Claim, Expected, Judge, Part
from tacit.measure import Estimate, mean_of, proportion
from tacit.papers.min2025.transition.settings import Transition

SHARE = 0.95
SMALLISH = 1e-3  # from here down the prediction is meant to hold
ALL, MOST = Expected(min=0.9), Expected(min=0.5)
NINE = "ours: nine starts in ten, of what is said of all"
TENTH = "ours: a tenth in p, three times the resolution"
TURNS = "neurons of a cluster fitted early turn to a late one before its own have grown"
FADES = (
    "the prediction ends when the first cluster is fitted, and others follow while its pull fades"
)
SETS = "data sets"


def claims(data: xr.Dataset, config: Transition, bench: Bench) -> Iterator[Claim]:
    """All of them."""
    still = f"inside: alpha = 0, as in the poster's illustration; K = {config.K}, h = {config.h}"
    judge = bench.claims("Poster, Observations", source="words", bar=NINE, regime=still)
    our_judge = judge.but(where="Beyond the poster (alignment phase in closed form)", source="ours")
    yield from phases(data, config, judge, our_judge)
    yield from boundaries(data, config, our_judge)
    yield from radii(data, config, judge)
    few = f"outside: n = {config.noisy_n}, D = {config.noisy_dim}; Conjecture 1 asks for enough points"
    yield from noise(data, judge.but(bar=TENTH, regime=few))
    gap = mean_of(np.abs(data.time - data.predicted_time).max(("D", "fit_p")), over="starts")
    text = "the time to fit is the predicted one (mean over starts of the largest gap in log10)"
    yield our_judge("time", text, Expected(max=0.1), gap, bar="ours: a quarter more or less")


def phases(data: xr.Dataset, config: Transition, judge: Judge, our_judge: Judge) -> Iterator[Claim]:
    """What is learned from a small init, as a share of independent starts; a large init learns neither."""
    for p in config.share_p:
        side, what = ("average", "class averages") if p < 2 else ("centres", "cluster centres")
        text = f"p = {p:g}, init {config.cut_init:g}: neurons learn the {what} (share of starts)"
        learned = data.share_again.sel(share_p=p, side=side) >= SHARE
        yield judge(f"{side}.{p:g}", text, ALL, passed(learned))
    if 1 in config.init:
        lazy = passed((data.share.sel(init=1) < SHARE).all(("side", "p")))
        text = "init 1: neurons learn neither averages nor centres, at any p (share of starts)"
        yield our_judge("lazy", text, MOST, lazy, where="Beyond the poster (lazy training)",
                   bar="ours: more often than not")  # fmt: skip
    fits = passed(data.arrived.all("p"))
    yield our_judge(
        "arrived", "training fits at every p (share of starts)", ALL, fits, source="check"
    )


def boundaries(data: xr.Dataset, config: Transition, judge: Judge) -> Iterator[Claim]:
    """Where centres begin at the smallest init, and the flow's boundaries next to the predicted ones."""
    judge = judge.but(bar="ours: half a tenth in p, four to sixteen times the resolution")
    for kind in data.counts.values:
        at = data.sel(counts=kind, side="centres", init=min(config.init))
        text = f"{kind} counts, init {min(config.init):g}: centres are learned from p = 2 on"
        begins = located(at.boundary, at.resolution)
        yield judge(f"limit.{kind}", text, Expected(value=2.0, tolerance=0.05), begins)
    small = data.sel(init=data.init[data.init <= SMALLISH])
    for side, kind in itertools.product(data.side.values, data.counts.values):
        at = small.sel(side=side, counts=kind)
        gap = np.abs(at.boundary - at.predicted_boundary).max("init")
        if np.isfinite(gap).any():
            found = located(gap, at.resolution + at.predicted_resolution).away_from(0.0)
            text = (f"{kind} counts, init <= {SMALLISH:g}: the boundary of the {side} phase is the predicted one "
                    "(mean over starts of the largest gap in p)")  # fmt: skip
            yield judge(f"predicted.{side}.{kind}", text, Expected(max=0.05), found,
                        because=FADES if kind == "drawn" else "")  # fmt: skip


def radii(data: xr.Dataset, config: Transition, judge: Judge) -> Iterator[Claim]:
    """The radius that each phase has: for each init its mean over the p of the phase, from a start of its own."""
    judge = judge.but(where="Poster, Theorems", bar="ours: two percent of the radius")
    learned = data.share.sel(counts="equal").isel(seed=0) >= SHARE
    edge, best = 1 / math.sqrt(config.K), math.sqrt(0.5)
    for side, value, name in (("average", edge, "1/sqrt(K)"), ("centres", best, "sqrt(2)/2")):
        found = data.radius.where(learned.sel(side=side)).mean("p").values
        found = found[np.isfinite(found)]
        text = (
            f"where the {side} phase is, the robust radius of a centre is {name} (mean over starts)"
        )
        if len(found):
            near = Expected(value=value, tolerance=0.02 * value)
            yield judge(f"radius.{side}", text, near, mean_of(found, over="starts"))


def noise(data: xr.Dataset, judge: Judge) -> Iterator[Claim]:
    """With noise: whether centres begin at 2, or at a p that rises as the init shrinks, and its estimate."""
    at, half = data.noisy_boundary.sortby("noisy_init", ascending=False), data.noisy_resolution
    for kind in data.counts.values:
        cells = at.sel(counts=kind).stack(cell=("alpha", "noisy_init"))
        parts = []
        for alpha, init in cells.cell.values:
            begins = located(cells.sel(cell=(alpha, init)), half, cells.sizes["cell"], SETS)
            name = f"alpha = {alpha:g}, init {init:g}"
            parts.append(Part(name, f"{name}: p", Expected(max=2.0, tolerance=0.1), begins))
        text = f"with noise and {kind} counts, centres are learned from p = 2 on"
        yield judge.family(f"noise.{kind}", text, parts, because=TURNS)
    our_judge = judge.but(where="Beyond the poster (turning before the lag is over)", source="ours")
    steps = at.sel(counts="drawn").diff("noisy_init")
    if steps.size:
        rise = located(steps.min(("noisy_init", "alpha")), 2 * half, over=SETS)
        text = "with noise and drawn counts the boundary rises as the init shrinks (mean of the least step in p)"
        yield our_judge(
            "noise.rises", text, Expected(min=0.0), rise, bar="derived: the lag is ~ log(1/init)"
        )
    gaps = np.abs(data.noisy_boundary - data.estimated_boundary)
    gap = located(gaps.max(("alpha", "counts", "noisy_init")), half, over=SETS).away_from(0.0)
    text = ("with noise, centres are learned from the p on at which turning takes as long as the lag "
            "(mean over data sets of the largest gap in p)")  # fmt: skip
    yield our_judge("noise.estimated", text, Expected(max=0.3), gap,
               bar="ours: the estimate leaves out factors of order 1 in both times; no derivation")  # fmt: skip


def passed(each: xr.DataArray) -> Estimate:
    """The share of starts that passed."""
    return proportion(int(each.sum()), int(each.size), over="starts")


def located(each: xr.DataArray, half: xr.DataArray, of: int = 1, over: str = "starts") -> Estimate:
    """The mean of what is finite; its interval is wider on either side by the most that bisection leaves open."""
    known, left = each.values[np.isfinite(each.values)], float(half.max())
    found = mean_of(known if len(known) else math.nan, of=of, over=over)
    return replace(found, low=found.low - left, high=found.high + left)
