r"""How much one hidden coordinate can change the output (allenzhu2020, Definition C.13 and Lemma C.20).

L_j is the smallest value with |f(x' + s M_j) - f(x')| <= L_j |s| for every s in [-1, 1], with high probability
over x' = x - z_j M_j, the point without feature j. Here it is a quantile over sampled points of the largest
quotient on a grid of s: from below, since a grid may miss the steepest s. Lemma C.20 starts from the bound
sum_i |<w_i, M_j>|, for the slope of a pair is at most 1.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.errors import CallError
from tacit.nets.smoothed import pair_value
from tacit.nets.symmetric import SymmetricNet


def coordinate_lipschitz(
    net: SymmetricNet,
    x: Float[Tensor, "n d"],
    z: Float[Tensor, "n D"],
    M: Float[Tensor, "d D"],
    features: Int[Tensor, " F"],
    *,
    grid: int = 20,
    quantile: float = 1.0,
) -> Float[Tensor, " F"]:
    """L_j of the features asked for, by `grid` values of |s| in (0, 1] of both signs; quantile 1: the maximum."""
    if grid < 1:
        raise CallError(f"grid={grid}: at least one value of |s| is needed")
    if not 0 < quantile <= 1:
        raise CallError(f"quantile={quantile:g}: it lies in (0, 1]")
    dictionary, before = M.to(net.w), net.before(x)
    steps = torch.arange(1, grid + 1, dtype=x.dtype, device=x.device) / grid
    found = []
    for j in features.tolist():
        turn = net.w @ dictionary[:, j]
        without = before - z[:, j : j + 1] * turn
        here = pair_value(without, net.b, net.sigma).sum(1)
        most = torch.zeros_like(here)
        for s in torch.cat([steps, -steps]).tolist():
            there = pair_value(without + s * turn, net.b, net.sigma).sum(1)
            most = torch.maximum(most, (there - here).abs() / abs(s))
        found.append(torch.quantile(most, quantile))
    return torch.stack(found)


def lipschitz_bound(net: SymmetricNet, M: Float[Tensor, "d D"]) -> Float[Tensor, " D"]:
    """sum_i |<w_i, M_j>|, for biases >= 0: Phi((t - b)/sigma) + Phi((-t - b)/sigma) <= 1."""
    if bool((net.b < 0).any()):
        raise CallError(
            "a negative bias: both halves of a pair can fire together, and the bound is no bound"
        )
    return (net.w @ M.to(net.w)).abs().sum(0)
