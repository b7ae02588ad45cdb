r"""What `frei2023.thm2.1` measures around its flows: the smoothed margin, widths, inits, descent, small data."""

import math
import warnings
from typing import cast

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from tacit.base.linalg import span_axes
from tacit.data import Samples, sqrt_d_mixture
from tacit.errors import CallError
from tacit.lab import Bench
from tacit.measure import log_loss, normalised_margin
from tacit.measure.margins import log_expm1, margins, parameters
from tacit.nets import TwoLayerNet
from tacit.papers._shared.assumptions import check_assumption, most_clusters, noise_term
from tacit.papers.frei2023._shared.trained import stacked, start
from tacit.papers.frei2023.thm2_1.flows import (
    cosine,
    data_of,
    followed,
    in_single,
    residuals,
)
from tacit.papers.frei2023.thm2_1.settings import LOSSES, Direction
from tacit.train import FlowWarning, Until, descend, gradient_flow
from tacit.train.losses import LossName
from tacit.train.max_margin.every_pattern import global_max_margin
from tacit.train.max_margin.two_neuron import MaxMargin, two_neuron_max_margin

FRAMES = 100
SCOUTED, SCOUT = 500, 200  # from this width on the alignment phase is scouted, on so many points
CHUNK = 10  # steps of descent between two choices of its length
TINY_POINTS, TINY_DIMENSION, TINY_NOISE = 10, 3, 0.8  # the small data sets: clusters that overlap
TINY_WIDTH, TINY_INIT = 20, 0.01


def rises(config: Direction, bench: Bench) -> xr.Dataset:
    """The smoothed and the normalised margin along flows of `few` neurons in which nothing is merged."""
    shape = (len(config.sigma), len(LOSSES), 2 * FRAMES + 1)
    out = {name: np.full(shape, np.nan) for name in ("rise_depth", "rise_smoothed", "rise_margin")}
    for i, sigma in enumerate(config.sigma):
        _, samples = data_of(config, bench, sigma)
        for j, loss in enumerate(LOSSES):
            net = start(config.D, config.few, config.init[0], bench.generator("rise", sigma, loss))
            end = followed(
                net, samples, config.early, loss, record=FRAMES, merge_angle=0, tolerance=0.01
            )  # fmt: skip
            history = end.history[0]
            total = history.log_loss + math.log(len(samples.y))
            inverse = -total if loss == "exp" else -log_expm1(total)
            # ||w||^2 + v^2 from |v| ||w||, since ||w||^2 - v^2 is conserved
            kept = parameters(net)
            gap = kept[:, :-1].square().sum(1) - kept[:, -1].square()
            size = (gap.square() + 4 * (2 * history.log_mass).exp()).sqrt().sum(1)
            # the theorem's time begins where L < l(0)/n
            begun = inverse > 0
            count = int(begun.sum())
            out["rise_depth"][i, j, :count] = -history.log_loss[begun].numpy()
            out["rise_smoothed"][i, j, :count] = (inverse / size)[begun].numpy()
            out["rise_margin"][i, j, :count] = (history.margin / size)[begun].numpy()
    return xr.Dataset(
        {name: (("sigma", "rise_loss", "frame"), values) for name, values in out.items()}
    )


def widths(config: Direction, bench: Bench, seed: int) -> xr.Dataset:
    """Flows of several widths at the last noise level, from the smallest init."""
    sigma, rows = config.sigma[-1], []
    _, samples = data_of(config, bench, sigma, seed)
    limit = two_neuron_max_margin(samples.x, samples.y)
    for h in config.widths:
        net = start(config.D, h, config.init[0], bench.generator("width", h, seed=seed))
        end = followed(
            net,
            in_single(samples),
            config.shallow,
            config.loss[0],
            scout=SCOUT if h >= SCOUTED else 0,
        )
        found = residuals(end.net, samples, float(end.ended[0].book.retired.exp()))
        depth = -end.ended[0].log_loss
        # few neurons may all have one sign: then the points are not fitted, and the theorem is silent
        near = (
            cosine(end.net, limit.net)
            if depth > math.log(len(samples.y) / math.log(2))
            else math.nan
        )
        rows.append([found.rho, found.slackness, near, depth])
    names = ("width_rho", "width_slackness", "width_cosine", "width_reached")
    columns = np.array(rows).T
    return xr.Dataset(
        {name: (("width",), column) for name, column in zip(names, columns, strict=True)},
        coords={"width": list(config.widths)},
    )


def large_inits(config: Direction, bench: Bench) -> xr.Dataset:
    """Flows from larger inits at the first noise level, and the floors of their rho."""
    rows = []
    _, samples = data_of(config, bench, config.sigma[0])
    for init in config.large:
        net = start(config.D, config.h, init, bench.generator("large", init))
        end = followed(net, in_single(samples), config.shallow, config.loss[0], merge_angle=0)
        found = residuals(end.net, samples, enough=1e-2)
        size = float(parameters(end.net).square().sum())
        rows.append([found.rho, found.slackness, *floors(net, samples, size)])
    names = ("large_rho", "large_slackness", "floor_outside", "floor_balance", "floor_half")
    columns = np.array(rows).T
    return xr.Dataset(
        {name: (("large",), column) for name, column in zip(names, columns, strict=True)},
        coords={"large": list(config.large)},
    )


