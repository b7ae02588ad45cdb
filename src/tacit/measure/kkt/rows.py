r"""The derivative of a two-layer net in its parameters, kept as factors and not as h (D + 2) numbers a point.

With unit directions u_j, c_ij = relu(<w_j, x_i> + b_j) / ||w_j|| and x~ = (x, 1) where there are biases,

    df(x_i)/d(w_j, b_j) = slope_ij x~_i - turn_ij (u_j, 0),   slope = v p c^(p-1),   turn = v (p-1) c^p
    df(x_i)/dv_j        = hidden_ij                           hidden = ||w|| c^p

`turn` comes from the factor ||w_j||^(1-p) (min2024, Section 2). p = 1: slope = v where the neuron is on, else 0.
Where w_j = 0 and p > 1 the derivative in w_j is taken to be 0, which is in the Clarke subdifferential.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.nets import TwoLayerNet


@dataclass(frozen=True)
class Rows:
    """The factors at n points (float64), and the projections z_ij = <w_j, x_i> + b_j."""

    x: Float[Tensor, "*x n d"]
    unit: Float[Tensor, "*e h d"]
    z: Float[Tensor, "*e n h"]
    slope: Float[Tensor, "*e n h"]
    turn: Float[Tensor, "*e n h"]
    hidden: Float[Tensor, "*e n h"] | None  # None where v is fixed

    def total(self, weight: Float[Tensor, "*e n"]) -> Float[Tensor, "*e h P"]:
        """sum_i weight_i df(x_i), laid out as `parameters`."""
        weight = weight.unsqueeze(-1)
        turned = (self.turn * weight).sum(-2).unsqueeze(-1)
        first = (self.slope * weight).mT @ self.x - turned * self.unit
        if self.hidden is None:
            return first
        return torch.cat([first, (self.hidden * weight).sum(-2).unsqueeze(-1)], -1)

    def along(self, r: Float[Tensor, "h P"]) -> tuple[Float[Tensor, "n h"], Float[Tensor, " n"]]:
        """<x~_i, r_j>, and what the other terms of <df(x_i), r> sum to: the slopes are left to the caller."""
        d = self.x.shape[-1]
        rest = -self.turn @ (self.unit * r[:, :d]).sum(1)
        if self.hidden is not None:
            rest = rest + self.hidden @ r[:, d]
        return self.x @ r[:, :d].T, rest

    def products(self, r: Float[Tensor, "h P"]) -> Float[Tensor, " n"]:
        """<df(x_i), r>."""
        across, others = self.along(r)
        return (self.slope * across).sum(1) + others

    def gram(self) -> Float[Tensor, "n n"]:
        """<df(x_i), df(x_k)> of one net."""
        cross = (self.slope * (self.x @ self.unit.mT)) @ self.turn.mT
        gram = (self.slope @ self.slope.mT) * (self.x @ self.x.mT) + self.turn @ self.turn.mT
        gram = gram - cross - cross.mT
        return gram if self.hidden is None else gram + self.hidden @ self.hidden.mT

    def sizes(self) -> Float[Tensor, " n"]:
        """||df(x_i)|| of one net."""
        square = self.slope.square().sum(1) * self.x.square().sum(1) + self.turn.square().sum(1)
        square = square - 2 * (self.slope * self.turn * (self.x @ self.unit.mT)).sum(1)
        if self.hidden is not None:
            square = square + self.hidden.square().sum(1)
        return square.clamp_min(0).sqrt()

    def at(self, here: Int[Tensor, " m"], slope: Float[Tensor, "m h"]) -> Rows:
        """Some of the points (of one net), each with a slope of its own."""
        hidden = None if self.hidden is None else self.hidden[here]
        return replace(
            self,
            x=self.x[here],
            z=self.z[here],
            slope=slope,
            turn=self.turn[here],
            hidden=hidden,
        )


def derivative_rows(net: TwoLayerNet, x: Float[Tensor, "*x n D"], y: Float[Tensor, "*y n"]) -> Rows:
    """The factors of y_i df(x_i), of a float64 net: each row with the sign of its label."""
    x = x.to(torch.float64)
    z = x @ net.w.mT
    unit = net.w
    norm = net.w.norm(dim=-1).unsqueeze(-2)
    moving = norm > 0
    unit = unit / torch.where(moving, norm, 1.0).mT
    if net.b is not None:
        z = z + net.b.unsqueeze(-2)
        x = torch.cat([x, torch.ones_like(x[..., :1])], -1)
        unit = torch.cat([unit, torch.zeros_like(unit[..., :1])], -1)
    on = z.clamp_min(0)
    v = y.to(torch.float64).unsqueeze(-1) * net.v.unsqueeze(-2)
    if net.p == 1:
        slope, turn, hidden = v * (z > 0), torch.zeros_like(z), on
    else:
        # powers of the cosine's numerator, not of weights, which may be 1e-70
        c = torch.where(moving, on / torch.where(moving, norm, 1.0), 0.0)
        power = c ** (net.p - 1)
        slope, turn, hidden = v * net.p * power, v * (net.p - 1) * power * c, on * power
    hidden = hidden * y.to(torch.float64).unsqueeze(-1)
    return Rows(x, unit, z, slope, turn, None if net.fixed_v else hidden)
