r"""Figures 2 and 5: nets trained from small weights, how far they are from F and F^(p), and where they break.

The paper trains by SGD: 80,200 steps of 0.2 on the mean exponential loss, a time of 16,040 (released config).
Here gradient flow itself is followed (`tacit.train.gradient_flow`: the alignment of all h neurons is scouted on a
few weighted points, then confirmed on all data) to one loss, exp(-11), in every run. With h = 2000, K = 10 that
is a time of about 15,000 at p = 1 and 35,000 at p = 3: the end of the released loop or somewhat later. At one
loss nets of different alpha are equally far on their way; margins grow as log(time).

p = 1 and p = 3 see one data set and one first set of weights. What is measured is the merged net, which is also
what is saved; `merge_error` says what merging changed in f, relative to its largest value.

**KKT.** theta / ||theta|| converges to a KKT point of the maximum-margin problem (Lyu & Li 2020). With the pulls
lambda_i = exp(-m_i) as multipliers the stationarity left is sin(theta, -grad L): an upper bound of the KKT
residual, in which no kink is used to advantage; at p = 1 `kkt_residual` uses them. `slackness` is
sum lambda_i (m_i / m_min - 1) / sum lambda_i of these pulls.
"""

import math
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from tacit.certify import radius
from tacit.data import ClusterMixture, Samples, min2024_mixture
from tacit.lab import Bench, Outcome
from tacit.measure.distance.function import function_distance
from tacit.measure.kkt.residual import kkt_cosine, kkt_residual
from tacit.measure.neurons import cosines, learned_directions
from tacit.measure.robustness import robust_curve
from tacit.nets import TwoLayerNet, average_net, centre_net
from tacit.papers.min2024.fig2.claims import SHOWN, claims
from tacit.papers.min2024.fig2.figure import (
    contribution_panel,
    cosine_panel,
    distance_panel,
    robust_panel,
)
from tacit.papers.min2024.fig2.settings import Conjecture, Experiment
from tacit.train import Flowed, FlowWarning, Until, gradient_flow

SCOUTS = 4  # weighted points for each centre


def run(config: Conjecture, bench: Bench) -> Outcome:
    """Train and measure every (alpha, seed), each a part of its own; then judge."""
    seeds = bench.seeds(config.repeats)
    cells = [(alpha, seed) for alpha in config.alpha for seed in seeds]
    found = [
        bench.part(
            f"alpha{alpha:g}-seed{seed}", partial(train_and_measure, config, bench, alpha, seed)
        )
        for alpha, seed in bench.steps(cells, f"data sets, {len(config.p)} nets each")
    ]
    nets = {
        f"p{p:g}-alpha{alpha:g}-seed{seed}": net_of(part, p)
        for (alpha, seed), part in zip(cells, found, strict=True)
        for p in config.p
    }
    apart = [name for name in found[0] if str(name).startswith(("w_", "v_"))] + ["centres"]
    plain = [part.drop_vars(apart) for part in found]
    rows = [plain[i : i + len(seeds)] for i in range(0, len(plain), len(seeds))]
    data: xr.Dataset = xr.combine_nested(rows, concat_dim=["alpha", "seed"])
    data = data.transpose("alpha", "seed", "p", ...).assign_coords(
        alpha=list(config.alpha), seed=seeds, p=list(config.p), end=["lower", "upper"],
        sign=["+", "-"], radius=list(config.radius),
    )  # fmt: skip
    at = cells.index((shown_alpha(config), seeds[0]))
    data = data.assign(curves(data, config) | shown(config, found[at]))
    data.attrs["shown"] = shown_alpha(config)
    return Outcome(data, claims(data, config, bench), nets)


@dataclass(frozen=True)
class Drawn:
    """A data set, and the weights before training, in float64."""

    mixture: ClusterMixture
    train: Samples
    test: Samples
    w: Float[Tensor, "h D"]
    v: Float[Tensor, " h"]