def floors(net: TwoLayerNet, samples: Samples, size: float) -> tuple[float, float, float]:
    """What rho cannot be below when ||theta||^2 has grown to `size` from `net`: by the weights outside the span
    of the points, by the balance, and ||theta_0||^2 / (2 size), which the second one is twice of where v_0 is
    small."""
    first = parameters(net)
    w, v = first[:, :-1], first[:, -1]
    axes = span_axes(torch.nn.functional.pad(samples.x, (0, 1), value=1.0))
    outside = (w - (w @ axes) @ axes.T).norm()
    balance = abs(float(w.square().sum() - v.square().sum()))
    return (
        float(outside) / math.sqrt(size),
        balance / size,
        float(first.square().sum()) / (2 * size),
    )


def descent(config: Direction, bench: Bench, seed: int) -> xr.Dataset:
    """Gradient descent of `few` neurons, its steps as long as the loss allows (Lyu & Li 2020, Section 5).

    The step is 1 / (max_i ||x~_i||^2 ||theta||^2 L): a constant one while L is of order 1, then growing as the
    loss falls.
    """
    _, samples = data_of(config, bench, config.sigma[-1], seed)
    limit = two_neuron_max_margin(samples.x, samples.y)
    loss = cast(LossName, config.loss[-1])
    first = start(config.D, config.few, config.init[-1], bench.generator("descent", seed=seed))
    net = first
    steep = float(samples.x.square().sum(1).max() + 1)
    now = 0.0
    for _ in range(round(40 * config.early)):
        level = float(log_loss(margins(net, samples.x, samples.y), loss))
        size = max(float(parameters(net).square().sum()), 1e-2)
        step = math.exp(-min(level, 0.0)) / (steep * size)
        net = descend(net, samples.x, samples.y, step=step, steps=CHUNK, loss=loss).net
        now = -float(log_loss(margins(net, samples.x, samples.y), loss))
        if now >= config.early:
            break
    flow = followed(first, samples, now, loss).net
    return xr.Dataset(
        {
            "descent_cosine": ((), cosine(net, limit.net)),
            "descent_flow_cosine": ((), cosine(flow, limit.net)),
        }
    )


def small_sets(config: Direction, bench: Bench) -> xr.Dataset:
    """Margins over the global optimum's on small data: of the flow, and of the exact two-neuron KKT point."""
    nets, sets = [], []
    for i in range(config.small):
        stream = bench.generator("small", i)
        mixture = sqrt_d_mixture(TINY_DIMENSION, 3, 1, TINY_NOISE, stream)
        samples = mixture.sample(TINY_POINTS, stream)
        while len(samples.y.unique()) < 2:
            samples = mixture.sample(TINY_POINTS, stream)
        nets.append(start(TINY_DIMENSION, TINY_WIDTH, TINY_INIT, stream))
        sets.append(samples)
    x, y = (torch.stack([getattr(s, name) for s in sets]) for name in ("x", "y"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlowWarning)
        end = gradient_flow(
            stacked(nets),
            x,
            y,
            until=Until(log_loss=-100.0, evaluations=config.looks),
            tolerance=0.1,
        )
    rows = []
    for i, samples in enumerate(sets):
        best = global_max_margin(samples.x, samples.y)
        flow = float(normalised_margin(end.member(i), samples.x, samples.y)) / best.margin
        try:
            two = two_neuron_max_margin(samples.x, samples.y)
            pair, rho = two.margin / best.margin, two.stationarity
        except CallError:  # two neurons do not fit these points
            pair, rho = math.nan, math.nan
        fitted = end.ended[i].log_loss < -math.log(TINY_POINTS)
        rows.append([flow if fitted else math.nan, -end.ended[i].log_loss, pair, rho])
    names = ("small_flow", "small_reached", "small_pair", "small_pair_rho")
    columns = np.array(rows).T
    return xr.Dataset({name: (("set",), c) for name, c in zip(names, columns, strict=True)})


def inside(config: Direction, bench: Bench, seed: int) -> xr.Dataset:
    """sum_i lambda_i v_j^2 phi_ij over each cluster at the exact KKT point, where Assumption 2.2 holds."""
    d = config.inside
    k = most_clusters(d, 1 / math.sqrt(d))
    stream = bench.generator("inside", d, seed=seed)
    mixture = sqrt_d_mixture(d, k, k // 2, 1 / math.sqrt(d), stream)
    samples = mixture.sample(math.ceil(k * math.log(d) ** 2), stream)
    known = check_assumption(mixture)
    found = two_neuron_max_margin(samples.x, samples.y)
    shares = cluster_shares(found, samples, k)
    own = torch.where(mixture.labels > 0, shares[:, 0], shares[:, 1])
    delta = noise_term(d, mixture.sd)
    c = known.left / (10 * known.right)  # the paper's c' <= 1/10
    return xr.Dataset(
        {
            "inside_own": (("inside_cluster",), own.numpy()),
            "inside_largest": ((), float(shares.max())),
            "inside_low": ((), (1 - c / (1 - 2 * c)) / (3 * d + delta + 1)),
            "inside_high": ((), 1 / ((1 - 2 * c) * (d - delta + 1))),
        }
    )


def cluster_shares(found: MaxMargin, samples: Samples, k: int) -> Float[Tensor, "k 2"]:
    """sum_{i in cluster q} lambda_i v_j^2 phi_ij for each cluster and neuron (frei2023, Lemmas A.10 and A.11)."""
    each = found.multipliers.unsqueeze(1) * found.net.v.square() * found.corners
    return torch.zeros(k, 2, dtype=torch.float64).index_add_(0, samples.z, each)
