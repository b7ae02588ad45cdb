"""The claims of Figures 3, 4 and 6, and the estimate over points and seeds that Table 1 has, too.

Where a word of the paper (large, small, much) needs a number to be judged, number and verdict are our own.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.stats import t as student

from tacit.base.estimate import Estimate, least, most
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of
from tacit.papers._shared.crossed import Floats, crossed, spared_by
from tacit.papers._shared.fits import listed
from tacit.papers.min2024.fig3.digits import digit_claims
from tacit.papers.min2024.fig3.raw import raw_claims
from tacit.papers.min2024.fig3.settings import Curves
from tacit.papers.min2024.images.nets import unbroken
from tacit.papers.min2024.images.settings import ImageNets, regime_of

LARGE, SMALL = 0.5, 0.1  # of correlations, what Cohen (1988) calls so
MIDDLE = (0.1, 0.9)  # a robust accuracy between these is neither near 0 nor near 1
MUCH = 2.0  # "much larger": at least twice as large
MANY = 0.2  # "much more robust": on a fifth of all points


def sampling_error(share: Any, n: int, N: float) -> Any:
    """The 95% half-width of a share (a number or an array) of n of N points, for figures."""
    return 1.96 * np.sqrt(share * (1 - share) * spared_by(n, N) / n)


def gains(
    left: xr.DataArray, radii: Sequence[float], ends: tuple[float, float], N: float, *, of: int = 1
) -> list[Estimate]:
    """Robust accuracy at the one p less that at the other, at each radius: from `outlived` (p, seed, point)."""
    low, high = (
        unbroken(left.sel(p=p), radii).transpose("radius", "seed", "point").values for p in ends
    )
    return [crossed(each, N, of=of) for each in high.astype(np.float64) - low]


def other_data(config: ImageNets, bench: Bench) -> str | None:
    """What to tell where the images are not the paper's."""
    if config.dataset == "mnist" or bench.smoke:
        return None
    return f"dataset={config.dataset}: the paper has MNIST; only what it says in words can be judged here"


def setting_of(config: ImageNets) -> str:
    """What a figure is of, as its title says it."""
    return f"{config.dataset}, {config.classes} classes, {config.epochs} epochs, layer as {config.layer}"


def curve_claims(data: xr.Dataset, config: Curves, bench: Bench) -> Iterator[Claim]:
    """Of Figure 3 (parity) or 6 (digits), which shows the same map, and of whose accuracy no word is said."""
    parity = config.classes == 2
    where = "Section 5.2.1, Figure 3" if parity else "Appendix B, Figure 6"
    regime = regime_of(config, classes=2 if parity else 10)
    judge = bench.claims(where, source="words", bar="paper: larger is larger", regime=regime)
    same_as = "" if parity else "min2024.fig3"
    own = "inside: MNIST as it is" if config.dataset == "mnist" else regime
    yield from correlation_claims(data, judge.but(regime=own), "digit", same_as)
    if parity and 1.0 in config.p:
        end = data.test_accuracy.isel(epoch=-1)
        edges = {p: (end.sel(p=p) - end.sel(p=1.0)).values for p in sorted(config.p)[1:]}
        found = {p: mean_of(edge, of=len(edges)) for p, edge in edges.items()}
        yield from clean_claim(found, judge)
    yield from rank_claims(data, config.p, judge)
    yield from robust_claims(data, config.p, config.radius, judge, data.attrs["test_points"])
    if parity and "at_digit" in data:
        yield from digit_claims(data, judge)
    if parity and "raw_accuracy" in data:
        yield from raw_claims(data, config, judge)


def correlation_claims(
    data: xr.Dataset, judge: Judge, kind: str, same_as: str = ""
) -> Iterator[Claim]:
    """(a): points of one kind lie together, those of two are nearly orthogonal or opposed.

    The mean over pairs is a U-statistic: with h(i) that over the pairs of point i, it varies as the mean of the
    2 h(i) does (Hoeffding 1948).
    """
    label, cosine = data.label.values, data.correlation.values
    one, self = label[:, None] == label, np.eye(len(label), dtype=bool)

    def over(pairs: Floats, values: Floats) -> Estimate:
        each = (values * pairs).sum(1) / pairs.sum(1)
        return mean_of(2 * each - each.mean(), over="points")

    judge, several = (
        judge.but(where=f"{judge.where} (a)"),
        {"class": "classes"}.get(kind, f"{kind}s"),
    )
    same, rows = over(one & ~self, cosine), []
    text = (
        f"two points of one {kind} are likely to have a positive correlation (the share of pairs)"
    )
    bar = "ours: likely is more often than not"
    rows.append(("same", text, Expected(min=0.5), over(one & ~self, cosine > 0), bar))
    text = f"the correlation of two points of one {kind} is large (the mean over pairs)"
    bar = f"ours: Cohen (1988) calls a correlation of {LARGE:g} large"
    if kind == "digit":  # of Figure 4 the paper says no more than that classes are clustered
        rows.append(("large", text, Expected(min=LARGE), same, bar))
    text = f"two points of different {several} have a small or negative correlation (the mean over pairs)"
    bar = f"ours: Cohen (1988) calls a correlation of {SMALL:g} small"
    rows.append(("other", text, Expected(max=SMALL), over(~one, cosine), bar))
    # the mean over all pairs of centred points is nearly 0 in any world: this one could fail for every two kinds
    text = f"points of each {kind} are more correlated with each other than with those of any other (the least "
    text += f"difference of means over ordered pairs of {several})"
    rows.append(("apart", text, Expected(min=0.0), apart_least(label, cosine), "ours: the sign"))
    for id, text, expected, found, bar in rows:
        repeated, source = (
            same_as and f"{same_as}:correlation.{id}",
            "words" if id == "same" else "ours",
        )
        id = f"correlation.{id}"
        yield judge(id, text, expected, found, source=source, bar=bar, same_as=repeated)


