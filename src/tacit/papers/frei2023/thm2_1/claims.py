"""What `frei2023.thm2.1` claims: no bar is a rule by which a flow stops."""

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.base.estimate import Certain, Estimate, most
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of
from tacit.papers._shared.assumptions import nice_probability
from tacit.papers._shared.fits import exponent, listed
from tacit.papers._shared.universal import for_every
from tacit.papers.frei2023.thm2_1.settings import Direction

SLACK = 5e-3  # the multipliers of rho are chosen among those with so much slackness, for theta of least margin 1
EXACT = 1e-7
FALL = 1e-3
SMOOTHING = "ours: log(n)/|log L|, by which the smoothed margin misses the margin, for all that a flow misses"


def claims(data: xr.Dataset, config: Direction, bench: Bench) -> tuple[Claim, ...]:
    """All of them."""
    begun = math.log(data.sizes["point"] / math.log(2))
    deepest = data.reached.max("depth").values
    judge = bench.claims(
        "Section 2, Theorem 2.1", source="ours", bar=SMOOTHING,
        regime=f"inside: {int((deepest > begun).sum())} of {deepest.size} flows reach L < l(0)/n, as it asks",
    )  # fmt: skip
    return (
        *flow_claims(data, config, judge),
        *sweep_claims(data, config, judge),
        *small_claims(data, judge),
    )


def by_cell(values: xr.DataArray) -> np.ndarray:
    """Cells of the grid, then what is left, then seeds."""
    return values.stack(cell=("sigma", "loss", "init")).transpose("cell", ..., "seed").values


def means(values: xr.DataArray) -> list[Estimate]:
    """The mean over seeds in each cell of the grid."""
    rows = by_cell(values)
    return [mean_of(row, of=len(rows)) for row in rows]


def flow_claims(data: xr.Dataset, config: Direction, judge: Judge) -> Iterator[Claim]:
    """The grid of flows as they come, and united to two neurons near the exact KKT point."""
    depth, rows = config.deep[-1], by_cell(data.rho)
    final, width = data.sel(deep=depth), math.log(data.sizes["point"]) / depth
    grid = f"the worst of {len(rows)} noise levels, losses and inits"
    if len(config.depths) > 1:
        text = f"exponent of |log L| in the KKT residual rho (|log L| = {listed(config.depths)}; {grid})"
        slopes = most(exponent(config.depths, row, of=len(rows)) for row in rows)
        yield judge("rho", text, Expected(max=0.0), slopes, source="words",
                    bar="derived: rho goes to 0; the theorem names no rate")  # fmt: skip
    for name, what, values in (
        ("united", "rho", final.deep_rho),
        ("cosine", "1 - cosine with the exact KKT point", 1 - final.cosine),
        ("margin", "1 - margin over that of the exact KKT point", 1 - final.deep_margin / data.limit_margin),
    ):  # fmt: skip
        text = (
            f"{what}, over log(n)/|log L|: neurons of a sign united, log-loss {-depth:g} ({grid})"
        )
        yield judge(name, text, Expected(max=1.0), most(means(values / width)))
    exact = float(max(data.limit_rho.max(), data.limit_slackness.max()))
    text = "largest KKT residual or slackness of these solutions of the convex program, multipliers found twice"
    yield judge("limit", text, Expected(max=EXACT),
                Certain(exact, "a certificate of each point that flows are compared with", data.limit_rho.size),
                source="check", bar="ours: far below every residual of a flow", any_size=True)  # fmt: skip
    curves = data.rise_smoothed.values.reshape(-1, data.sizes["frame"])
    text = "of these flows: the smoothed margin never falls (its largest fall, of its value)"
    fall = Certain(largest_fall(curves), "a fact about the flows of this run", len(curves))
    bar = "ours: a tenth of the 1% to which steps are exact"
    yield judge("smoothed", text, Expected(max=FALL), fall, bar=bar, source="check",
                where="Lyu & Li 2020, Section 4")  # fmt: skip


