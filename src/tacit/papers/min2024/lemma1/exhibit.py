"""Lemma 1: while weights are small, u_j = w_j/||w_j|| follows u' = sign(v_j) P x^(p)(w_j).

The data are the K centres with their labels, the loss exp(-y f) summed over them (1), the start balanced (4):
w_j = eps w_j0 with uniform entries in (-1/sqrt(D), 1/sqrt(D)), |v_j| = ||w_j||, M = max_j ||w_j0||. Printed:

    max_j ||u_j' - sign(v_j) P x^(p)(w_j)|| <= 2 K p max_k |f(x_k)| <= 4 eps sqrt(h) M^2 K p        (60)
    max_j ||w_j||^2 <= 2 eps M^2 / sqrt(h),   max_k |f(x_k)| <= 2 eps sqrt(h) M^2                    (55)

for t <= T = log(1/(sqrt(h) eps)) / (4 K). Along the flow u_j' = sign(v_j) P sum_k g_k y_k p cos^(p-1) x_k with
g_k = -l'(y_k f(x_k)), so the difference on the left is P x^(p)(w_j) with labels y_k (g_k - 1).

**What is true besides.** Lemma 4 bounds the growth of ||w_j||^2 by exp(2 K g t), as if a neuron could be
parallel to all K centres. It grows by exp(2 G t) with G <= g s, s = max(K1, K2)^max(1 - p/2, 0) (Hoelder for
p < 2; s = 1 from p = 2 on), and g <= 1 + kappa, kappa = 4 eps sqrt(h) M^2. Hence both lines hold for all

    t <= T* = log(2/(sqrt(h) eps)) / (2 s (1 + kappa)),

about 2 K/s times as long, and up to T the error is at most
2 K p h M^2 eps^2 (sqrt(h) eps)^(-s (1 + kappa)/(2 K)): nearly of second order in eps.

The logistic loss has g = 1/2 at f = 0: there the field is half of the printed one, and (57) fails.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from tacit.base.estimate import Certain, least
from tacit.data import orthogonal_centres
from tacit.lab import Bench, Claim, Expected, Outcome
from tacit.measure import alignment_field
from tacit.nets import TwoLayerNet
from tacit.papers._shared.fits import exponent
from tacit.papers._shared.panels import MARKERS, THEORY
from tacit.papers._shared.universal import for_every
from tacit.papers.min2024.lemma1.balance import balance_claims, balance_panel, descended
from tacit.papers.min2024.lemma1.settings import EarlyPhase
from tacit.train import Until, gradient_flow
from tacit.train.losses import LossName, pull_at

WHERE = "Appendix D.3, Lemma 1"
PAST = 1.2  # records go on to this multiple of T*
TOLERANCE = 5e-3  # of a step: angles, relative masses
LOSSES: tuple[LossName, ...] = ("exp", "logistic")
PULL_AT_ZERO = {"exp": 1.0, "logistic": 0.5}  # -l'(0)


def run(config: EarlyPhase, bench: Bench) -> Outcome:
    """Follow the flow for each p, eps and loss; compare with the printed and the true bounds."""
    seeds = bench.seeds(config.repeats)
    cells = [(p, eps, seed) for p in config.p for eps in config.eps for seed in seeds]
    found = [
        bench.part(f"p{p}eps{eps}-{seed}", partial(one_flow, config, *drawn(config, bench, seed), p, eps))
        for p, eps, seed in bench.steps(cells, "flows")
    ]  # fmt: skip
    parts = iter(found)
    grid = [[[next(parts) for _ in seeds] for _ in config.eps] for _ in config.p]
    data: xr.Dataset = xr.combine_nested(grid, concat_dim=["p", "eps", "seed"])
    x, y = simplified(config)
    kept = [
        bench.part(
            f"balance-p{p}", partial(descended, config, begun(config, bench, p), x, y, LOSSES)
        )
        for p in config.p
    ]
    data = data.assign(xr.concat(kept, "p").data_vars)
    data = data.assign_coords(
        p=list(config.p), eps=list(config.eps), seed=seeds, step=list(config.step)
    )
    return Outcome(data, tuple(claims(data, config, bench)))


def drawn(
    config: EarlyPhase, bench: Bench, seed: int | None = None
) -> tuple[Float[Tensor, "h d"], Float[Tensor, " h"]]:
    """w_j0 and the signs of v_j: coordinates along the centres, and the length of the rest.

    The flow moves a neuron along the centres and scales the rest of it, so only the length of the rest
    matters: K + 1 coordinates are exact for every D.
    """
    generator = bench.generator("start", seed=seed)
    w0 = 2 * torch.rand(config.h, config.D, generator=generator, dtype=torch.float64) - 1
    w0 = w0 / math.sqrt(config.D)
    sign = 2.0 * torch.randint(0, 2, (config.h,), generator=generator).double() - 1
    rest = w0[:, config.K :].norm(dim=1, keepdim=True)
    return torch.cat([w0[:, : config.K], rest], 1), sign


def begun(config: EarlyPhase, bench: Bench, p: float) -> list[TwoLayerNet]:
    """The balanced nets of all seeds at the largest eps."""
    eps = max(config.eps)
    drawn_all = [drawn(config, bench, seed) for seed in bench.seeds(config.repeats)]
    return [TwoLayerNet(eps * w0, sign * eps * w0.norm(dim=1), p=p) for w0, sign in drawn_all]


def simplified(config: EarlyPhase) -> tuple[Float[Tensor, "K d"], Float[Tensor, " K"]]:
    """The centres, in K + 1 coordinates, and their labels."""
    labels = torch.where(torch.arange(config.K) < config.K1, 1.0, -1.0).double()
    return orthogonal_centres(config.K, config.K + 1), labels


def growth(config: EarlyPhase, p: float) -> float:
    """s: the largest sum_k relu(z_k)^p over the centres of one class for a unit w."""
    return max(config.K1, config.K - config.K1) ** max(1 - p / 2, 0.0)


def horizons(config: EarlyPhase, p: float, eps: float, M: float) -> tuple[float, float]:
    """The paper's T, and the T* up to which its bounds are true."""
    root = math.sqrt(config.h) * eps
    rate = 2 * growth(config, p) * (1 + 4 * root * M**2)
    return -math.log(root) / (4 * config.K), math.log(2 / root) / rate


