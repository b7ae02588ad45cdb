r"""The claims of Figures 3 and 6 and of Table 1, with their sampling errors.

A share q of n points out of N test points has the 95% half-width

    1.96 sqrt(q (1 - q) / n (N - n) / (N - 1)),

which is 0 where all of them are attacked: on MNIST they are the paper's own. A gain from one p to another is
measured on the same points: its half-width is 1.96 standard errors of the differences point by point, with the
same correction. Where there are several seeds, Student's half-width of their mean is added in quadrature.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.stats import t as student

from tacit.lab import Bench, Claim, Expected, untestable
from tacit.papers.min2024.fig3.settings import Curves
from tacit.papers.min2024.images.nets import unbroken
from tacit.papers.min2024.images.settings import ImageNets

Floats = npt.NDArray[np.float64]

Z = 1.96
MIDDLE = (0.1, 0.9)  # a robust accuracy between these is neither near 0 nor near 1
SLIGHT = 0.003  # of clean accuracy
SMALL = 0.1  # a correlation
MUCH = 2.0  # "much larger": at least twice as large
MANY = 0.2  # "much more robust": on a fifth of all points


def sampling_error(share: Any, n: int, total: int) -> Any:
    """The half-width of a share (a number or an array) of n of `total` points."""
    return Z * np.sqrt(share * (1 - share) * spared(n, total) / n)


def spared(n: int, total: int) -> float:
    """What knowing n of `total` points leaves of the variance of a mean."""
    return (total - n) / max(total - 1, 1)


def seed_error(values: Floats) -> Floats:
    """Student's half-width of the mean over the first dimension; 0 where there is one seed."""
    m = len(values)
    if m < 2:
        return np.zeros(values.shape[1:])
    return np.asarray(student.ppf(0.975, m - 1) * values.std(0, ddof=1) / math.sqrt(m))


def mean_and_spread(values: Floats) -> tuple[float, float | None]:
    """Over seeds; a single one has no spread."""
    return float(values.mean()), float(seed_error(values)) if len(values) > 1 else None


@dataclass(frozen=True)
class Gains:
    """Robust accuracy at p = high less that at p = low, its half-width, and the mean of the two, by radius."""

    low: float
    high: float
    value: Floats
    half: Floats
    level: Floats


def gains(left: xr.DataArray, radii: tuple[float, ...], ends: tuple[float, float], N: int) -> Gains:
    """From the radii that each point outlives (p, seed, point), of N test points."""
    low, high = (
        unbroken(left.sel(p=p), radii).transpose("seed", "point", "radius").values for p in ends
    )
    each = high.astype(np.float64) - low
    n = each.shape[1]
    points = each.mean(0).std(0, ddof=1) if n > 1 else np.full(len(radii), np.nan)
    half = np.hypot(Z * points * math.sqrt(spared(n, N) / n), seed_error(each.mean(1)))
    return Gains(*ends, each.mean((0, 1)), half, (high.mean((0, 1)) + low.mean((0, 1))) / 2)


def other_data(config: ImageNets, bench: Bench) -> str | None:
    """What to tell where the images are not the paper's."""
    if config.dataset == "mnist" or bench.smoke:
        return None
    return f"dataset={config.dataset}: the paper has MNIST; only what it says in words can be judged here"


def papers_data(config: ImageNets, classes: int) -> bool:
    """Whether data, labels and layer are those of the paper's figure."""
    return (config.dataset, config.classes, config.layer) == ("mnist", classes, "released")


def setting_of(config: ImageNets) -> str:
    """What a figure is of, as its title says it."""
    return f"{config.dataset}, {config.classes} classes, layer as {config.layer}"


def curve_claims(data: xr.Dataset, config: Curves, bench: Bench) -> tuple[Claim, ...]:
    """Of Figure 3 (parity) or 6 (digits)."""
    where = "Section 5.2.1, Figure 3" if config.classes == 2 else "Appendix B, Figure 6"
    return (
        *correlation_claims(data, where, bench),
        *accuracy_claims(data, config, where, bench),
        *rank_claims(data, config, where, bench),
        *robust_claims(data, config, where, bench),
    )


def correlation_claims(data: xr.Dataset, where: str, bench: Bench) -> list[Claim]:
    """(a): points of one label lie together, those of two are nearly orthogonal or opposed."""
    label, cosine = data.label.values, data.correlation.values
    one = label[:, None] == label
    same, other = cosine[one & ~np.eye(len(label), dtype=bool)], cosine[~one]
    rows = (
        (
            "correlation.same",
            "two points of one label are likely to have a positive correlation, in our reading more than "
            "half of the pairs (measured: the share that has)",
            Expected(min=0.5),
            float((same > 0).mean()),
            same.size // 2,
        ),
        (
            "correlation.other",
            f"two points of different labels have a small or negative correlation, in our reading at "
            f"most {SMALL:g} (measured: the mean)",
            Expected(max=SMALL),
            float(other.mean()),
            other.size // 2,
        ),
        (
            "correlation.gap",
            "the mean correlation is larger within a label than between labels (measured: the difference)",
            Expected(min=0.0),
            float(same.mean() - other.mean()),
            cosine.size // 2,
        ),
    )
    return [
        bench.judge(id, text, where + " (a)", expected, measured, n=n)
        for id, text, expected, measured, n in rows
    ]


