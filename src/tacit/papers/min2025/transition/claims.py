"""The claims of `min2025.transition`: the poster's, and the predicted boundaries next to the measured ones.

What varies from start to start is a share of independent starts, or a mean over them; where a claim is about a
sweep, each start counts with its largest gap. A boundary is known to half of its last bracket, which widens the
interval; where a start has none, the mean over starts does not exist and nothing is judged.
"""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import xarray as xr
from scipy.stats import t

from tacit.lab import Bench, Claim, Expected, Judge, Part
from tacit.measure import Estimate, mean_of, proportion
from tacit.papers._shared.fits import listed
from tacit.papers._shared.universal import MOST, MOST_BAR, NINE
from tacit.papers.min2025.transition.settings import Transition

SHARE = 0.95
SMALLISH = 1e-3  # from here down the prediction is meant to hold
ALL = Expected(min=0.9)
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
        kinds = [(str(kind), learned.sel(counts=kind)) for kind in learned.counts.values]
        parts = [Part(k, f"{k} counts", ALL, passed(each, len(kinds))) for k, each in kinds]
        yield judge.family(f"{side}.{p:g}", text, parts)
    if 1 in config.init:
        lazy = passed((data.share.sel(init=1) < SHARE).all(("side", "p")))
        text = "init 1: neurons learn neither averages nor centres, at any p (share of starts)"
        yield our_judge("lazy", text, MOST, lazy, where="Beyond the poster (lazy training)",
                   bar="ours: more often than not")  # fmt: skip
    fits = passed(data.arrived.all("p"))
    text = "training fits at every p (share of starts)"
    yield our_judge("arrived", text, MOST, fits, source="check", bar=MOST_BAR)


def boundaries(data: xr.Dataset, config: Transition, judge: Judge) -> Iterator[Claim]:
    """Where centres begin at the smallest init, and the flow's boundaries next to the predicted ones."""
    judge = judge.but(bar="ours: half a tenth in p, four to sixteen times the resolution")
    for kind in data.counts.values:
        at = data.sel(counts=kind, side="centres", init=min(config.init))
        text = f"{kind} counts, init {min(config.init):g}: centres are learned from p = 2 on"
        near = Expected(value=2.0, tolerance=0.05)
        yield of_mean(judge, f"limit.{kind}", text, near, at.boundary, at.resolution)
    small = data.sel(init=data.init[data.init <= SMALLISH])
    for side, kind in itertools.product(data.side.values, data.counts.values):
        at = small.sel(side=side, counts=kind)
        alike = at.boundary.isnull() & at.predicted_boundary.isnull()  # no such phase, as predicted
        gap = (
            np.abs(at.boundary - at.predicted_boundary).where(~alike, 0.0).max("init", skipna=False)
        )
        text = (f"{kind} counts, init <= {SMALLISH:g}: the boundary of the {side} phase is the predicted one "
                "(mean over starts of the largest gap in p)")  # fmt: skip
        half, why = at.resolution + at.predicted_resolution, FADES if kind == "drawn" else ""
        id = f"predicted.{side}.{kind}"
        yield of_mean(judge, id, text, Expected(max=0.05), gap, half, because=why)


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
        text = f"with noise and {kind} counts, centres are learned from p = 2 on"
        at_2, worst = Expected(max=2.0, tolerance=0.1), cells.max("cell", skipna=False)
        if worst.isnull().any():
            yield of_mean(judge, f"noise.{kind}", text, at_2, worst, half, SETS)
            continue
        parts = []
        for alpha, init in cells.cell.values:
            begins = located(cells.sel(cell=(alpha, init)), half, cells.sizes["cell"], SETS)
            name = f"alpha = {alpha:g}, init {init:g}"
            parts.append(Part(name, f"{name}: p", at_2, begins))
        yield judge.family(f"noise.{kind}", text, parts, because=TURNS)
    our_judge = judge.but(where="Beyond the poster (turning before the lag is over)", source="ours")
    steps = at.sel(counts="drawn").diff("noisy_init")
    if steps.size:
        rise = steps.min(("noisy_init", "alpha"), skipna=False)
        text = "with noise and drawn counts the boundary rises as the init shrinks (mean of the least step in p)"
        rise_judge = our_judge.but(bar="derived: the lag is ~ log(1/init)")
        yield of_mean(rise_judge, "noise.rises", text, Expected(min=0.0), rise, 2 * half, SETS)
    gaps = np.abs(data.noisy_boundary - data.estimated_boundary)
    gap = gaps.max(("alpha", "counts", "noisy_init"), skipna=False)
    text = ("with noise, centres are learned from the p on at which turning takes as long as the lag "
            "(mean over data sets of the largest gap in p)")  # fmt: skip
    bar = "ours: the estimate leaves out factors of order 1 in both times; no derivation"
    yield of_mean(
        our_judge.but(bar=bar), "noise.estimated", text, Expected(max=0.3), gap, half, SETS
    )


def passed(each: xr.DataArray, of: int = 1) -> Estimate:
    """The share of starts that passed."""
    return proportion(int(each.sum()), int(each.size), of=of, over="starts")


def of_mean(
    judge: Judge, id: str, text: str, expected: Expected, each: xr.DataArray, half: xr.DataArray,
    over: str = "starts", because: str = "",
) -> Claim:  # fmt: skip
    """The claim about the mean of `each`, one for each seed; where some have none, it names them."""
    none = listed(each[each.dims[0]].values[each.isnull().values].tolist())
    if none:
        why = f"no boundary between the p that were run, for {over} of seed {none} of {each.size}"
        return judge.cannot(id, text, expected, why)
    return judge(id, text, expected, located(each, half, over=over), because=because)


def located(each: xr.DataArray, half: xr.DataArray, of: int = 1, over: str = "starts") -> Estimate:
    """The mean with Student's interval, wider on either side by the most that bisection leaves open.

    Values on a grid can agree by chance: their spread is taken to be no less than what is left open.
    """
    value, n, left = float(each.mean()), each.size, float(half.max())
    reach = math.inf
    if n > 1:
        spread = max(float(each.std(ddof=1)), left)
        reach = float(t.ppf(1 - 0.025 / of, n - 1)) * spread / math.sqrt(n) + left
    return Estimate(value, value - reach, value + reach, n, over, left)