def sharp_bound(config: EarlyPhase, p: float, eps: float, M: float) -> float:
    """What the error is at most up to T."""
    root = math.sqrt(config.h) * eps
    power = growth(config, p) * (1 + 4 * root * M**2) / (2 * config.K)
    return 2 * config.K * p * M**2 * root ** (2 - power)


def one_flow(
    config: EarlyPhase, w0: Float[Tensor, "h d"], sign: Float[Tensor, " h"], p: float, eps: float
) -> xr.Dataset:
    """Errors, norms and outputs over time, relative to their printed bounds, for both losses."""
    x, y = simplified(config)
    M = float(w0.norm(dim=1).max())
    T, true_T = horizons(config, p, eps, M)
    times = np.concatenate(
        [np.linspace(0, T, config.times), np.linspace(T, PAST * true_T, config.times + 1)[1:]]
    )
    root = math.sqrt(config.h) * eps
    bounds = (
        *(4 * root * M**2 * config.K * p,) * 2,
        *(2 * eps * M**2 / math.sqrt(config.h), 2 * root * M**2),
    )
    start = TwoLayerNet(eps * w0, sign * eps * w0.norm(dim=1), p=p)
    tables = np.full((len(LOSSES), len(times), len(bounds)), np.nan)
    # the logistic loss only up to T: what is printed about it fails at once
    for i, (loss, count) in enumerate(zip(LOSSES, (len(times), config.times), strict=True)):
        for j, net in enumerate([start, *trajectory(start, x, y, loss, times[1:count])]):
            tables[i, j] = (
                field_error(net, x, y, loss, 1.0),
                field_error(net, x, y, loss, PULL_AT_ZERO[loss]),
                float(net.w.norm(dim=1).max()) ** 2,
                float(net(x).abs().max()),
            )
    columns = (tables / np.array(bounds)).transpose(2, 0, 1)
    names = ("error", "error_scaled", "norm", "output")
    return xr.Dataset(
        {
            **{name: (("loss", "frame"), c) for name, c in zip(names, columns, strict=True)},
            "time": (("frame",), times),
            "T": ((), T),
            "true_T": ((), true_T),
            "bound": ((), bounds[0]),
            "sharp": ((), sharp_bound(config, p, eps, M)),
        },
        coords={"loss": list(LOSSES)},
    )