def draw_one(config: Experiment, bench: Bench, alpha: float, seed: int) -> Drawn:
    """The same for every p and for every way of training."""
    stream = bench.generator("fig2", alpha, seed=seed)
    mixture = min2024_mixture(config.D, config.K, config.K1, alpha, stream)
    test = mixture.sample(config.points, stream)
    w = config.init * torch.randn(config.h, config.D, generator=stream, dtype=torch.float64)
    v = config.init * torch.randn(config.h, generator=stream, dtype=torch.float64)
    return Drawn(mixture, mixture.sample(config.n, stream, dtype=torch.float32), test, w, v)


def train_and_measure(config: Conjecture, bench: Bench, alpha: float, seed: int) -> xr.Dataset:
    """One data set, a net for each p, and all that is read off them."""
    drawn = draw_one(config, bench, alpha, seed)
    mixture, test, w, v = drawn.mixture, drawn.test, drawn.w, drawn.v
    x, y = drawn.train.x.to(bench.device), drawn.train.y.to(bench.device)
    columns: dict[str, list[Any]] = {}
    apart: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        "centres": (("centre", "dim"), mixture.centres.numpy())
    }
    for p in config.p:
        with warnings.catch_warnings():
            # a run that stops early is counted (`reached`) and fails its claim
            warnings.simplefilter("ignore", FlowWarning)
            flowed = gradient_flow(
                TwoLayerNet(w.to(bench.device), v.to(bench.device), p=p), x, y,
                until=Until(log_loss=config.log_loss), scout=SCOUTS * config.K, seed=seed,
            )  # fmt: skip
        net = flowed.net
        here = replace(net, w=net.w.cpu(), v=net.v.cpu())
        for name, value in (
            of_flow(flowed) | of_kkt(net, x, y) | of_net(here, mixture, test)
        ).items():
            columns.setdefault(name, []).append(value)
        apart |= {
            f"w_{p:g}": ((f"neuron_{p:g}", "dim"), here.w.numpy()),
            f"v_{p:g}": ((f"neuron_{p:g}",), here.v.numpy()),
        }
    dims = {"distance": ("end",), "within": ("sign",), "lower": ("point",), "upper": ("point",),
            "contribution": ("neuron",), "group": ("neuron",)}  # fmt: skip
    stacked = {name: (("p", *dims.get(name, ())), np.array(each)) for name, each in columns.items()}
    return xr.Dataset(stacked | apart)


def of_flow(flowed: Flowed) -> dict[str, Any]:
    """How the training went, and what all first neurons contribute."""
    [end], [exact] = flowed.ended, flowed.exactness
    return {
        "reached": int(end.stopped == "loss"),
        "log_loss": end.log_loss,
        "log_time": end.log_time,
        "looks": end.looks,
        "energy_error": exact.energy_error,
        "merge_error": exact.merge_error,
        "scout_drift": exact.scout_drift,
        "contribution": flowed.contributions[0].double().cpu().numpy(),
        "group": flowed.group[0].cpu().numpy(),
    }


def of_kkt(net: TwoLayerNet, x: Float[Tensor, "n D"], y: Float[Tensor, " n"]) -> dict[str, float]:
    """cos(theta, -grad L), the KKT residual (p = 1) or its bound, the sine, and the slackness of the pulls (in
    float32: margins near 11 to five digits)."""
    m = y * replace(net, w=net.w.to(x), v=net.v.to(x))(x)
    least = m.min()
    slackness = float((torch.softmax(-m, 0) * (m / least - 1)).sum()) if least > 0 else math.inf
    cosine = float(kkt_cosine(net, x, y, "exp"))
    sine = math.sqrt(max(0.0, 1 - cosine**2)) if cosine > 0 else 1.0
    residual = min(sine, kkt_residual(net, x, y).stationarity) if net.p == 1 else sine
    return {"kkt_cosine": cosine, "kkt_residual": residual, "slackness": slackness}


