"""The right-hand side of the flow on labelled points: how the data pull at each neuron, and the loss.

    G_j    = sum_i ghat_i y_i relu(<x_i, u_j>)^p
    turn_j = P_u grad G = p sum_i ghat_i y_i relu(<x_i, u_j>)^(p-1) x_i - p G_j u_j

with the pulls g_i = -c_i l'(margin_i) divided by their sum: ghat sums to 1, the sum itself (`log_pull`) and the
loss sum_i c_i l(margin_i) are kept as logarithms. Both losses are computed in log space, so that nothing is lost
at a log-loss of -1000. One pass over the points in blocks, rescaled as the largest pull is met.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from tacit.train.flow.ensemble import Ensemble, Members
from tacit.train.flow.neurons import Neurons
from tacit.train.losses import LossName

BLOCK = 20_000_000  # activations held at once
Power = float | Float[Tensor, "E 1 1"]


@dataclass(frozen=True)
class Points:
    """Labelled points, shared by all members (one leading 1) or one set each, with weights c_i as logarithms."""

    x: Float[Tensor, "B n D"]
    y: Float[Tensor, "B n"]
    log_c: Float[Tensor, "B n"]
    loss: LossName

    def members(self, index: Tensor) -> Points:
        """The points of some of the members."""
        if self.x.shape[0] == 1:
            return self
        return Points(self.x[index], self.y[index], self.log_c[index], self.loss)


@dataclass(frozen=True)
class Field(Ensemble):
    """What one look at the data gives. `margin` is the least one, y_i f(x_i)."""

    G: Float[Tensor, "E k"]
    turn: Float[Tensor, "E k D"]
    log_loss: Members
    log_pull: Members
    margin: Members


def field_at(neurons: Neurons, points: Points, p: Power) -> Field:
    """The field of every member at its own points."""
    E, k, _ = neurons.u.shape
    A = neurons.A.unsqueeze(1)
    n = points.x.shape[1]
    rows = max(1, BLOCK // (E * k))
    total: Field | None = None
    for start in range(0, n, rows):
        part = slice(start, start + rows)
        x, y, log_c = points.x[:, part], points.y[:, part], points.log_c[:, part]
        value, slope = activate(products(neurons.u, x), p)
        margin = y * (A @ value).squeeze(1)
        log_g, log_l = log_pulls(margin, points.loss)
        log_g, log_l = log_g + log_c, log_l + log_c
        log_pull = log_g.logsumexp(-1)
        pull = (log_g - log_pull.unsqueeze(-1)).exp() * y
        G = (value @ pull.unsqueeze(-1)).squeeze(-1)
        grad = times_points(slope * pull.unsqueeze(1), x)
        seen = Field(G, grad, log_l.logsumexp(-1), log_pull, margin.amin(-1))
        total = seen if total is None else added(total, seen)
    assert total is not None
    power = p if isinstance(p, float) else p.squeeze(-1)
    along = (power * total.G).unsqueeze(-1)
    turn = total.turn - along * neurons.u
    return Field(total.G, turn, total.log_loss, total.log_pull, total.margin)


def added(one: Field, two: Field) -> Field:
    """Two blocks of points as one: pulls renormalised to their common sum."""
    log_pull = torch.logaddexp(one.log_pull, two.log_pull)
    a, b = (one.log_pull - log_pull).exp(), (two.log_pull - log_pull).exp()
    return Field(
        a.unsqueeze(-1) * one.G + b.unsqueeze(-1) * two.G,
        a.reshape(-1, 1, 1) * one.turn + b.reshape(-1, 1, 1) * two.turn,
        torch.logaddexp(one.log_loss, two.log_loss),
        log_pull,
        torch.minimum(one.margin, two.margin),
    )


def outputs(neurons: Neurons, x: Float[Tensor, "B n D"], p: Power) -> Float[Tensor, "E n"]:
    """f at the points."""
    value, _ = activate(products(neurons.u, x), p)
    return (neurons.A.unsqueeze(1) @ value).squeeze(1)


def activate(
    z: Float[Tensor, "E k n"], p: Power
) -> tuple[Float[Tensor, "E k n"], Float[Tensor, "E k n"]]:
    """relu(z)^p and its derivative (0 at the kink of p = 1)."""
    active = z.clamp_min(0)
    if isinstance(p, float):
        if p == 1:
            return active, (z > 0).to(z.dtype)
        power = active if p == 2 else active ** (p - 1)
        return active * power, p * power
    power = active ** (p - 1)
    return active * power, p * power * (z > 0)


def log_pulls(
    margin: Float[Tensor, "E n"], loss: Literal["exp", "logistic"]
) -> tuple[Float[Tensor, "E n"], Float[Tensor, "E n"]]:
    """log(-l'(m)) and log l(m), point by point."""
    if loss == "exp":
        return -margin, -margin
    # log log(1 + exp(-m)) = -m + log1p(-exp(-m)/2 + ...): beyond 20 the series is exact to rounding
    near = torch.log(-logsigmoid(margin.clamp_max(20)))
    return logsigmoid(-margin), torch.where(margin > 20, -margin, near)


def products(u: Float[Tensor, "E k D"], x: Float[Tensor, "B n D"]) -> Float[Tensor, "E k n"]:
    """<u_j, x_i>. For a few neurons and many points BLAS is twice as fast with the points as rows."""
    if u.shape[0] == 1 and u.shape[1] >= 4:
        return (x @ u.mT).mT
    return u @ (x[0].mT if x.shape[0] == 1 else x.mT)


def times_points(b: Float[Tensor, "E k n"], x: Float[Tensor, "B n D"]) -> Float[Tensor, "E k D"]:
    """sum_i b_ji x_i; shared points make it one product."""
    return b @ (x[0] if x.shape[0] == 1 else x)
