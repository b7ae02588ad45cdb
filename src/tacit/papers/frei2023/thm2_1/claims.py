"""What `frei2023.thm2.1` claims, and the bars of its residuals."""

import math

import numpy as np
import xarray as xr

from tacit.lab import Bench, Claim, Expected, judge
from tacit.papers.frei2023.thm2_1.settings import Direction

STATIONARITY, SLACK = 2e-2, 5e-3  # for theta scaled to least margin 1
UNITED = 1e-3  # stationarity where one neuron of each sign is left
TINY = 1e-4  # inits up to this one leave little outside the two neurons
EXACT = 1e-7
NEAR = 1e-4  # 1 - cosine of the flow and the exact point
WHERE = "Section 2, Theorem 2.1"
SETTING = "d = {D}, k = {K}, width {h} (Theorem 2.1 does not ask for Assumption 2.2)"


def claims(data: xr.Dataset, config: Direction, bench: Bench) -> tuple[Claim, ...]:
    """All of them."""
    return (
        *flow_claims(data, config, bench),
        *limit_claims(data, config, bench),
        *sweep_claims(data, config, bench),
        *small_claims(data, config, bench),
    )


def last(values: xr.DataArray) -> np.ndarray:
    """The value at the depth where each flow stopped."""
    count = values.notnull().sum("depth")
    return np.asarray(values.isel(depth=count - 1).values)


def flow_claims(data: xr.Dataset, config: Direction, bench: Bench) -> list[Claim]:
    """The grid of flows, as they come."""
    setting = SETTING.format(D=config.D, K=config.K, h=config.h)
    rho, cells = last(data.rho), last(data.rho).size
    n = data.sizes["point"]
    text = "the worst of all noise levels, losses and inits; theta at least margin 1; " + setting
    return [
        bench.judge(
            "fitted",
            "every flow reaches L < l(0)/n, from where the theorem holds (measured: the least log-loss that one "
            f"reaches, less log(log(2)/n)); {setting}",
            WHERE,
            Expected(max=0.0),
            -float(last(data.reached).min()) - math.log(math.log(2) / n),
            n=cells,
        ),
        bench.judge(
            "rho",
            f"the direction is stationary: ||theta - sum lambda_i dm_i|| / ||theta||, {text}",
            WHERE,
            Expected(max=STATIONARITY),
            float(rho.max()),
            n=cells,
            because="the flow has not gone deep enough: rho falls with the depth, see the figure",
        ),
        bench.judge(
            "slackness",
            "and slack with the same multipliers, which are chosen among those that are (rho pays for it): "
            f"sum lambda_i (m_i - 1) / sum lambda_i, {text}",
            WHERE,
            Expected(max=SLACK * (1 + 1e-9)),
            float(last(data.slackness).max()),
            n=cells,
        ),
        bench.judge(
            "smoothed",
            "the smoothed margin l^-1(n L)/||theta||^2 never falls once L < l(0)/n (measured: its largest "
            f"relative fall from one recorded moment to the next; {config.few} neurons, none merged)",
            "Lyu & Li 2020, Section 4",
            Expected(max=0.0, tolerance=1e-3),
            largest_fall(data.rise_smoothed.values),
            n=int(np.isfinite(data.rise_smoothed).sum()),
            because="steps of the flow are exact to 1% of a unit of log-loss, not better",
        ),
    ]


def largest_fall(curves: np.ndarray) -> float:
    """The largest relative decrease between two moments of any curve; 0 where all rise."""
    before, after = curves[..., :-1], curves[..., 1:]
    fall = (before - after) / np.abs(before)
    return float(np.nanmax(fall, initial=0.0))


def limit_claims(data: xr.Dataset, config: Direction, bench: Bench) -> list[Claim]:
    """The exact KKT point, and the united flows near it."""
    depth = config.deep[-1]
    final = data.sel(deep=depth)
    tiny = [init for init in config.init if init <= TINY] or list(config.init)
    rho = final.deep_rho.sel(init=tiny).values
    ratio = (final.deep_margin / data.limit_margin).values
    points, exact = data.sizes["point"], data.limit_rho.values
    both = "(the larger of what its duals and an independent search for multipliers leave)"
    return [
        bench.judge(
            "united",
            f"rho with the neurons of each sign united, at log-loss -{depth:g}, init <= {max(tiny):g}: the worst",
            WHERE,
            Expected(max=UNITED),
            float(rho.max()),
            n=rho.size,
            because="rho falls as the depth grows, and this one is not deep enough",
        ),
        judge(
            "limit.rho",
            f"the exact limit, a convex program, is a KKT point: rho {both}",
            WHERE,
            Expected(max=EXACT),
            float(exact.max()),
            n=exact.size,
            smoke=False,
        ),
        judge(
            "limit.slackness",
            f"the exact limit, a convex program, is a KKT point: slackness {both}",
            WHERE,
            Expected(max=EXACT),
            float(data.limit_slackness.max()),
            n=exact.size,
            smoke=False,
        ),
        bench.judge(
            "cosine",
            f"the flow points at the exact KKT point: cosine over theta at log-loss -{depth:g}, the least of all "
            "noise levels, losses and inits, neurons of a sign united",
            WHERE,
            Expected(min=1 - NEAR),
            float(final.cosine.min()),
            n=final.cosine.size,
            because="1 - cosine falls as 1/|log L|, and this one is not deep enough",
        ),
        bench.judge(
            "margin",
            f"the united flow's margin over the exact point's, the least, at log-loss -{depth:g}: within "
            "log(n)/|log L|, the width of the smoothing, of 1",
            WHERE,
            Expected(min=1 - math.log(points) / depth, max=1 + 1e-9),
            float(ratio.min()),
            n=ratio.size,
        ),
    ]