def trajectory(
    start: TwoLayerNet,
    x: Float[Tensor, "K d"],
    y: Float[Tensor, " K"],
    loss: LossName,
    times: np.ndarray,
) -> list[TwoLayerNet]:
    """The nets that the flow of the summed loss passes at the given times."""
    flow = gradient_flow(
        start,
        x,
        y,
        loss=loss,
        sample_weight=torch.ones_like(y),
        until=Until(time=float(times[-1])),
        record=[float(t) for t in times],
        watch=torch.eye(x.shape[1], dtype=torch.float64),
        merge_angle=0.0,
        tolerance=TOLERANCE,
    )
    (past,) = flow.history
    assert len(past.log_time) == len(times), "a moment for every time"
    size = (past.log_mass / 2).exp()
    return [
        TwoLayerNet(m.unsqueeze(1) * u, s * m, p=start.p)
        for m, u, s in zip(size, past.cosines, past.sign, strict=True)
    ]


def field_error(
    net: TwoLayerNet, x: Float[Tensor, "K d"], y: Float[Tensor, " K"], loss: LossName, pull: float
) -> float:
    """max_j ||u_j' - sign(v_j) P (pull x^(p)(w_j))|| along the flow of the summed loss at this net."""
    margin = y * net(x)
    # -l'(m) + l'(0) without cancellation: margins fall to 1e-15
    change = torch.expm1(-margin) if loss == "exp" else -0.5 * torch.tanh(margin / 2)
    field = alignment_field(net.w, x, y * (change + (PULL_AT_ZERO[loss] - pull)), net.p)
    u = net.w / net.w.norm(dim=1, keepdim=True)
    across = field - (field * u).sum(1, keepdim=True) * u
    return float(across.norm(dim=1).max())


def claims(data: xr.Dataset, config: EarlyPhase, bench: Bench) -> Iterator[Claim]:
    """(60) and (55) up to T and up to T*, the order in eps, the logistic loss: for each start the worst."""
    judge = bench.claims(WHERE + ", (60)", source="formula", bar="paper: the bound as printed",
                         regime="inside: simplified data, balanced start, eps <= 1/(4 sqrt(h) M^2)")  # fmt: skip
    our_judge = judge.but(source="ours", where=WHERE, bar="derived: the docstring of the exhibit")
    fourth_judge = judge.but(where="Appendix D.2, Lemma 4, (55)")
    early, longer = data.time <= data["T"] * (1 + 1e-9), data.time <= data.true_T
    until_T, until = (
        data[["error", "error_scaled", "norm", "output"]].where(when) for when in (early, longer)
    )
    exp, logistic = (until_T.sel(loss=loss) for loss in LOSSES)
    error = exp.error.max("frame") * data.bound
    slopes = [
        exponent(config.eps, error.sel(p=p).transpose("eps", "seed").values, of=len(config.p), over="starts")
        for p in config.p
    ]  # fmt: skip
    text = "the largest error until T is O(eps) (least slope over p, log against log)"
    yield judge("order", text, Expected(min=1.0), least(slopes), bar="paper: O(eps)", where=WHERE)
    kept = until[["error", "norm", "output"]].sel(loss="exp").to_array()
    half = "-l'(0) = 1/2 for the logistic loss: neurons follow half of the printed field (errata: Lemma 6)"
    for this_judge, id, text, found in (
        (judge, "error", "the direction follows the field up to 4 eps sqrt(h) M^2 K p until T", exp.error),
        (fourth_judge, "norms", "||w_j||^2 is below 2 eps M^2/sqrt(h) until T", exp.norm),
        (fourth_judge, "outputs", "|f(x_k)| is below 2 eps sqrt(h) M^2 until T", exp.output),
        (our_judge, "order.true", "the error until T is below 2 K p M^2 (sqrt(h) eps)^(2 - s(1+kappa)/(2K))",
         error / data.sharp),
        (our_judge, "horizon", "all three bounds hold until T* = log(2/(sqrt(h) eps))/(2 s (1+kappa))", kept),
        (judge, "logistic", "the same for the logistic loss, as printed", logistic.error),
        (our_judge, "logistic.half", "the same for the logistic loss, half of the field", logistic.error_scaled),
    ):  # fmt: skip
        each = found.max([dim for dim in found.dims if dim != "seed"])
        text, why = f"{text}: largest part of it", half if id == "logistic" else ""
        yield for_every(this_judge, id, text, Expected(max=1.0), each, why, "starts")
    yield from balance_claims(judge, data, config)
    grid = torch.linspace(-1, 1, 2001, dtype=torch.float64)
    for loss in LOSSES:
        excess = ((pull_at(grid, loss) - 1).abs() - 2 * grid.abs()).max()
        text = f"|-l' - y| <= 2 |f| for |f| <= 1, {loss} loss (largest excess)"
        yield judge(f"lemma6.{loss}", text, Expected(max=0.0), Certain(float(excess), "a closed form", len(grid)),
                    where="Appendix D.2, Lemma 6, (57)", any_size=True,
                    because="at f = 0 the left side is 1/2 and the right side 0 (errata: Lemma 6)")  # fmt: skip


