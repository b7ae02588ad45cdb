"""What the neurons of a trained net have learned: how much each adds, and where it looks (min2024, fig. 2)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.errors import CallError
from tacit.nets import TwoLayerNet


@dataclass(frozen=True)
class Learned:
    """Where the mass of each sign lies; rows are v > 0 and v < 0.

    `mass` (..., 2, m): the share of that sign's contributions whose nearest candidate is this one, within the
    threshold. `within` (..., 2): their sum over the candidates. `learned` (...): whether `within` reaches the
    share for both signs. A sign with no neuron has learned nothing: its shares are 0.
    """

    mass: Float[Tensor, "*e 2 m"]
    within: Float[Tensor, "*e 2"]
    learned: Bool[Tensor, "*e"]


def contributions(net: TwoLayerNet) -> Float[Tensor, "*e h"]:
    """|v_j| ||w_j|| in float64, what neuron j adds to f on unit points along it (min2024, fig. 2 b)."""
    return net.v.to(torch.float64).abs() * net.w.to(torch.float64).norm(dim=-1)


def cosines(net: TwoLayerNet, directions: Float[Tensor, "m D"]) -> Float[Tensor, "*e h m"]:
    """cos(w_j, direction) in float64, 0 where w_j = 0 (min2024, fig. 2 c, d)."""
    if directions.shape[-1] != net.w.shape[-1]:
        raise CallError(
            f"directions of dimension {directions.shape[-1]} for a net of dimension {net.w.shape[-1]}: "
            "they must agree"
        )
    if len(directions) == 0:
        raise CallError("no directions: cosines need at least one")
    directions = directions.to(torch.float64)
    size = directions.norm(dim=-1)
    if not bool((size > 0).all()):
        raise CallError(
            f"direction {int((~(size > 0)).nonzero()[0])} is zero or not a number: it has no cosine"
        )
    w = net.w.to(torch.float64)
    norm = w.norm(dim=-1, keepdim=True)
    return (w / torch.where(norm > 0, norm, 1.0)) @ (directions / size.unsqueeze(-1)).mT


def learned_directions(
    net: TwoLayerNet,
    candidates: Float[Tensor, "m D"],
    *,
    threshold: float = 0.95,
    share: float = 0.95,
) -> Learned:
    """Whether the neurons have learned the candidate directions, such as class averages or centres.

    A neuron counts for its nearest candidate where their cosine is at least `threshold`, with its contribution
    as its weight. The candidates are learned where such neurons hold at least `share` of the contributions of
    each sign. A sign may have learned one candidate of many: `mass` says which.
    """
    for name, value in (("threshold", threshold), ("share", share)):
        if not 0 < value <= 1:
            raise CallError(f"{name}={value:g}: it is a number above 0, at most 1")
    nearest = cosines(net, candidates).max(-1)
    close = nearest.values >= threshold
    chosen = torch.nn.functional.one_hot(nearest.indices, len(candidates)) * close.unsqueeze(-1)
    weight = contributions(net)
    signs = torch.stack([net.v > 0, net.v < 0], -2) * weight.unsqueeze(-2)
    total = signs.sum(-1, keepdim=True)
    mass = signs @ chosen.to(signs) / torch.where(total > 0, total, 1.0)
    within = mass.sum(-1)
    return Learned(mass, within, (within >= share).all(-1))
