"""What is claimed of the critical p: the poster's words elsewhere, the rise, the controls, the error of the law.

The poster speaks of a balanced mixture. `control.equal` has one, and the poster's words are judged there. With
unequal counts (`poster.INIT`) they are a prediction of ours: that the words carry over.

Everything is said of min(p, 8), measured and predicted: a training that has learned no centres at p = 8 counts
as 8. It is a bounded number that every cell has, so that an unlucky start widens an interval and silences
nothing. Of the p itself it is a lower bound; `law.most` counts the cells instead, so that it does not depend on
where p is cut.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.lab import Bench, Claim, Expected, Judge, Part
from tacit.measure import proportion
from tacit.papers._shared.universal import MOST, MOST_BAR
from tacit.papers.min2025.limits.settings import LARGEST, Limits
from tacit.papers.min2025.transition.claims import TURNS, located, of_mean

SETS = "data sets"
FROM_2 = Expected(max=2.0, tolerance=0.1)
FLAT = Expected(max=0.0, tolerance=0.1)
TENTH = "ours: a tenth in p, six times the resolution at laptop scale"
CARRIED = f"{TENTH}; predicted: the poster's words carry over to unequal counts"
TIMES = "ours: a time that is off by half moves p by log(1.5)/log(1/sigma), a tenth to 0.15 here"
FAR = 0.3
LOOSE = "ours: twice the bar of the mean, for a single setting"
NINE = "ours: nine in ten cells, each within twice the bar of the mean"
CUT = f"a p above {LARGEST:g} counts as {LARGEST:g}"
SAMPLED = "sampled points differ in their means, so that equal counts leave a lag of the order sigma/sqrt(n)"


def claims(data: xr.Dataset, config: Limits, bench: Bench) -> Iterator[Claim]:
    """All of them."""
    counts = f"the poor cluster of each class has {config.ratio:g} of the points of the others"
    outside = f"outside: the poster's mixture is balanced; here {counts}, n = {config.n}"
    judge = bench.claims("Poster, Observations", source="words", bar=TENTH, regime=outside)
    our_judge = judge.but(where="Beyond the poster (docs/guide/limits.md)", source="ours")
    yield from poster(data, our_judge)
    yield from rises(data, config, our_judge)
    yield from controls(data, config, judge, our_judge)
    yield from errors(data, our_judge)
    fits = proportion(int(data.fitted.sum()), int(data.tried.sum()), over="trainings")
    text = "training fits (share of all trainings of the bisections)"
    yield our_judge("fitted", text, MOST, fits, source="check", bar=MOST_BAR)


def poster(data: xr.Dataset, judge: Judge) -> Iterator[Claim]:
    """The poster's words carried over to unequal counts, at each init and noise: centres from p = 2 on."""
    judge = judge.but(bar=CARRIED)
    noisy = data.sel(setting=data.role == "noise")
    for init in noisy.init.values:
        at = noisy.p.sel(init=init)
        text = (
            f"noise and unequal counts, init {init:g}: p > 2 learns the centres, as with equal ones"
        )
        yield family(judge, f"poster.{init:g}", text, at, FROM_2, data.resolution, TURNS)


def rises(data: xr.Dataset, config: Limits, judge: Judge) -> Iterator[Claim]:
    """At each noise: the least step of the critical p from one init to the next smaller one is above 0."""
    noisy = data.p.sel(setting=data.role == "noise").sortby("init", ascending=False)
    steps = noisy.diff("init").min("init")
    derived = judge.but(bar="derived: the lag grows as log(1/init), and f falls as p grows")
    for alpha, at in zip(config.alpha, steps, strict=True):
        text = (
            f"alpha = {alpha:g}, unequal counts: the critical p rises from each init to the next smaller one "
            "(mean over data sets of the least step)"
        )
        up, half = Expected(min=0.0), 2 * data.resolution
        yield of_mean(derived, f"rises.{alpha:g}", text, up, at, half, SETS)


