r"""Theorem 4.6: inf_C sup_{||x|| = sqrt(d)} |C f_FA(x) - f(x)| in sweeps of d, n and time.

Without biases both nets are homogeneous, so that the supremum is sqrt(d) times that over the unit sphere, found
and certified by `measure.function_distance` (with f_FA in the place of the net that is scaled). Biases change f
by at most sum_j |v_j b_j| at any x, which widens the interval by that much on either side.

**What to expect at finite n.** f is (1/m) sum_r relu(<w_r, .>) of either sign with w = lambda (S_s/d + nu_s):
the gap to (lambda/d) f_FA is lambda times a function that sqrt(d) ||(nu_+, nu_-)|| = k/sqrt(n) bounds, and that
is nearly reached where x is almost orthogonal to both averages. So relative to lambda (that is, to C d) the
distance is of the order k/sqrt(n); in absolute terms it grows with lambda ~ ln T, and d alone does not make it
small: the theorem's o(1) is a limit of all of d, n and k, and has ln T below sqrt(k).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from tacit.base.estimate import most
from tacit.lab import Bench, Claim, Expected, Outcome
from tacit.measure import function_distance, mean_of
from tacit.nets import TwoLayerNet, average_net
from tacit.papers._shared.fits import listed
from tacit.papers.li2025._shared.coefficients import biases
from tacit.papers.li2025._shared.synthetic import train_binary
from tacit.papers.li2025.sweeps.settings import Sweep
from tacit.papers.li2025.sweeps.sweep import (
    EXPONENT_BAR,
    NEAR,
    OUTSIDE,
    Cell,
    course,
    over_settings,
    slope,
    swept,
)
from tacit.papers.li2025.thm4_5.exhibit import averaged, binary_problem
from tacit.papers.li2025.thm4_6.figure import draw as draw

AXES = ("d", "n", "time")


def run(config: Sweep, bench: Bench) -> Outcome:
    """Train every setting with every seed and measure the distance."""
    base = Cell(config.d0, config.k0, config.n0)
    data = swept(
        {"d": config.d, "n": config.n},
        base,
        lambda cell: config.time if cell == base else (1.0,),
        lambda _: 1.0,
        partial(measure, config, bench),
        bench,
        bench.seeds(config.repeats),
    )
    return Outcome(data, tuple(claims(data, config, bench)))


def measure(
    config: Sweep, bench: Bench, cell: Cell, times: Sequence[float], seed: int
) -> xr.Dataset:
    """One setting at each of the times."""
    problem, net = binary_problem(config, bench, cell, seed)
    goal = replace(average_net(problem.mixture), b=None)
    rows = []
    for trained in course(net, train_binary, problem.train, config.eta, config.steps, times):
        found = trained.double()
        lam, _ = averaged(found, problem.mixture)
        rows.append([*sphere_distance(goal, found, cell.d), lam])
    names = ("lower", "upper", "scale", "lam")
    table = np.array(rows)
    data = xr.Dataset({name: ("time", table[:, i]) for i, name in enumerate(names)})
    data["absolute"] = (data.lower + data.upper) / 2
    data["relative"] = data.absolute / data.lam
    return data


def sphere_distance(goal: TwoLayerNet, net: TwoLayerNet, d: int) -> tuple[float, float, float]:
    """inf_C sup over the sphere of radius sqrt(d), from below and above, and C d."""
    bare = function_distance(goal, replace(net, b=None))
    shift = float((net.v * biases(net)).abs().sum())  # what biases change in f at most, anywhere
    root = math.sqrt(d)
    return max(root * bare.lower - shift, 0.0), root * bare.upper + shift, bare.c * d


def claims(data: xr.Dataset, config: Sweep, bench: Bench) -> Iterator[Claim]:
    """The law over lambda that we expect; what o(1) says along n, and does not say along d and T."""
    judge = bench.claims("Theorem 4.6", source="ours", bar=EXPONENT_BAR, regime=OUTSIDE)
    text = f"exponent of n in the distance over lambda (n = {listed(config.n)})"
    yield judge("relative.n", text, Expected(value=-0.5, tolerance=NEAR), slope(data.relative_n))

    largest = mean_of(data.relative_d.isel(d=-1) * math.sqrt(config.n0) / config.k0)
    text = f"distance over lambda k/sqrt(n), what remembered noise leaves, at d = {config.d[-1]}"
    yield judge(
        "relative.d", text, Expected(value=1.0, tolerance=0.1), largest, bar="ours: ten percent"
    )

    for axis, source, expected, text in (
        ("n", "order", Expected(max=1.0), "that at the fewest: it falls"),
        ("d", "ours", Expected(min=1.0), "that at the smallest: at fixed n it grows, with lambda"),
        ("time", "ours", Expected(min=1.0), "that at eta T = 1: it grows, with lambda"),
    ):  # fmt: skip
        along = data[f"absolute_{axis}"]
        first = along.sel(time=1.0) if axis == "time" else along.isel({axis: 0})
        text = f"distance at {axis} = {getattr(config, axis)[-1]:g} over {text}"
        found = mean_of(along.isel({axis: -1}) / first)
        yield judge(
            f"absolute.{axis}", text, expected, found, source=source, bar="derived: no change"
        )

    settings = over_settings(config, AXES)
    width = (settings.of(data, "upper") - settings.of(data, "lower")) / settings.of(
        data, "absolute"
    )
    known = most(mean_of(row, of=len(width)) for row in width)
    text = "width of the distance's interval (biases included) over the distance, the widest of all settings"
    yield judge("width", text, Expected(max=0.1), known, source="check", bar="ours: ten percent")