def accuracy_claims(data: xr.Dataset, config: Curves, where: str, bench: Bench) -> list[Claim]:
    """(b): p > 1 costs no clean accuracy."""
    end = data.test_accuracy.isel(epoch=-1)
    if 1.0 not in config.p:
        return []
    said = "has a slight edge over ReLU" if config.classes == 2 else "does not lose to ReLU"
    made = []
    for p in sorted(config.p)[1:]:
        edge = (end.sel(p=p) - end.sel(p=1.0)).values.astype(np.float64)
        measured, spread = mean_and_spread(edge)
        text = (
            f"p = {p:g} {said} in clean accuracy, in our reading it is at most {SLIGHT:g} below (measured: the "
            "difference)"
        )
        made.append(
            bench.judge(
                f"clean.p{p:g}",
                text,
                where + " (b)",
                Expected(min=0.0, tolerance=SLIGHT),
                measured,
                spread=spread,
                n=data.attrs["test_points"],
            )
        )
    return made


def rank_claims(data: xr.Dataset, config: Curves, where: str, bench: Bench) -> list[Claim]:
    """(c): the features collapse less where p is large."""
    ps = sorted(config.p)
    end = data.stable_rank.isel(epoch=-1)
    steps = [
        (
            f"rank.p{high:g}",
            f"from p = {low:g} to p = {high:g} the stable rank grows",
            low,
            high,
            1.0,
        )
        for low, high in pairwise(ps)
    ]
    if ps[0] == 1 and len(ps) > 1:
        text = f"at p = {ps[-1]:g} the stable rank is much larger than ReLU's, in our reading {MUCH:g} times"
        steps.append(("rank.much", text, 1.0, ps[-1], MUCH))
    made = []
    for id, text, low, high, least in steps:
        ratio = (end.sel(p=high) / end.sel(p=low)).values.astype(np.float64)
        measured, spread = mean_and_spread(ratio)
        made.append(
            bench.judge(
                id,
                f"{text} (measured: the ratio after training)",
                where + " (c)",
                Expected(min=least),
                measured,
                spread=spread,
                n=config.repeats,
            )
        )
    return made


def robust_claims(data: xr.Dataset, config: Curves, where: str, bench: Bench) -> list[Claim]:
    """(d): a larger p is more robust at each radius where there is something to gain and to lose."""
    ps, N = sorted(config.p), data.attrs["test_points"]
    radii, made = tuple(sorted(config.radius)), []
    for ends in pairwise(ps):
        found = gains(data.outlived, radii, ends, N)
        id, expected = f"robust.p{found.high:g}", Expected(min=0.0)
        text = (
            f"from p = {found.low:g} to p = {found.high:g} robust accuracy grows, in our reading at each "
            f"radius where the mean of the two is from {MIDDLE[0]:g} to {MIDDLE[1]:g} (measured: the smallest "
            "gain)"
        )
        judged = np.flatnonzero((found.level >= MIDDLE[0]) & (found.level <= MIDDLE[1]))
        if not len(judged):
            reason = "there is no such radius among those attacked: give more with --set radius="
            made.append(untestable(id, text, where + " (d)", expected, reason))
            continue
        at = int(judged[found.value[judged].argmin()])
        made.append(gain_claim(id, text, where + " (d)", expected, found, at, data, bench))
    if ps[0] == 1 and len(ps) > 1:
        found = gains(data.outlived, radii, (1.0, ps[-1]), N)
        text = (
            f"p = {ps[-1]:g} is much more robust than ReLU, in our reading on {MANY:g} of the points at some "
            "radius (measured: the largest gain in robust accuracy)"
        )
        at = int(found.value.argmax())
        made.append(
            gain_claim(
                "robust.much", text, where + " (d)", Expected(min=MANY), found, at, data, bench
            )
        )
    return made


def gain_claim(
    id: str,
    text: str,
    where: str,
    expected: Expected,
    found: Gains,
    at: int,
    data: xr.Dataset,
    bench: Bench,
) -> Claim:
    """The gain at one radius."""
    return bench.judge(
        id,
        text,
        where,
        expected,
        float(found.value[at]),
        spread=float(found.half[at]),
        n=data.sizes["point"],
    )
