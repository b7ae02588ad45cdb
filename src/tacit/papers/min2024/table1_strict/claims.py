"""The claims of `table1_strict`: how much of the gain in robustness a stronger attack takes away.

A tenth of the gain, two hundredths of accuracy and one point in a hundred were written down before the first run,
as sizes below which nobody would read Table 1 otherwise. Signs of masked gradients are Athalye et al.'s (2018).
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import xarray as xr

from tacit.base.estimate import Certain, Estimate, least, most
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.papers._shared.crossed import Floats, crossed
from tacit.papers.min2024.images.settings import regime_of
from tacit.papers.min2024.table1_strict.attacks import ATTACKS, NORMS
from tacit.papers.min2024.table1_strict.settings import Strict

ARTEFACT = 0.1  # of the gain
OVERSTATED = 0.02  # of accuracy
RARE = 0.01
MIDDLE = (0.05, 0.95)  # where an accuracy can still differ
LEAST_GAIN = 0.1  # a share of less than this is a share of noise
TINY = 1e-12  # gradients shorter than this are lost in code that adds 1e-12 to the length it divides by
SHARE = (0.0, 1.0)


def claims(data: xr.Dataset, config: Strict, bench: Bench) -> Iterator[Claim]:
    """The answer, then the tests for masked gradients, then what is proved; N test points could be attacked."""
    regime, N = regime_of(config, classes=10), data.attrs["test_points"]
    bar = "ours: less would change nobody's reading of Table 1"
    where = "Appendix B, Table 1, re-examined"
    judge = bench.claims(where, source="ours", bar=bar, regime=regime)
    yield from artefact(data, judge, N)
    yield from masked(data, config, judge.but(where="Athalye et al. 2018, Section 3.1"), N)
    yield from without_radius(data, judge, N)
    yield from proved(data.isel(row=np.isin(data.norm, config.proofs)), judge, N)


def by_point(values: xr.DataArray, *first: str) -> Floats:
    """As floats, seeds and points last."""
    found: Floats = values.transpose(*first, "seed", "point").values.astype(np.float64)
    return found


def gain_of(accuracy: xr.DataArray) -> xr.DataArray:
    """What the largest p has more than the smallest, mean over seeds."""
    return (accuracy.isel(p=-1) - accuracy.isel(p=0)).mean("seed")


def artefact(data: xr.Dataset, judge: Judge, N: int) -> Iterator[Claim]:
    """The answer: what stronger attacks take from the gain and from each accuracy, and whether the order stays.

    The part taken, a ratio r = L/G of means over points, varies as the mean of (l_i - r g_i)/G does.
    """
    shown, kept = data.broken.sel(attack="paper") == 0, data.kept == 1
    lost = shown.astype(np.float64) - kept
    first, last = (f"p = {float(data.p[k]):g}" for k in (0, -1))
    for kind in NORMS:
        here = (data.norm == kind).values
        both = (each.isel(row=here).astype(float).mean("row") for each in (lost, shown))
        taken, gain = (each[-1] - each[0] for each in (by_point(one, "p") for one in both))
        G, id, expected = float(gain.mean()), f"artefact.{kind}", Expected(max=ARTEFACT)
        text = f"in {kind} stronger attacks take at most a tenth of the gain from {first} to {last} (the part)"
        if G >= LEAST_GAIN:
            r = float(taken.mean()) / G
            part = crossed(r + (taken - r * gain) / G, N, ends=(r - 1 / G, r + 1 / G))
            yield judge(id, text, expected, part)
        else:
            reason = f"the paper's attack shows a gain of {G:.3f}: a part of less than {LEAST_GAIN:g} is noise"
            yield judge.cannot(id, text, expected, reason)
    pairs = [pair for row in by_point(kept, "row", "p") for pair in pairwise(row)]
    pairs = [pair for pair in pairs if MIDDLE[0] < np.mean(pair) < MIDDLE[1]]
    text = "in the worst case over all attacks each p is more robust than the one before, at every radius where"
    text += f" the two keep between {MIDDLE[0]:g} and {MIDDLE[1]:g} of the points (the least gain)"
    order_judge = judge.but(source="order", bar="paper: each row of the table grows with p")
    zero, reason = Expected(min=0.0), "no two neighbouring p do at any radius"
    if pairs:
        found = least(crossed(high - low, N, of=len(pairs)) for low, high in pairs)
        yield order_judge("order", text, zero, found)
    else:
        yield order_judge.cannot("order", text, zero, reason)
    cells = [cell for row in by_point(lost, "row", "p") for cell in row]
    text = "the paper's attack overstates robust accuracy by at most .02 at any p and radius (the largest)"
    found = most(crossed(cell, N, ends=SHARE, of=len(cells)) for cell in cells)
    yield judge("overstated", text, Expected(max=OVERSTATED), found)
    mean = by_point(lost.mean("row"), "p")
    text = f"it overstates that of {last} by more than that of {first} (mean over norms and radii)"
    more = crossed(mean[-1] - mean[0], N)
    yield judge("overstated.grows", text, zero, more, bar="ours: more is more")


def masked(data: xr.Dataset, config: Strict, judge: Judge, N: int) -> Iterator[Claim]:
    """Signs of masked gradients, none of which should be seen: means over norms and radii, at the worst p."""

    def over_p(values: xr.DataArray, ends: tuple[float, float] = (-1.0, 1.0)) -> list[Estimate]:
        each = by_point(values, "p")
        return [crossed(one, N, ends=ends, of=len(each)) for one in each]

    def left_by(name: str) -> xr.DataArray:
        return (data.broken.sel(attack=name) == 0).astype(np.float64)

    few = {"row": (data.norm != "l1").values, "point": slice(0, config.few)}
    own, others = left_by("paper").mean("row"), (data.transferred == 0).where(data.source != data.p)
    far = f"linf {config.far_linf:g}, l2 {config.far_l2:g} and l1 {config.far_l1:g}"
    more = (  # of which there should be more than none
        ("queries", "gradients break more points than queries alone (the least difference)",
         (left_by("square") - data.kept_by_gradients).isel(few).mean("row")),
        ("transfer", "perturbations made for nets of other p break fewer points than a net's own (the least)",
         others.mean(("source", "row")) - own),
    )  # fmt: skip
    bar = "derived: the opposite is the sign"
    for id, text, values in more:
        yield judge(f"masked.{id}", text, Expected(min=0.0), least(over_p(values)), bar=bar)
    rare = (
        ("far", f"at {far} the paper's attack leaves nothing", data.far.mean("kind"), SHARE),
        ("steps", f"{config.more_steps} steps break hardly a point more than {config.steps}",
         own - left_by("steps").mean("row"), (-1.0, 1.0)),
        ("slope", "the gradient is not lost in float32, shorter than 1e-12", data.slope < TINY, SHARE),
    )  # fmt: skip
    bar = "ours: one point in a hundred"
    for id, text, values, ends in rare:
        found, text = most(over_p(values, ends)), f"{text} (the largest share of points)"
        yield judge(f"masked.{id}", text, Expected(max=RARE), found, bar=bar)


def without_radius(data: xr.Dataset, judge: Judge, N: int) -> Iterator[Claim]:
    """Shortest perturbations: an attack without a radius."""
    half, bar = Expected(min=0.5), "ours: most is more than half"
    for kind in ("linf", "l2"):
        found = data.minimal.sel(kind=kind).transpose("p", "seed", "few").values
        steps = list(pairwise(found))
        longer = [crossed(high > low, N, ends=SHARE, of=len(steps)) for low, high in steps]
        text = f"of most points the shortest {kind} perturbation found is longer at each p than at the one before"
        yield judge(f"minimal.{kind}", f"{text} (the least share)", half, least(longer), bar=bar)


def proved(data: xr.Dataset, judge: Judge, N: int) -> Iterator[Claim]:
    """What certificates say, on few points: intervals may be wide."""
    few, first, last = data.sizes["sure"], *(f"p = {float(data.p[k]):g}" for k in (0, -1))
    kept = data.kept.isel(point=slice(0, few)).rename(point="sure")
    both = float(((data.proved == 1) & (kept == 0)).sum())
    wrong = Certain(both, "a proof excludes an attack", data.proved.size)
    text = f"no point that is proved was broken by any of the {len(ATTACKS)} attacks (points)"
    none, bar = Expected(value=0.0), "derived: a proof"
    yield judge("proved.sound", text, none, wrong, source="check", bar=bar, any_size=True)
    surely = (data.proved.isel(p=-1) - kept.isel(p=0)).rename(sure="point")
    gains = [crossed(each, N, of=len(data.row)) for each in by_point(surely, "row")]
    text = f"at some radius more points of {last} are proved than all attacks leave of {first} (the difference)"
    if gains:
        yield judge("proved.gain", text, Expected(min=0.0), most(gains), bar="ours: more")
    radius = data.proved_radius.sel(kind="l2").transpose("p", "seed", "sure")
    text = f"of most points the certified l2 radius is larger at {last} than at {first} (the share)"
    if bool(radius.notnull().all()):
        found = crossed((radius[-1] > radius[0]).values, N, ends=SHARE)
        bar = "ours: most is more than half"
        yield judge("proved.radius", text, Expected(min=0.5), found, bar=bar)
    else:
        reason = "no point was certified in l2: give it with --set proofs=l2"
        yield judge.cannot("proved.radius", text, Expected(min=0.5), reason)
