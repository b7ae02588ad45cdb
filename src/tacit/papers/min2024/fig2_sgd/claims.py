"""The claims: Figure 2's by SGD, SGD beside the flow, the released attack beside the truth."""

import math
from collections.abc import Iterator

import xarray as xr

from tacit.base.estimate import Certain, most
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.papers._shared.universal import MOST, MOST_BAR
from tacit.papers.min2024.fig2.claims import SHOWN, broken, distances, each_alpha, learned, share
from tacit.papers.min2024.fig2_sgd.settings import Released

BEYOND = 0.75  # a radius of the figure above sqrt(2)/2: no net holds there, and F^(p)'s own centre is farther
NEAR, RADII, HALF = 0.02, 0.01, 0.5


def claims(data: xr.Dataset, config: Released, bench: Bench) -> Iterator[Claim]:
    """In this order."""
    figure = "Section 5.1, Figure 2"
    judge = bench.claims(
        figure, source="words", bar="ours: 'close' read as a tenth of |F| at a centre, as in min2024.fig2",
        regime=config.regime,
    )  # fmt: skip
    quiet = [alpha for alpha in config.alpha if alpha <= SHOWN]
    for p in config.p:
        here = data.sel(p=p)
        yield from distances(judge.but(where=f"{figure} (a)"), here, p)
        yield from learned(judge.but(where=f"{figure} (b, c, d)"), here, config, p)
        if quiet:
            yield from broken(judge, here.sel(alpha=quiet), config, p)
        yield from beside(judge.but(source="ours"), here, p)
        yield from attacked(judge.but(where=f"{figure} (e), released code", source="ours"), here, p)
    check = judge.but(where="Accuracy of the measurement", source="check")
    text = "of these nets: bundling neurons changes f little (most, of the net's mass)"
    fact = Certain(
        float(data.merge_error.max()), "a bound for each net of this run", data.merge_error.size
    )
    yield check(
        "exact.merge",
        text,
        Expected(max=1e-3),
        fact,
        bar="ours: a hundredth of what counts as small",
    )


def beside(judge: Judge, data: xr.Dataset, p: float) -> Iterator[Claim]:
    """SGD and the flow at one loss: distances to theory, and critical radii."""
    ends = [
        (data.distance.sel(end=one) - data.flow_distance.sel(end=other)).drop_vars("end", errors="ignore")
        for one, other in (("lower", "upper"), ("upper", "lower"))
    ]  # fmt: skip
    farther = most(each_alpha(xr.concat(ends, xr.Variable("end", ["lower", "upper"]))))
    text = f"p = {p:g}: SGD ends no farther from theory than the flow at that loss (most difference of dist)"
    yield judge(f"flow.distance.p{p:g}", text, Expected(max=NEAR), farther,
                bar=f"ours: {NEAR:g}, a fifth of what counts as small")  # fmt: skip
    ratio = data.upper.median("point") / data.flow_lower.median("point")
    back = data.lower.median("point") / data.flow_upper.median("point")
    gap = most(each_alpha(xr.ufuncs.fmax(abs(ratio - 1), abs(back - 1))))
    text = (
        f"p = {p:g}: SGD's nets and the flow's have the same critical radius (largest relative gap)"
    )
    yield judge(f"flow.radius.p{p:g}", text, Expected(max=RADII), gap, bar="ours: 1%")


def attacked(judge: Judge, data: xr.Dataset, p: float) -> Iterator[Claim]:
    """What the released attack leaves, less what can be left (points whose radius may be larger)."""
    too_many = data.zero - (data.upper > data.radius).mean("point")
    if p == 1:
        text = f"p = 1: the released attack leaves at most {NEAR:g} too many, at every radius (share of nets)"
        good = share(too_many.max("radius") <= NEAR)
        yield judge("zero.p1", text, MOST, good, bar=f"ours: {NEAR:g}; {MOST_BAR}")
        return
    beyond = [float(r) for r in data.radius if math.sqrt(0.5) < r < 1]
    quiet = [alpha for alpha in data.alpha.values if alpha <= SHOWN]
    if not beyond or not quiet:
        return
    at = min(beyond, key=lambda r: abs(r - BEYOND))
    text = (
        f"p = {p:g}: at radius {at:.3g} the released attack leaves half of the points and more that are broken "
        f"(alpha <= {SHOWN:g}; share of nets)"
    )
    good = share(too_many.sel(radius=at, alpha=quiet) >= HALF)
    yield judge(f"zero.p{p:g}", text, MOST, good, bar=f"ours: half of the points; {MOST_BAR}")