def of_net(net: TwoLayerNet, mixture: ClusterMixture, test: Samples) -> dict[str, Any]:
    """Distance, what the neurons have learned, and the radius of each test point as an interval.

    `least`: the mass of the centre (or average) with the least, next to an equal share of its class's mass.
    """
    F = theory(mixture, net.p)
    directions = F.w
    learned = learned_directions(net, directions)
    sides = torch.stack([F.v > 0, F.v < 0])
    share = (learned.mass * sides).sum(0) * torch.where(F.v > 0, sides[0].sum(), sides[1].sum())
    found = function_distance(net, F)
    radii = radius(net, test.x, test.y)
    return {
        "distance": [found.lower, found.upper],
        "neurons": min(int((net.v * s > 0).sum()) for s in (1, -1)),
        "within": (learned.mass * sides).sum(1).numpy(),
        "least": float(share.min()),
        "lower": radii.lower.numpy(),
        "upper": radii.upper.numpy(),
    }


def theory(mixture: ClusterMixture, p: float) -> TwoLayerNet:
    """F at p = 1, else F^(p): the net that Conjecture 1 predicts, up to scale."""
    return average_net(mixture) if p == 1 else centre_net(mixture, p)


def net_of(part: xr.Dataset, p: float) -> TwoLayerNet:
    """The trained net that a part keeps."""
    w, v = (torch.from_numpy(part[f"{name}_{p:g}"].values.copy()) for name in ("w", "v"))
    return TwoLayerNet(w, v, p=p)


def shown_alpha(config: Experiment) -> float:
    """The alpha closest to the captions' .1."""
    return min(config.alpha, key=lambda alpha: abs(alpha - SHOWN))


def shown(config: Conjecture, part: xr.Dataset) -> dict[str, xr.DataArray]:
    """cos(w_j, mu) of all first neurons of one run with the two averages and the K centres; NaN once retired."""
    centres = torch.from_numpy(part.centres.values.copy())
    sums = [centres[: config.K1].sum(0), centres[config.K1 :].sum(0)]
    directions = torch.cat([torch.stack(sums), centres])
    rows = []
    for p in config.p:
        found = cosines(net_of(part, p), directions).numpy()
        group = part.group.values[config.p.index(p)]
        rows.append(np.where(group[:, None] >= 0, found[group], np.nan))
    names = ["average +", "average -", *(f"centre {k + 1}" for k in range(config.K))]
    return {
        "cosine": xr.DataArray(
            np.array(rows), dims=("p", "neuron", "direction"), coords={"direction": names}
        )
    }


def curves(data: xr.Dataset, config: Experiment) -> dict[str, xr.DataArray]:
    """Robust accuracy over the radius, all seeds together, and each net's critical radius, both as intervals."""
    kept = np.zeros((2, len(config.alpha), len(config.p), len(config.radius)))
    for a, i in np.ndindex(kept.shape[1:3]):
        lower, upper = (
            torch.from_numpy(data[end].values[a, :, i].ravel()) for end in ("lower", "upper")
        )
        curve = robust_curve(lower, upper, config.radius)
        kept[:, a, i] = [[c.certified.value for c in curve], [c.attacked.value for c in curve]]
    critical = xr.concat([data.lower.median("point"), data.upper.median("point")], "end")
    return {
        "robust": xr.DataArray(kept, dims=("end", "alpha", "p", "radius")),
        "critical": critical.transpose("alpha", "seed", "p", "end"),
    }


def draw(data: xr.Dataset, config: Conjecture) -> Figure:
    """A row for each p: (a) distance, (b) contributions, (c, d) cosines; (e) robust accuracy of all."""
    rows = len(config.p)
    figure = Figure(figsize=(13.5, 2.75 * max(rows, 1.4)))
    grid = figure.add_gridspec(rows, 4, width_ratios=[1, 1, 1.15, 1.35])
    for row, p in enumerate(config.p):
        here, letter = data.sel(p=p), chr(ord("c") + row)
        distance_panel(figure.add_subplot(grid[row, 0]), here, p, f"C{row}")
        contribution_panel(figure.add_subplot(grid[row, 1]), here, p, f"C{row}")
        cosine_panel(figure.add_subplot(grid[row, 2]), here, config, p, letter)
    robust_panel(figure.add_subplot(grid[:, 3]), data, config)
    return figure