def largest_fall(curves: np.ndarray) -> float:
    """The largest relative decrease between two moments of any curve; 0 where all rise."""
    before, after = curves[..., :-1], curves[..., 1:]
    fall = (before - after) / np.abs(before)
    return float(np.nanmax(fall, initial=0.0))


def sweep_claims(data: xr.Dataset, config: Direction, judge: Judge) -> Iterator[Claim]:
    """Widths, descent, and the proof's bounds on the multipliers."""
    fitted = data.width_cosine.notnull().transpose("width", "seed").values
    smoothing = math.log(data.sizes["point"]) / config.shallow
    reach = f"{int(fitted.sum())} of {fitted.size} flows of widths {listed(config.widths)}"
    width_judge = judge.but(regime=f"inside: {reach} reach L < l(0)/n")
    for name, what, values in (
        ("rho", "rho", data.width_rho),
        ("cosine", "1 - cosine with the exact KKT point", 1 - data.width_cosine),
    ):
        rows = values.transpose("width", "seed").values / smoothing
        found = [
            mean_of(row[ok], of=len(rows)) for row, ok in zip(rows, fitted, strict=True) if ok.any()
        ]
        text = f"{what}, over log(n)/|log L|: log-loss {-config.shallow:g}, the worst of the widths"
        if found:
            yield width_judge(f"width.{name}", text, Expected(max=1.0), most(found))
    gap = (1 - data.descent_cosine) / (1 - data.descent_flow_cosine)
    text = f"1 - cosine with the exact point, gradient descent's over the flow's, log-loss {-config.early:g}"
    yield judge("descent", text, Expected(max=2.0), mean_of(gap.values), source="words",
                where="Lyu & Li 2020, Section 4.3", bar="ours: as far to go within a factor of 2")  # fmt: skip
    d, k = config.inside, data.sizes["inside_cluster"]
    promised = nice_probability(math.ceil(k * math.log(d) ** 2), d)
    low, high = data.inside_own.min("inside_cluster"), data.inside_largest
    judge = judge.but(
        source="formula", bar=f"paper: all data sets but {1 - promised:.1g} of them (Proposition A.1)",
        regime=f"inside: Assumption 2.2 holds at d = {d}, k = {k}, sigma = 1/sqrt(d)",
    )  # fmt: skip
    sums = "each cluster's sum of lambda_i v_j^2 phi_ij"
    for name, lemma, what, within in (
        ("high", "A.10", f"{sums} over", high / data.inside_high),
        ("low", "A.11", f"{sums} for the neuron of its sign, under", data.inside_low / low),
    ):
        text = f"at the exact KKT point {what} Lemma {lemma}'s bound: the ratio"
        yield for_every(judge.but(where=f"Appendix A, Lemma {lemma}"), f"multipliers.{name}", text,
                        Expected(max=1.0), within, over="data sets")  # fmt: skip


def small_claims(data: xr.Dataset, judge: Judge) -> Iterator[Claim]:
    """KKT points against the global optimum, on ten points in three dimensions: one example decides."""
    pair = data.small_pair.values[data.small_pair_rho.values <= EXACT]
    lowest = float(pair.min(initial=1.0))
    judge = judge.but(
        where="Section 2, after Theorem 2.1", source="words", regime="inside: any data set will do",
        bar="ours: 1%, far above the solvers' errors",
    )  # fmt: skip
    text, expected = (
        "least margin of an exact KKT point over the global optimum's",
        Expected(max=0.99),
    )
    if lowest > 0.99:
        reason = (
            f"none of {len(pair)} KKT points was below the optimum; another data set may have one"
        )
        yield judge.cannot("global.not", text, expected, reason)
    else:
        yield judge(
            "global.not", text, expected, Certain(lowest, "one example is a proof", len(pair))
        )