def apart_least(label: npt.NDArray[Any], cosine: Floats) -> Estimate:
    """The least, over ordered pairs of kinds a and b, of the mean cosine within a less that of a with b.

    Let m(i, b) be the mean cosine of point i with the other points of b. The difference is the mean over a of
    m(i, a) - m(i, b), and varies as that of 2 m(i, a) - m(i, b) less that of m(j, a) over b (Hoeffding 1948).
    """
    kinds, of_kind = np.unique(label, return_inverse=True)
    members = np.eye(len(kinds))[of_kind]
    count = members.sum(0)
    own = members * np.diagonal(cosine)[:, None]  # a point is no pair with itself
    means = (cosine @ members - own) / (count - members)
    least_count, pairs = int(count.min()), len(kinds) * (len(kinds) - 1)
    wide = float(student.ppf(1 - 0.025 / pairs, least_count - 1))
    found = []
    for a, b in itertools.permutations(range(len(kinds)), 2):
        of_a, of_b = means[of_kind == a], means[of_kind == b]
        value = float((of_a[:, a] - of_a[:, b]).mean())
        square = (2 * of_a[:, a] - of_a[:, b]).var(ddof=1) / len(of_a)
        half = wide * math.sqrt(square + of_b[:, a].var(ddof=1) / len(of_b))
        found.append(Estimate(value, value - half, value + half, len(label), "points"))
    return least(found)


def clean_claim(edges: dict[float, Estimate], judge: Judge) -> Iterator[Claim]:
    """(b): p > 1 gains clean accuracy."""
    text = f"p = {listed(edges)} has a higher test accuracy than ReLU (the least difference)"
    if edges:
        where, bar = f"{judge.where} (b)", "paper: an edge, a higher accuracy"
        yield judge("clean", text, Expected(min=0.0), least(edges.values()), where=where, bar=bar)


def rank_claims(
    data: xr.Dataset, p: Sequence[float], judge: Judge, *, much: bool = True
) -> Iterator[Claim]:
    """(c): the features collapse less where p is large; of Figures 3 and 6 the paper says *much* less."""
    ps, judge = sorted(p), judge.but(where=f"{judge.where} (c)")
    end = np.log(data.stable_rank.isel(epoch=-1).astype(np.float64))

    def ratio(low: float, high: float, of: int = 1) -> Estimate:
        return mean_of((end.sel(p=high) - end.sel(p=low)).values, of=of).through(math.exp)

    if len(ps) > 1:
        text = "the stable rank grows with p (the least ratio of one p to the one before)"
        found = least(ratio(*step, of=len(ps) - 1) for step in pairwise(ps))
        yield judge("rank.grows", text, Expected(min=1.0), found)
    if much and ps[0] == 1 and len(ps) > 1:
        text = f"at p = {ps[-1]:g} the stable rank is much larger than ReLU's (the ratio)"
        bar = f"ours: much larger is {MUCH:g} times as large"
        found = ratio(1.0, ps[-1])
        yield judge("rank.much", text, Expected(min=MUCH), found, source="ours", bar=bar)


def robust_claims(
    data: xr.Dataset, p: Sequence[float], radius: Sequence[float], judge: Judge, N: float = math.inf,
    *, much: bool = True,
) -> Iterator[Claim]:  # fmt: skip
    """(d): a larger p is more robust at each attacked radius where there is something to gain and to lose."""
    ps, radii, judge = sorted(p), sorted(radius), judge.but(where=f"{judge.where} (d)")
    mean = data.robust.mean("seed").sel(radius=radii)
    for low, high in pairwise(ps):
        level = (mean.sel(p=low) + mean.sel(p=high)).values / 2
        # at radius 0 nothing is attacked: that is clean accuracy, a claim of its own
        middle = [
            r for r, at in zip(radii, level, strict=True) if r and MIDDLE[0] <= at <= MIDDLE[1]
        ]
        id, text = f"robust.p{high:g}", f"p = {high:g} is more robust than p = {low:g}"
        text += f" at each radius where their mean is from {MIDDLE[0]:g} to {MIDDLE[1]:g} (the least gain)"
        if middle:
            found = gains(data.outlived, radii, (low, high), N, of=len(middle))
            worst = least(found[radii.index(r)] for r in middle)
            yield judge(id, text, Expected(min=0.0), worst)
        else:
            reason = "there is no such radius among those attacked: give more with --set radius="
            yield judge.cannot(id, text, Expected(min=0.0), reason)
    if not much and ps[0] == 1 and len(ps) > 2 and max(radii) > 0:
        text = f"p = {ps[-1]:g} is more robust than ReLU at the largest radius, {max(radii):g} (the gain)"
        gain = gains(data.outlived, radii, (1.0, ps[-1]), N)[-1]
        yield judge("robust.ends", text, Expected(min=0.0), gain)
    if much and ps[0] == 1 and len(ps) > 1:
        text = f"p = {ps[-1]:g} is much more robust than ReLU at some radius (the largest gain)"
        found = gains(data.outlived, radii, (1.0, ps[-1]), N, of=len(radii))
        bar = f"ours: much more robust is on {MANY:g} of the points"
        yield judge("robust.much", text, Expected(min=MANY), most(found), source="ours", bar=bar)