def controls(data: xr.Dataset, config: Limits, judge: Judge, our_judge: Judge) -> Iterator[Claim]:
    """Without noise, and with equal counts: no rise from the largest init to the smallest, and p = 2 there."""
    small, large = min(config.init), max(config.init)
    still = our_judge.but(
        regime="outside: unequal counts; without noise, as in the poster's picture"
    )
    equal = judge.but(
        regime=f"inside: as many points in each cluster, alpha = {config.equal_alpha:g}, n = {config.n}"
    )
    for role, who, words in (
        ("still", still, "without noise"),
        ("equal", equal, "with noise and equal counts"),
    ):
        at = data.p.sel(setting=data.role == role).isel(setting=0)
        last, rise = at.sel(init=small), at.sel(init=small) - at.sel(init=large)
        text = f"{words} the critical p does not rise: init {small:g} learns centres from p = 2 on"
        parts = [
            Part("p", f"critical p at init {small:g}", FROM_2, located(last, data.resolution, 2, SETS)),
            Part("rise", f"its rise from init {large:g}", FLAT, located(rise, 2 * data.resolution, 2, SETS)),
        ]  # fmt: skip
        yield who.family(f"control.{role}", text, parts, because=SAMPLED if role == "equal" else "")


def errors(data: xr.Dataset, judge: Judge) -> Iterator[Claim]:
    """How far the prediction is off at settings that nothing was looked at."""
    unseen = data.sel(setting=data.role == "unseen")
    if not unseen.sizes["setting"]:
        return
    judge = judge.but(
        regime="outside: unequal counts, other K, noise, counts and n than the law was tried on"
    )
    gap = np.abs(unseen.p - predicted(unseen))
    text = (
        "unseen settings: on given points the critical p is the predicted one (mean over data sets of the mean "
        f"gap in p over settings and inits; {CUT})"
    )
    near, cells = Expected(max=0.15), ("setting", "init")
    half = data.resolution
    yield of_mean(judge.but(bar=TIMES), "law.unseen", text, near, gap.mean(cells), half, SETS)
    text = (
        f"unseen settings: the critical p is within {FAR:g} of the predicted one (mean over data sets of the "
        "share of settings and inits)"
    )
    share = (gap <= FAR).mean(cells)
    cell = xr.DataArray(1 / (unseen.sizes["setting"] * unseen.sizes["init"]))
    yield of_mean(judge.but(bar=NINE), "law.most", text, Expected(min=0.9), share, cell, SETS)
    text = f"in each unseen setting the critical p is the predicted one (mean gap in p over inits; {CUT})"
    yield family(judge.but(bar=LOOSE), "law.each", text, gap.mean("init"), Expected(max=FAR), half)
    text = (
        "unseen settings: the law before any point is drawn, init >= f(p, noise, imbalance), is right on "
        f"average (mean over data sets of the mean of measured minus predicted p; {CUT})"
    )
    ahead = np.maximum(unseen.law_p, unseen.aligned_p)
    zero = Expected(value=0.0, tolerance=0.15)
    signed = (unseen.p - ahead).mean(cells)
    yield of_mean(judge.but(bar=TIMES), "law.before", text, zero, signed, half, SETS)


def predicted(data: xr.Dataset) -> xr.DataArray:
    """The larger of the two predictions on given points and starts."""
    return np.maximum(data.turning_p, data.aligned_p)


def family(
    judge: Judge, id: str, text: str, at: xr.DataArray, expected: Expected, half: xr.DataArray, because: str = ""
) -> Claim:  # fmt: skip
    """One verdict on the means over seeds of all settings."""
    names = [str(name) for name in at.setting.values]
    parts = [
        Part(name, name, expected, located(at.sel(setting=name), half, len(names), SETS))
        for name in names
    ]
    return judge.family(id, text, parts, because=because)