def draw(data: xr.Dataset, config: EarlyPhase) -> Figure:
    """Error and bound over time for each eps, the largest error over eps, and the balance over the step."""
    figure = Figure(figsize=(13.4, 4.0))
    left, right, last = figure.subplots(1, 3, width_ratios=[1.15, 1, 1])
    p = 3.0 if 3.0 in config.p else config.p[-1]
    first = data.isel(seed=0)
    time_panel(left, first.sel(p=p), config, p)
    order_panel(right, first, config, p)
    balance_panel(last, first, config)
    return figure


def time_panel(axes: Axes, data: xr.Dataset, config: EarlyPhase, p: float) -> None:
    """Measured error (solid) and (60) (dashed) against t/T."""
    for index, eps in enumerate(config.eps):
        here = data.sel(eps=eps)
        t = here.time / here["T"]
        colour = f"C{index}"
        axes.plot(t, here.error.sel(loss="exp") * here.bound, color=colour,
                  label=rf"$\epsilon$ = {eps:g}")  # fmt: skip
        axes.hlines(float(here.bound), 0, float(t.max()), color=colour, linestyle="--", linewidth=1)
        axes.plot(
            float(here.true_T / here["T"]), float(here.bound), "|", color=colour, markersize=12
        )
    axes.axvline(1, color="0.15", linewidth=1)
    axes.annotate("$T$: the lemma\nends here", (1, 0.985), xycoords=("data", "axes fraction"),
                  xytext=(4, 0), textcoords="offset points", va="top", fontsize="small")  # fmt: skip
    axes.plot([], [], "--", color="0.4", linewidth=1, label="bound (60)")
    axes.plot(
        [], [], "|", color="0.4", markersize=10, linestyle="", label="$T^*$: true at least to here"
    )
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set(ylim=(low, high * 30), xlabel="time $t/T$")
    axes.set_ylabel(r"$\max_j\|\dot u_j-\mathrm{sign}(v_j)\,P\,x^{(p)}(w_j)\|$")
    axes.set_title(f"$p$ = {p:g}, $K$ = {config.K}, $h$ = {config.h}, exponential loss")
    axes.legend(loc="lower right", fontsize="small", ncols=2)


def order_panel(axes: Axes, data: xr.Dataset, config: EarlyPhase, p: float) -> None:
    """The largest error until T over eps, the bound's slope 1, and the logistic loss."""
    early = data.time <= data["T"] * (1 + 1e-9)
    most = data.error.where(early).max("frame") * data.bound
    for index, power in enumerate(config.p):
        axes.plot(config.eps, most.sel(p=power, loss="exp"), MARKERS[index % 7] + "-",
                  color=f"C{index}", label=f"$p$ = {power:g}")  # fmt: skip
        axes.plot(config.eps, data.bound.sel(p=power), **{**THEORY, "color": f"C{index}"})
    axes.plot([], [], label="bound (60), slope 1", **THEORY)
    axes.plot(config.eps, most.sel(p=p, loss="logistic"), "x:", color="0.15",
              label=f"logistic, $p$ = {p:g}")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel=r"initialization scale $\epsilon$")
    axes.set(ylabel="largest error until $T$", title="the error is nearly of second order")
    axes.legend(loc="lower right", fontsize="small")
