r"""The flows of `frei2023.thm2.1`: from depth to depth, united to two neurons, and on to the exact limit."""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from tacit.data import ClusterMixture, Samples, sqrt_d_mixture
from tacit.errors import RunError
from tacit.lab import Bench
from tacit.measure import kkt_residual, normalised_margin
from tacit.measure.margins import margins, parameters
from tacit.nets import TwoLayerNet
from tacit.papers.frei2023._shared.trained import stacked, start
from tacit.papers.frei2023.thm2_1.claims import SLACK
from tacit.papers.frei2023.thm2_1.settings import Direction
from tacit.train import Flowed, FlowWarning, Until, gradient_flow
from tacit.train.losses import LossName
from tacit.train.max_margin.two_neuron import two_neuron_max_margin

TOLERANCE = 0.05  # of the flow; smaller ones do not lower rho, its depth does


def data_of(
    config: Direction, bench: Bench, sigma: float, seed: int | None = None
) -> tuple[ClusterMixture, Samples]:
    """The mixture of one noise level and its k ln^2 d training points."""
    stream = bench.generator("data", sigma, seed=seed)
    mixture = sqrt_d_mixture(config.D, config.K, config.K // 2, sigma, stream)
    return mixture, mixture.sample(math.ceil(config.K * math.log(config.D) ** 2), stream)


def followed(net: TwoLayerNet, samples: Samples, depth: float, loss: str, **more: Any) -> Flowed:
    """The flow to log-loss -depth; where it stops before, its log-loss tells, and the theorem is silent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlowWarning)
        return gradient_flow(
            net, samples.x, samples.y, until=Until(log_loss=-depth, evaluations=round(500 + 4 * depth)),
            loss=cast(LossName, loss), **{"tolerance": TOLERANCE, **more},
        )  # fmt: skip


def in_single(samples: Samples) -> Samples:
    """For a flow in float32: a third faster with many neurons, and the same rho (which is found in float64)."""
    return replace(samples, x=samples.x.float(), y=samples.y.float())


@dataclass(frozen=True)
class Residuals:
    """rho and slackness with the same multipliers; rho counts the retired weights as unexplained."""

    rho: float
    slackness: float


def residuals(
    net: TwoLayerNet,
    samples: Samples,
    retired: float = 0.0,
    *,
    slack: float = SLACK,
    enough: float = 1e-3,
) -> Residuals:
    """`retired` is the squared size of the weights that are no longer in the net."""
    found = kkt_residual(net, samples.x, samples.y, slack=slack, enough=enough)
    share = retired / float(parameters(net).square().sum())
    rho = math.sqrt((found.stationarity**2 + share) / (1 + share))
    return Residuals(rho, found.slackness)


def flow_of(
    config: Direction, bench: Bench, sigma: float, loss: str, init: float, seed: int
) -> xr.Dataset:
    """One flow, from depth to depth, and its neurons united."""
    _, samples = data_of(config, bench, sigma, seed)
    single = in_single(samples)
    net = start(config.D, config.h, init, bench.generator("start", sigma, loss, init, seed=seed))
    blank = [math.nan] * len(config.depths)
    kept = {name: list(blank) for name in ("rho", "slackness", "margin", "neurons", "reached")}
    retired = 0.0
    for i, depth in enumerate(config.depths):
        end = followed(net, single, depth, loss)
        net, retired = end.net, retired + float(end.ended[0].book.retired.exp())
        found = residuals(net, samples, retired)
        margin = float(normalised_margin(net, samples.x, samples.y))
        row = (found.rho, found.slackness, margin, len(net.v), -end.ended[0].log_loss)
        for name, value in zip(kept, row, strict=True):
            kept[name][i] = value
    return xr.Dataset(
        {name: (("depth",), np.array(values)) for name, values in kept.items()}
        | {"united": (("sign", "weight"), pair_of(net).numpy())}
    )


def pair_of(net: TwoLayerNet) -> Float[Tensor, "2 D1"]:
    """sum_j |v_j| (w_j, b_j) over the positive neurons, and over the negative ones."""
    assert net.b is not None
    rows = torch.cat([net.w, net.b.unsqueeze(1)], 1) * net.v.abs().unsqueeze(1)
    pair = torch.stack([rows[net.v > 0].sum(0), rows[net.v < 0].sum(0)])
    if bool((pair.norm(dim=1) == 0).any()):
        raise RunError("no neuron of one sign is left: take more neurons (h, few), or another seed")
    return pair


def pair_net(pair: Float[Tensor, "2 D1"]) -> TwoLayerNet:
    """The balanced net of two neurons, positive first."""
    root = pair.norm(dim=1).sqrt()
    w = pair / root.unsqueeze(1)
    return TwoLayerNet(w[:, :-1], root * torch.tensor([1.0, -1.0]).to(root), w[:, -1])


def cosine(one: TwoLayerNet, two: TwoLayerNet) -> float:
    """Over all of theta, each net united to two balanced neurons first."""
    a, b = (parameters(pair_net(pair_of(net))).flatten() for net in (one, two))
    return float(a @ b / (a.norm() * b.norm()))


def deep_of(
    config: Direction, bench: Bench, sigma: float, flows: list[xr.Dataset], seed: int
) -> xr.Dataset:
    """The exact limit of one noise level, and every united flow on its way there."""
    _, samples = data_of(config, bench, sigma, seed)
    limit = two_neuron_max_margin(samples.x, samples.y)
    exact = kkt_residual(limit.net, samples.x, samples.y, slack=1e-8, enough=0)
    pairs = [pair_net(torch.from_numpy(flow.united.values)) for flow in flows]
    net = stacked(pairs)
    shape = (len(config.loss), len(config.init))
    rows = np.full((len(pairs), len(config.deep), 5), np.nan)
    for k, depth in enumerate(config.deep):
        end = followed(net, samples, depth, "exp")
        members = [pair_net(pair_of(end.member(i))) for i in range(len(pairs))]
        found = [residuals(member, samples, enough=1e-4) for member in members]
        for i, (member, residual) in enumerate(zip(members, found, strict=True)):
            margin = float(normalised_margin(member, samples.x, samples.y))
            near, reached = cosine(member, limit.net), -end.ended[i].log_loss
            rows[i, k] = residual.rho, residual.slackness, near, margin, reached
        net = stacked(members)
    # at the end of the flow exp(-m_i) are multipliers, up to their length
    pull = torch.softmax(-margins(members[0], samples.x, samples.y), 0)
    kept = rows.reshape(*shape, len(config.deep), 5)
    names = ("deep_rho", "deep_slackness", "cosine", "deep_margin", "deep_reached")
    return xr.Dataset(
        {name: (("loss", "init", "deep"), kept[..., i]) for i, name in enumerate(names)}
        | {
            "limit": (("sign", "weight"), pair_of(limit.net).numpy()),
            "limit_margin": ((), limit.margin),
            "limit_rho": ((), max(limit.stationarity, exact.stationarity)),
            "limit_slackness": ((), max(abs(limit.slackness), abs(exact.slackness))),
            "multiplier": (("point",), limit.multipliers.numpy()),
            "pull": (("point",), pull.numpy()),
            "cluster": (("point",), samples.z.numpy()),
        }
    )
