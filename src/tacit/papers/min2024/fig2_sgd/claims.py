"""The claims: those of Figures 2 and 5 by SGD, SGD beside the flow, the released attack beside the truth.

They count nets, of all alphas together: at the released size there is one net of each alpha and p, which says
nothing of the spread of nets of one alpha.
"""

import math
from collections.abc import Iterator

import xarray as xr

from tacit.base.estimate import Certain
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import rank_correlation
from tacit.papers._shared.universal import MOST, MOST_BAR
from tacit.papers.min2024.fig2.claims import SHOWN, figure_of, share
from tacit.papers.min2024.fig2_sgd.settings import Released

BEYOND = 0.75  # a radius of the figure above sqrt(2)/2: no net holds there, and F^(p)'s own centre is farther
SMALL, NEAR, RADII, HALF = 0.1, 0.02, 0.01, 0.5


def claims(data: xr.Dataset, config: Released, bench: Bench) -> Iterator[Claim]:
    """In this order."""
    figure = figure_of(config)
    judge = bench.claims(
        figure, source="words", bar="ours: 'close' read as a tenth of |F| at a centre, as in min2024.fig2",
        regime=config.regime,
    )  # fmt: skip
    quiet = [alpha for alpha in config.alpha if alpha <= SHOWN]
    for p in config.p:
        here = data.sel(p=p)
        yield from distances(judge.but(where=f"{figure} (a)"), here, p)
        yield from learned(judge.but(where=f"{figure} (b, c, d)"), here, config, p)
        if p > 1:
            text = f"p = {p:g}: each centre has mass, at least half of an equal share of its sign's"
            yield nets(judge.but(where=f"{figure} (b, c, d)"), f"all.p{p:g}", text, here["least"] >= HALF,
                       "ours: half of what F^(p) gives it")  # fmt: skip
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


def nets(judge: Judge, id: str, text: str, good: xr.DataArray, bar: str) -> Claim:
    """Most nets are so, counted over all alphas: a net of each alpha is enough."""
    return judge(id, f"{text} (share of nets)", MOST, share(good), bar=f"{bar}; {MOST_BAR}")


def distances(judge: Judge, data: xr.Dataset, p: float) -> Iterator[Claim]:
    """(a): small, and at p = 1 rising with alpha."""
    name = "F" if p == 1 else f"F^({p:g})"
    high = data.distance.sel(end="upper")
    text = f"dist(f, {name}) is at most {SMALL:g}"
    yield nets(
        judge.but(source="ours"),
        f"distance.p{p:g}",
        text,
        high <= SMALL,
        "ours: a tenth of |F| at a centre",
    )
    if p == 1 and data.sizes["alpha"] > 1:
        text = "dist(f, F) increases with alpha (rank correlation over the nets)"
        rise = rank_correlation(*xr.broadcast(data.alpha, high), over="nets")
        yield judge("distance.rises", text, Expected(min=0.0), rise, bar="paper: increases")


def learned(judge: Judge, data: xr.Dataset, config: Released, p: float) -> Iterator[Claim]:
    """(b) to (d): what the neurons learn."""
    what = "the two class averages" if p == 1 else f"the {config.K} centres"
    text = f"neurons learn only {what}: 95% of each sign's mass within cosine .95"
    good = data.within.min("sign") >= 0.95
    yield nets(judge, f"learned.p{p:g}", text, good, "ours: 95% and .95")


def broken(judge: Judge, data: xr.Dataset, config: Released, p: float) -> Iterator[Claim]:
    """(e): critical radii, and robust accuracy halfway between 1/sqrt(K) and sqrt(2)/2, where alpha <= .1."""
    edge, best = 1 / math.sqrt(config.K), math.sqrt(0.5)
    judge = judge.but(where=f"{judge.where} (e); Section 3, Remark 2")
    theory, name = (edge, "1/sqrt(K)") if p == 1 else (best, "sqrt(2)/2")
    text = f"p = {p:g}: the critical radius is {name} within 2%, alpha <= {SHOWN:g}"
    gap = abs(data.critical / theory - 1).max("end")
    yield nets(judge, f"radius.p{p:g}", text, gap <= 0.02, "ours: 2%, as in min2024.fig2")
    middle = (edge + best) / 2
    kept = ((data.upper if p == 1 else data.lower) > middle).mean("point")
    what, good = ("broken by an attack", kept <= 0.01) if p == 1 else ("certified", kept >= 0.99)
    text = f"p = {p:g}: at radius {middle:.3g} 99 points of 100 are {what}"
    yield nets(judge, f"robust.p{p:g}", text, good, "ours: 99 of 100")
    if p == 1 and config.K > 10:
        text = "the ReLU net breaks earlier than at K = 10, where it does at 1/sqrt(10)"
        earlier = data.critical.sel(end="upper", drop=True) < 1 / math.sqrt(10)
        yield nets(judge, "earlier", text, earlier, "paper: more vulnerable than at K = 10")


def beside(judge: Judge, data: xr.Dataset, p: float) -> Iterator[Claim]:
    """SGD and the flow at one loss: distances to theory, and critical radii."""
    farther = data.distance.sel(end="upper", drop=True) - data.flow_distance.sel(
        end="lower", drop=True
    )
    text = f"p = {p:g}: SGD ends no farther from theory than the flow at that loss (dist, within {NEAR:g})"
    yield nets(judge, f"flow.distance.p{p:g}", text, farther <= NEAR, f"ours: a fifth of {SMALL:g}")
    ratio = data.upper.median("point") / data.flow_lower.median("point")
    back = data.lower.median("point") / data.flow_upper.median("point")
    gap = xr.ufuncs.fmax(abs(ratio - 1), abs(back - 1))
    text = f"p = {p:g}: SGD's net has the critical radius of the flow's within {RADII:.0%}"
    yield nets(judge, f"flow.radius.p{p:g}", text, gap <= RADII, "ours: 1%")


def attacked(judge: Judge, data: xr.Dataset, p: float) -> Iterator[Claim]:
    """What the released attack leaves, less what can be left (points whose radius may be larger)."""
    too_many = data.zero - (data.upper > data.radius).mean("point")
    if p == 1:
        text = f"p = 1: the released attack leaves at most {NEAR:g} too many, at every radius"
        yield nets(judge, "zero.p1", text, too_many.max("radius") <= NEAR, f"ours: {NEAR:g}")
        return
    beyond = [float(r) for r in data.radius if math.sqrt(0.5) < r < 1]
    quiet = [alpha for alpha in data.alpha.values if alpha <= SHOWN]
    if not beyond or not quiet:
        return
    at = min(beyond, key=lambda r: abs(r - BEYOND))
    text = (
        f"p = {p:g}: at radius {at:.3g} the released attack leaves half of the points and more that are broken "
        f"(alpha <= {SHOWN:g})"
    )
    good = too_many.sel(radius=at, alpha=quiet) >= HALF
    yield nets(judge, f"zero.p{p:g}", text, good, "ours: half of the points")
