"""The claims of Table 1: its 28 numbers, and what the paper says of them."""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import xarray as xr

from tacit.base.estimate import Estimate, least
from tacit.lab import Bench, Claim, Expected, Part
from tacit.papers._shared.crossed import crossed
from tacit.papers.min2024.images.nets import unbroken
from tacit.papers.min2024.images.settings import regime_of
from tacit.papers.min2024.table1.settings import Table

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
SPREADS: dict[tuple[str, float], tuple[float, ...]] = {  # what the table has behind its plus-minus
    ("clean", 0.0): (0.000, 0.000, 0.000, 0.000),
    ("linf", 0.05): (0.006, 0.002, 0.002, 0.001),
    ("linf", 0.1): (0.002, 0.005, 0.004, 0.004),
    ("l2", 1.0): (0.004, 0.006, 0.004, 0.002),
    ("l2", 2.0): (0.001, 0.002, 0.003, 0.003),
    ("l1", 5.0): (0.007, 0.007, 0.004, 0.002),
    ("l1", 10.0): (0.004, 0.002, 0.002, 0.003),
}
ROUNDED = 0.0005  # a spread of .000 is at most this
CLEAN, ROBUST = 0.003, 0.015  # how near a number must be
EXTREME = 0.005  # accuracies that are all this near 0, or all this near 1, leave nothing to compare


Row = tuple[str, float]
"""A norm (or clean) and a radius."""


def printed(numbers: dict[Row, tuple[float, ...]], row: Row, p: float) -> float:
    """What the table has there; NaN where it has none."""
    return numbers[row][P.index(p)] if row in numbers and p in P else math.nan


def claims(data: xr.Dataset, config: Table, bench: Bench) -> Iterator[Claim]:
    """The numbers as one family, the order within the rows as another, and ReLU against the largest p.

    Where one net of each p was trained, its spread over seeds is the one that the table prints for it.
    """
    kept, ps, inside = kept_of(data), sorted(config.p), regime_of(config, classes=10)
    regime = inside + "; one training: the table's spread over seeds" * (config.repeats == 1)
    bar = f"ours: within {CLEAN:g} of clean, {ROBUST:g} of robust accuracy"
    judge = bench.claims("Appendix B, Table 1", source="number", bar=bar, regime=regime)

    def gain(row: Row, low: float, high: float, of: int) -> Estimate:
        change = kept[row].sel(p=high) - kept[row].sel(p=low)
        known = math.hypot(*(printed(SPREADS, row, p) + ROUNDED for p in (low, high)))
        return crossed(change.values, data.attrs["test_points"], of=of, known=known)

    cells = [(row, p) for row in kept for p in ps if not math.isnan(printed(NUMBERS, row, p))]
    text = f"the {len(cells)} accuracies of the table"
    if cells and inside.startswith("inside"):
        yield judge.family(
            "numbers", text, [number(data, kept, *cell, len(cells)) for cell in cells]
        )
    elif cells:
        reason = f"the table's setting is not this one: {inside}"
        yield judge.cannot("numbers", text, Expected(min=float(len(cells))), reason)
    robust = [row for row, each in kept.items() if row[0] != "clean" and comparable(each)]
    if len(ps) < 2 or not robust:
        return
    judge = judge.but(source="order", bar="paper: each row of the table grows with p")
    of, zero = len(robust) * (len(ps) - 1), Expected(min=0.0)
    grows = {row: least(gain(row, *step, of) for step in pairwise(ps)) for row in robust}
    parts = [
        Part(named(*row), f"{told(*row)}: the least gain", zero, e) for row, e in grows.items()
    ]
    text = f"each p is more robust than the one before, in each norm and at each radius ({len(parts)} rows)"
    yield judge.family("grows", text, parts)
    text = f"p = {ps[-1]:g} is more robust than p = {ps[0]:g} in each norm and at each radius (the least gain)"
    found = least(gain(row, ps[0], ps[-1], len(robust)) for row in robust)
    yield judge(
        "agnostic",
        text,
        zero,
        found,
        source="words",
        bar="paper: the gain is agnostic to the attack",
    )


def number(data: xr.Dataset, kept: dict[Row, xr.DataArray], row: Row, p: float, of: int) -> Part:
    """One of the table's; clean accuracy is that of all its test points."""
    near, N = (CLEAN, 1.0) if row[0] == "clean" else (ROBUST, data.attrs["test_points"])
    known = printed(SPREADS, row, p) + ROUNDED
    found = crossed(kept[row].sel(p=p).values, N, ends=(0.0, 1.0), of=of, known=known)
    expected = Expected(value=printed(NUMBERS, row, p), tolerance=near)
    return Part(f"{named(*row)}.p{p:g}", f"{told(*row)} at p = {p:g}", expected, found)


def named(kind: str, radius: float) -> str:
    """linf-0.05."""
    return kind if kind == "clean" else f"{kind}-{radius:g}"


def told(kind: str, radius: float) -> str:
    """A row in words."""
    return "clean accuracy" if kind == "clean" else f"robust accuracy, {kind} {radius:g}"


def kept_of(data: xr.Dataset) -> dict[Row, xr.DataArray]:
    """Which points are left in each row (p, seed, point); of the clean ones their share."""
    kept: dict[Row, xr.DataArray] = {}
    for i, (kind, radius) in enumerate(zip(data.kind.values, data.radius.values, strict=True)):
        if kind == "clean":
            values = data.accuracy.isel(row=i).expand_dims("point")
        else:
            left = data[f"outlived_{kind}"].rename({f"point_{kind}": "point"})
            radii = data.radius.values[data.kind.values == kind].tolist()
            values = unbroken(left, radii).sel(radius=radius).astype(np.float64)
        kept[str(kind), float(radius)] = values.transpose("p", "seed", "point")
    return kept


def comparable(kept: xr.DataArray) -> bool:
    """Whether the nets are neither all at 0 nor all at 1, to EXTREME."""
    mean = kept.mean(("seed", "point"))
    return bool(mean.max() > EXTREME and mean.min() < 1 - EXTREME)