def sweep_claims(data: xr.Dataset, config: Direction, bench: Bench) -> list[Claim]:
    """Widths, large inits, descent, and the proof's bounds on the multipliers."""
    floor = np.maximum(data.floor_outside.values, data.floor_balance.values)
    widths = ", ".join(map(str, config.widths))
    fitted = data.width_cosine.notnull().values
    clusters = data.sizes["inside_cluster"]
    gap, beside = 1 - float(data.descent_cosine), 1 - float(data.descent_flow_cosine)
    return [
        bench.judge(
            "width.rho",
            f"any width, {widths}: rho at log-loss -{config.shallow:g}, slackness <= {SLACK:g}, the worst of "
            f"those that fit their points (sigma = {config.sigma[-1]:g}, init {config.init[0]:g})",
            WHERE,
            Expected(max=STATIONARITY),
            float(data.width_rho.values[fitted].max(initial=0.0)),
            n=int(fitted.sum()),
        ),
        bench.judge(
            "width.cosine",
            f"and they point at one KKT point: the least cosine with the exact one, widths {widths}",
            WHERE,
            Expected(min=1 - 1e-3),
            float(data.width_cosine.values[fitted].min(initial=1.0)),
            n=int(fitted.sum()),
        ),
        judge(
            "large.floor",
            f"from large inits rho at log-loss -{config.shallow:g} is above its floor, by the weights outside "
            "the span of the points and by the balance of the layers (measured: their least ratio)",
            WHERE,
            Expected(min=1.0),
            float((data.large_rho.values / floor).min()),
            n=len(config.large),
            smoke=False,
        ),
        bench.judge(
            "descent",
            f"gradient descent ({config.loss[-1]}, {config.few} neurons, {int(data.descent_steps)} steps that "
            "grow as 1/L) goes the same way: 1 - cosine with the exact point, over that of the flow, at log-loss "
            f"-{float(data.descent_reached):.0f}",
            "Lyu & Li 2020, Section 4.3",
            Expected(max=2.0),
            gap / beside,
            n=1,
        ),
        judge(
            "multipliers.high",
            "sum over a cluster of lambda_i v_j^2 phi_ij at the exact KKT point, over the bound of Lemma A.10: "
            f"the largest (d = {config.inside}, k = {clusters}, sigma = 1/sqrt(d): inside Assumption 2.2)",
            "Appendix A, Lemma A.10",
            Expected(max=1.0),
            float(data.inside_largest / data.inside_high),
            n=clusters,
            smoke=False,
        ),
        judge(
            "multipliers.low",
            "the same sum for the neuron of the cluster's own sign, over the bound of Lemma A.11, the least",
            "Appendix A, Lemma A.11",
            Expected(min=1.0),
            float(data.inside_own.min() / data.inside_low),
            n=clusters,
            smoke=False,
        ),
    ]


def small_claims(data: xr.Dataset, config: Direction, bench: Bench) -> list[Claim]:
    """KKT points against the global optimum, on ten points in three dimensions."""
    both = np.concatenate([data.small_flow.values, data.small_pair.values])
    pair = data.small_pair.values[data.small_pair_rho.values <= EXACT]
    return [
        judge(
            "global.bound",
            "no flow, and no KKT point of two neurons, has a larger margin than the global optimum, "
            f"{config.small} data sets (measured: the largest ratio)",
            WHERE,
            Expected(max=1.0, tolerance=1e-6),
            float(np.nanmax(both)),
            n=int(np.isfinite(both).sum()),
            smoke=False,
        ),
        bench.judge(
            "global.not",
            "a KKT point need not be an optimum: the least margin of an exact KKT point of two neurons over "
            f"the global one, {len(pair)} sets that two neurons fit (they overlap: outside Assumption 2.2)",
            "Section 2, after Theorem 2.1",
            Expected(max=0.99),
            float(pair.min(initial=1.0)),
            n=len(pair),
        ),
    ]
