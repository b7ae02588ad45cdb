"""The claims of Table 1: its 28 numbers, and what the paper says of them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import xarray as xr

from tacit.lab.bench import Bench
from tacit.lab.claim import Claim, Expected, judge, untestable
from tacit.papers.min2024._images import Table
from tacit.papers.min2024.image_claims import Gains, gains, sampling_error

WHERE = "Appendix B, Table 1"
P = (1.0, 2.0, 3.0, 4.0)
NUMBERS: dict[tuple[str, float], tuple[float, ...]] = {
    ("clean", 0.0): (0.981, 0.982, 0.982, 0.980),
    ("linf", 0.05): (0.512, 0.844, 0.892, 0.913),
    ("linf", 0.1): (0.040, 0.346, 0.522, 0.637),
    ("l2", 1.0): (0.301, 0.640, 0.726, 0.775),
    ("l2", 2.0): (0.007, 0.101, 0.165, 0.239),
    ("l1", 5.0): (0.500, 0.744, 0.780, 0.807),
    ("l1", 10.0): (0.098, 0.294, 0.354, 0.402),
}
CLEAN, ROBUST = 0.003, 0.015  # how near a number must be
SETTINGS = ("dataset", "classes", "layer", "width", "epochs", "batch", "step", "steps")


def paper_number(kind: str, radius: float, p: float) -> float:
    """The paper's mean over 5 runs; NaN where the table has none."""
    numbers = NUMBERS.get((kind, radius))
    return math.nan if numbers is None or p not in P else numbers[P.index(p)]


def another_setting(config: Table) -> str:
    """The settings in which the run is not the table's, or nothing."""
    released = Table()
    found = [
        f"{name}={getattr(config, name)}"
        for name in SETTINGS
        if getattr(config, name) != getattr(released, name)
    ]
    return ", ".join(found)


def claims(data: xr.Dataset, config: Table, bench: Bench) -> tuple[Claim, ...]:
    """The numbers row by row, then the order in each row, then all rows together."""
    numbers = [
        number_claim(data.sel(p=p).isel(row=i), p, config, bench)
        for i in range(data.sizes["row"])
        for p in config.p
        if not math.isnan(float(data.paper.sel(p=p)[i]))
    ]
    if len(config.p) < 2:
        return tuple(numbers)
    return (*numbers, *order_claims(data, config, bench), best_claim(data, config, bench))


def number_claim(cell: xr.Dataset, p: float, config: Table, bench: Bench) -> Claim:
    """One number of the table."""
    kind, radius, number = str(cell.kind.values), float(cell.radius), float(cell.paper)
    n, N = int(cell.points), cell.attrs["test_points"]
    clean = kind == "clean"
    error = float(sampling_error(number, n, N))
    near = CLEAN if clean else ROBUST
    name = "clean" if clean else f"{kind}-{radius:g}"
    what = (
        "clean accuracy" if clean else f"robust accuracy under {kind} attacks of radius {radius:g}"
    )
    text = f"{what} at p = {p:g} is {number:g}, within {near:g}"
    if error:
        text += f" and the 95% sampling error of {n:,} of {N:,} points, {error:.3f}"
    expected = Expected(value=number, tolerance=near + error)
    if other := another_setting(config):
        reason = f"the table's setting is not this one: {other}"
        return untestable(f"{name}.p{p:g}", text, WHERE, expected, reason)
    return judge(
        f"{name}.p{p:g}",
        text,
        WHERE,
        expected,
        float(cell.accuracy.mean()),
        spread=float(cell.half),
        n=n,
        smoke=bench.smoke,
    )


def order_claims(data: xr.Dataset, config: Table, bench: Bench) -> list[Claim]:
    """In each row of robust accuracies every p is better than the p before."""
    made = []
    for kind in ("linf", "l2", "l1"):
        radii = tuple(sorted(getattr(config, kind)))
        left = data[f"outlived_{kind}"].rename({f"point_{kind}": "point"})
        steps = [
            gains(left, radii, ends, data.attrs["test_points"])
            for ends in pairwise(sorted(config.p))
        ]
        made += [
            order_claim(kind, r, i, steps, left.sizes["point"], bench) for i, r in enumerate(radii)
        ]
    return made


def order_claim(
    kind: str, radius: float, at: int, steps: list[Gains], n: int, bench: Bench
) -> Claim:
    """One row."""
    least = min(steps, key=lambda step: float(step.value[at]))
    return judge(
        f"grows.{kind}-{radius:g}",
        f"robust accuracy under {kind} attacks of radius {radius:g} grows with p (measured: the smallest gain, "
        f"here from p = {least.low:g} to p = {least.high:g})",
        WHERE,
        Expected(min=0.0),
        float(least.value[at]),
        spread=float(least.half[at]),
        n=n,
        smoke=bench.smoke,
    )


def best_claim(data: xr.Dataset, config: Table, bench: Bench) -> Claim:
    """ "The robustness gained is agnostic to the choice of attacks"."""
    robust = data.accuracy.isel(row=data.kind.values != "clean").mean("seed").transpose("row", "p")
    best = np.asarray(config.p)[robust.values.argmax(1)]
    return judge(
        "agnostic",
        f"p = {max(config.p):g} is the most robust whatever the norm of the attack and its radius (measured: the "
        "number of rows in which it is)",
        WHERE,
        Expected(value=float(len(best))),
        float((best == max(config.p)).sum()),
        n=len(best),
        smoke=bench.smoke,
    )
