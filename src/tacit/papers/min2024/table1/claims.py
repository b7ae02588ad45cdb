"""The claims of Table 1: its 28 numbers, and what the paper says of them."""

import math
from itertools import pairwise

import numpy as np
import xarray as xr

from tacit.lab import Bench, Claim, Expected, untestable
from tacit.papers.min2024.images.claims import Gains, gains, sampling_error
from tacit.papers.min2024.table1.settings import Table

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
EXTREME = 0.005  # accuracies that are all this near 0, or all this near 1, leave nothing to compare
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
    text = f"{what} at p = {p:g} is {number:g}, within {near:g} (our tolerance)"
    if error:
        text += f" and the 95% sampling error of {n:,} of {N:,} points, {error:.3f}"
    expected = Expected(value=number, tolerance=near + error)
    if other := another_setting(config):
        reason = f"the table's setting is not this one: {other}"
        return untestable(f"{name}.p{p:g}", text, WHERE, expected, reason)
    return bench.judge(
        f"{name}.p{p:g}",
        text,
        WHERE,
        expected,
        float(cell.accuracy.mean()),
        spread=float(cell.half),
        n=n,
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
        robust = data.accuracy.isel(row=data.kind.values == kind)
        for i, r in enumerate(radii):
            claim = order_claim(kind, r, i, steps, left.sizes["point"], bench)
            row = robust.isel(row=robust.radius.values == r)
            if not bench.smoke and not comparable(row)[0]:
                reason = f"{nothing_between(row)}: there is nothing to compare"
                claim = untestable(claim.id, claim.statement, WHERE, claim.expected, reason)
            made.append(claim)
    return made


def comparable(accuracy: xr.DataArray) -> np.ndarray:
    """The rows (row, p, seed) in which the nets are neither all at 0 nor all at 1, to EXTREME."""
    mean = accuracy.mean("seed").transpose("row", "p").values
    found: np.ndarray = (mean.max(1) > EXTREME) & (mean.min(1) < 1 - EXTREME)
    return found


def nothing_between(row: xr.DataArray) -> str:
    """Where the nets of a row that cannot be compared all are."""
    mean = row.mean("seed")
    return f"at every p the accuracy is from {float(mean.min()):.3f} to {float(mean.max()):.3f}"


def order_claim(
    kind: str, radius: float, at: int, steps: list[Gains], n: int, bench: Bench
) -> Claim:
    """One row."""
    least = min(steps, key=lambda step: float(step.value[at]))
    return bench.judge(
        f"grows.{kind}-{radius:g}",
        f"robust accuracy under {kind} attacks of radius {radius:g} grows with p (measured: the smallest gain, "
        f"here from p = {least.low:g} to p = {least.high:g})",
        WHERE,
        Expected(min=0.0),
        float(least.value[at]),
        spread=float(least.half[at]),
        n=n,
    )


def best_claim(data: xr.Dataset, config: Table, bench: Bench) -> Claim:
    """ "The robustness gained is agnostic to the choice of attacks"."""
    robust = data.accuracy.isel(row=data.kind.values != "clean")
    can, most = comparable(robust), max(config.p)
    mean = robust.isel(row=can).mean("seed").transpose("row", "p")
    # a tie is no win
    wins = (mean.sel(p=most) > mean.drop_sel(p=most).max("p")).values
    rows, every = int(can.sum()), len(can)
    text = (
        f"p = {most:g} is the most robust, alone, whatever the norm of the attack and its radius, in each of the "
        f"{rows} rows of {every} that can be compared (measured: the number of rows in which it is)"
    )
    if not rows and not bench.smoke:
        reason = f"in none of {every} rows can the nets be compared: in each all are near 0, or all near 1"
        return untestable("agnostic", text, WHERE, Expected(value=float(every)), reason)
    expected = Expected(value=float(rows))
    return bench.judge("agnostic", text, WHERE, expected, float(wins.sum()), n=rows)
