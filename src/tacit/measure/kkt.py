r"""How close a net is to a KKT point of the maximum-margin problem in parameter space.

    min 1/2 ||theta||^2   such that   m_i(theta) = y_i f(x_i; theta) >= 1 for every i      (frei2023, eq. (2))

Gradient flow of the exponential or logistic loss converges in direction to such a point once every point is
right (Lyu & Li 2020; Ji & Telgarsky 2020; frei2023, Theorem 2.1). theta is scaled so that the least margin is 1.
It is then feasible, and what remains is stationarity and complementary slackness (frei2023, eq. (3), (4)),

    theta = sum_i lambda_i d m_i(theta),   lambda_i >= 0,   lambda_i = 0 where m_i > 1,

in every row of theta: first layer, biases, second layer (unless it is fixed), dead neurons too. d m_i is any
member of the Clarke subdifferential: where |<w_j, x_i> + b_j| <= kink ||w_j|| ||x_i|| and p = 1, the derivative
of relu is any number phi_ij in [0, 1]. All in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from tacit.errors import CallError
from tacit.measure.kkt_cone import SOFT, nearest_in_cone
from tacit.measure.kkt_rows import Rows, derivative_rows
from tacit.measure.margins import (
    blocks,
    check_labelled,
    degree,
    in_float64,
    margins,
    parameters,
    size_to_degree,
)
from tacit.nets import TwoLayerNet
from tacit.train.losses import LossName

FEWEST, MOST = 128, 1024  # points of least margin that the search for multipliers begins with
ADDED = 256  # columns that join in a round, at most
ROUNDS = 200
CLOSE = 2e-4  # the search ends where this is all that stationarity squared can still fall by, relatively
ROUNDING = 1e-13  # of what is left of theta, next to theta
REFINED = 2  # steps of refinement
TINY = 1e-300


@dataclass(frozen=True)
class Kkt:
    """The best multipliers found, for theta scaled to least margin 1, and what they leave.

    `stationarity`: ||theta - sum_i lambda_i d m_i|| / ||theta||. `feasibility`: max(0, 1 - least margin), 0 after
    the scaling; inf where a margin is <= 0: no scaling helps then, stationarity and slackness are inf too, and
    the multipliers 0. `slackness`: sum_i lambda_i (m_i - 1) / sum_i lambda_i. `gap`: no multipliers within
    the budget of slackness have a stationarity below `stationarity` - `gap`. `least_margin`: before the scaling.
    """

    stationarity: float
    feasibility: float
    slackness: float
    multipliers: Float[Tensor, " n"]
    gap: float
    least_margin: float

    @property
    def statement(self) -> str:
        """One sentence for a reader."""
        if math.isinf(self.feasibility):
            return (
                f"no KKT point at any scale: the least margin is {self.least_margin:.3g}, so that a point is "
                "broken; train until every margin is positive"
            )
        support, n = int((self.multipliers > 0).sum()), len(self.multipliers)
        return f"stationarity {self.stationarity:.3g}, slackness {self.slackness:.3g}, by {support} of {n} points"


def kkt_cosine(
    net: TwoLayerNet, x: Float[Tensor, "*x n D"], y: Float[Tensor, "*y m"], loss: LossName
) -> Float[Tensor, "*e"]:
    """cos(theta, -grad L(theta)) over all trained parameters, dead neurons included: 1 at a KKT point.

    The points weigh g_i / sum g, g_i = -l'(m_i), by log-sum-exp: it works at a loss of e^-1000. relu'(0) = 0.
    Where the gradient vanishes (every neuron off at every point) it is 0.
    """
    margin = margins(net, x, y)
    net = in_float64(net)
    size_to_degree(net)  # refuses a net that is zero
    weight = torch.softmax(-margin if loss == "exp" else logsigmoid(-margin), -1)
    pull = torch.zeros_like(parameters(net))
    for part in blocks(net, x):
        rows = derivative_rows(net, x[..., part, :], y[..., part].expand_as(weight[..., part]))
        pull = pull + rows.total(weight[..., part])
    theta, pull = parameters(net).flatten(-2), pull.flatten(-2)
    size = pull.norm(dim=-1)
    pull = pull / torch.where(size > 0, size, 1.0).unsqueeze(-1)
    return (theta * pull).sum(-1) / theta.norm(dim=-1)


def kkt_residual(
    net: TwoLayerNet,
    x: Float[Tensor, "n D"],
    y: Float[Tensor, " m"],
    *,
    slack: float = math.inf,
    kink: float = 1e-4,
    enough: float = 1e-2,
) -> Kkt:
    """The multipliers and Clarke selections with the least stationarity among those of slackness <= `slack`.

    Both numbers are of the same multipliers, and neither says much without the other: points off the margin may
    lower the stationarity. A flow at loss e^-l has slackness of the order of log(n) / l, so that a small budget
    asks for a deep flow. The budget may be used up where less would do: lower it to see. slack=inf minimises the
    stationarity alone. `kink` is the relative distance at which a ReLU is taken to be at its kink (p = 1). One
    net, not an ensemble; where parallel neurons are many, merge them first: a round costs n h D.

    The search ends once the stationarity is at most `enough`, or the least to 1e-4 of itself. First of all the
    pulls of the exponential loss, lambda_i ~ exp(-m_i) before the scaling, are tried: near the end of a flow they
    are multipliers. To know the least, take enough=0; with thousands of support points that takes minutes.

    With lambda_i phi_ij = mu_ij in [0, lambda_i] this is the projection of theta onto a cone, under one linear
    inequality. Its columns are the points' derivatives at every corner phi in {0, 1} of the kinks, made where
    they are needed: a round solves for the columns at hand (`kkt_cone`), then asks of every point for the corner
    that the rest of theta favours most. A column's price, <d m_i, rest> less its share of the budget, bounds what
    all further rounds can gain, since sum_i lambda_i <d m_i, theta> <= ||theta||^2 at the optimum.
    """
    if net.w.dim() != 2:
        raise CallError("an ensemble has a residual for each member: pass one net at a time")
    if not slack > 0:
        raise CallError(f"slack={slack:g}: a budget above 0 is needed (inf: stationarity alone)")
    if not 0 <= enough < 1:
        raise CallError(f"enough={enough:g}: a stationarity from 0 to below 1 is needed")
    if not kink >= 0:
        raise CallError(f"kink={kink:g}: a relative distance, 0 or more, is needed")
    check_labelled(net, x, y)
    size_to_degree(net)
    margin = margins(net, x, y)
    least = float(margin.min())
    if least <= 0:
        none = torch.zeros_like(margin)
        return Kkt(math.inf, math.inf, math.inf, none, math.inf, least)
    net = scaled(in_float64(net), least ** (-1 / degree(net)))
    x, y = x.to(torch.float64), y.to(torch.float64)
    rows = derivative_rows(net, x, y)
    pulls = of_pulls(net, rows, margin, slack)
    if pulls.stationarity <= enough:
        return pulls
    found = projected(net, rows, y, margin / least, at_kink(net, x, kink), slack, enough)
    return replace(found, least_margin=least)


def of_pulls(net: TwoLayerNet, rows: Rows, margin: Float[Tensor, " n"], slack: float) -> Kkt:
    """What multipliers lambda_i ~ exp(-m_i), of the best length, leave; inf where they exceed the budget.

    `margin` is that of the given net, `net` and `rows` are scaled to least margin 1.
    """
    least = float(margin.min())
    weight = torch.softmax(-margin, 0)
    slackness = float(weight @ (margin / least - 1))
    theta, pull = parameters(net), rows.total(weight)
    length = float((theta * pull).sum() / pull.square().sum())
    rho = float((theta - length * pull).norm() / theta.norm()) if slackness <= slack else math.inf
    return Kkt(rho, 0.0, slackness, length * weight, rho, least)


def scaled(net: TwoLayerNet, factor: float) -> TwoLayerNet:
    """All trained parameters times `factor`."""
    b = None if net.b is None else net.b * factor
    return replace(net, w=net.w * factor, b=b, v=net.v if net.fixed_v else net.v * factor)


def at_kink(net: TwoLayerNet, x: Float[Tensor, "n D"], kink: float) -> Bool[Tensor, "n h"]:
    """Where a ReLU is at its kink to the tolerance; nowhere where p > 1, which has a derivative."""
    z = x @ net.w.T if net.b is None else x @ net.w.T + net.b
    near = z.abs() <= kink * x.norm(dim=1).unsqueeze(1) * net.w.norm(dim=1)
    return near if net.p == 1 else torch.zeros_like(near)


def projected(
    net: TwoLayerNet,
    rows: Rows,
    y: Float[Tensor, " n"],
    margin: Float[Tensor, " n"],
    kink: Bool[Tensor, "n h"],
    slack: float,
    enough: float,
) -> Kkt:
    """The rounds of `kkt_residual`, for a net whose least margin is 1."""
    theta = parameters(net)
    size = float(theta.norm())
    theta = theta / size
    signed = y.unsqueeze(1) * net.v
    over = margin - 1 - slack if math.isfinite(slack) else torch.zeros_like(margin)
    # <d m_i, theta> at least: its homogeneous value, less what a kink within the tolerance may take away
    pull = degree(net) * margin - (kink * (net.v * rows.z).abs()).sum(1)
    pull = pull.clamp_min(TINY) / size
    norm = rows.sizes().clamp_min(TINY)
    near = int((margin <= 1 + min(slack, 1.0)).sum())
    chosen = margin.argsort()[: min(max(near, FEWEST), MOST)]
    slope = rows.slope[chosen]
    on = torch.zeros_like(chosen, dtype=torch.bool)
    for left in reversed(range(ROUNDS)):
        weight, toll, rest = fitted(rows.at(chosen, slope), theta, over[chosen], on)
        rho = float(rest.norm())
        across, others = rows.along(rest)
        gain = torch.where(kink, (signed * across).clamp_min(0), rows.slope * across)
        price = gain.sum(1) + others - toll * over
        bound = 2 * float((price / pull).amax().clamp_min(0))
        worth = price / norm
        joining = worth.argsort(descending=True)[:ADDED]
        joining = joining[worth[joining] > ROUNDING]
        done = rho <= max(enough, ROUNDING) or bound <= CLOSE * rho**2 or len(joining) == 0
        if done or left == 0:  # out of rounds: `gap` says what may be missing
            break
        favoured = signed[joining] * (signed * across)[joining].gt(0)
        corner = torch.where(kink[joining], favoured, rows.slope[joining])
        kept = weight > 0
        chosen, slope = torch.cat([chosen[kept], joining]), torch.cat([slope[kept], corner])
        on = torch.arange(len(chosen), device=margin.device) < int(kept.sum())
    multipliers = torch.zeros_like(margin).index_add_(0, chosen, weight) * size
    slackness = float((multipliers * (margin - 1)).sum() / multipliers.sum())
    gap = rho - math.sqrt(max(0.0, rho**2 - bound))
    return Kkt(rho, 0.0, slackness, multipliers, gap, 1.0)


def fitted(
    columns: Rows,
    theta: Float[Tensor, "h P"],
    over: Float[Tensor, " s"],
    on: Bool[Tensor, " s"],
) -> tuple[Float[Tensor, " s"], float, Float[Tensor, "h P"]]:
    """The best weights of the columns with <over, weights> <= 0, the multiplier of that, the rest of theta.

    `on`: the columns that are likely to have a positive weight.
    """
    length = columns.sizes().clamp_min(TINY)
    c = over / length
    unit = float(c.abs().amax().clamp_min(TINY))
    c = c / unit
    G = columns.gram() / length.unsqueeze(1) / length
    nu, omega, pivot = nearest_in_cone(G, products(columns, theta) / length, c, on)
    for _ in range(REFINED):  # from the true rest: inner products alone lose half of the digits
        rest = theta - columns.total(nu / length)
        more, further = pivot.solve(
            products(columns, rest) / length - omega * c, c, SOFT * omega - float(c @ nu)
        )
        nu, omega = (nu + more).clamp_min(0), max(omega + further, 0.0)
    return nu / length, omega / unit, theta - columns.total(nu / length)


def products(columns: Rows, r: Float[Tensor, "h P"]) -> Float[Tensor, " s"]:
    """<d m, r> of each column."""
    across, others = columns.along(r)
    return (columns.slope * across).sum(1) + others
