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

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from tacit.base.shapes import Numbers, Sets
from tacit.errors import CallError
from tacit.measure.kkt.cone import SOFT, Weights, nearest_in_cone
from tacit.measure.kkt.pulls import eased, pulls
from tacit.measure.kkt.rows import Rows, derivative_rows
from tacit.measure.margins import (
    blocks,
    check_labelled,
    degree,
    margins,
    parameters,
    size_to_degree,
)
from tacit.nets import TwoLayerNet
from tacit.train.losses import LossName

FEWEST, MOST = 128, 1024  # points of least margin that the search for multipliers begins with
ADDED = 256  # columns that join in a round, at most
ROUNDS = 200
WORK = 6e9  # multiplications that the pulls, and again the rounds, may take: about 2 s of one core
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
    multipliers: Numbers
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
    net: TwoLayerNet, x: Sets, y: Float[Tensor, "*y m"], loss: LossName
) -> Float[Tensor, "*e"]:
    """cos(theta, -grad L(theta)) over all trained parameters, dead neurons included: 1 at a KKT point.

    The points weigh g_i / sum g, g_i = -l'(m_i), by log-sum-exp: it works at a loss of e^-1000. relu'(0) = 0.
    Where the gradient vanishes (every neuron off at every point) it is 0.
    """
    margin = margins(net, x, y)
    net = net.double()
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

    The search ends once the stationarity is at most `enough`, or the least to 1e-4 of itself, or when its budget
    is spent (`WORK` multiplications, `ROUNDS` rounds). Then the best found is returned, and `gap` says how far
    from the least it may be. First of all the pulls of the exponential loss, lambda_i ~ exp(-m_i) before the
    scaling, are tried and eased (`kkt_pulls`): near the end of a flow they are multipliers, and no rounds are
    needed. To know the least, take enough=0; with thousands of support points that is beyond the budget.

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
    net = scaled(net.double(), least ** (-1 / degree(net)))
    x, y = x.to(torch.float64), y.to(torch.float64)
    rows = derivative_rows(net, x, y)
    found = of_pulls(net, rows, margin, slack, enough)
    if found.stationarity > enough:
        found = projected(net, rows, y, margin / least, at_kink(net, x, kink), slack, enough, found)
    return replace(found, least_margin=least)


def of_pulls(net: TwoLayerNet, rows: Rows, margin: Numbers, slack: float, enough: float) -> Kkt:
    """What the pulls leave, of the best length and eased.

    `margin` is that of the given net, `net` and `rows` are scaled to least margin 1.
    """
    theta = parameters(net)
    size = float(theta.norm())
    theta, weight, over = theta / size, pulls(margin, slack), margin / margin.min() - 1
    pull = rows.total(weight)
    weight = weight * float((theta * pull).sum() / pull.square().sum())
    weight, rest = eased(rows, theta, weight, allowed(over, slack), enough, WORK)
    rho = float(rest.norm())
    return Kkt(rho, 0.0, float(weight @ over / weight.sum()), weight * size, rho, 1.0)


def allowed(over: Numbers, slack: float) -> Numbers:
    """c with <c, lambda> <= 0 where the slackness is at most `slack`; 0 where it may be anything."""
    return over - slack if math.isfinite(slack) else torch.zeros_like(over)


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
    y: Numbers,
    margin: Numbers,
    kink: Bool[Tensor, "n h"],
    slack: float,
    enough: float,
    known: Kkt,
) -> Kkt:
    """The rounds of `kkt_residual`, for a net whose least margin is 1; `known` where they find nothing better."""
    theta = parameters(net)
    size = float(theta.norm())
    theta = theta / size
    signed = y.unsqueeze(1) * net.v
    over = allowed(margin - 1, slack)
    # <d m_i, theta> at least: its homogeneous value, less what a kink within the tolerance may take away
    pull = degree(net) * margin - (kink * (net.v * rows.z).abs()).sum(1)
    pull = pull.clamp_min(TINY) / size
    norm = rows.sizes().clamp_min(TINY)
    near = int((margin <= 1 + min(slack, 1.0)).sum())
    chosen = margin.argsort()[: min(max(near, FEWEST), MOST)]
    slope = rows.slope[chosen]
    on = torch.zeros_like(chosen, dtype=torch.bool)
    best, square, left = known, 0.0, WORK  # square: the least stationarity squared is no less
    for _ in range(ROUNDS):
        left -= rows.slope.numel() * theta.shape[1] + len(chosen) ** 2 * sum(theta.shape)
        fit = fitted(rows.at(chosen, slope), theta, over[chosen], on, left)
        if fit is None:  # out of work: `gap` says what may be missing
            break
        left -= fit.work
        rho = float(fit.rest.norm())
        across, others = rows.along(fit.rest)
        gain = torch.where(kink, (signed * across).clamp_min(0), rows.slope * across)
        price = gain.sum(1) + others - fit.toll * over
        # the dual bound: true for any weights and toll, however well the columns were fitted
        lower = 2 * float((theta * fit.rest).sum() - (price / pull).amax().clamp_min(0)) - rho**2
        square = max(square, lower)
        if rho < best.stationarity:
            multipliers = torch.zeros_like(margin).index_add_(0, chosen, fit.weight) * size
            slackness = float((multipliers * (margin - 1)).sum() / multipliers.sum())
            best = Kkt(rho, 0.0, slackness, multipliers, rho, 1.0)
        worth = price / norm
        joining = worth.argsort(descending=True)[:ADDED]
        joining = joining[worth[joining] > ROUNDING]
        if rho <= max(enough, ROUNDING) or lower >= (1 - CLOSE) * rho**2 or len(joining) == 0:
            break
        favoured = signed[joining] * (signed * across)[joining].gt(0)
        corner = torch.where(kink[joining], favoured, rows.slope[joining])
        kept = fit.weight > 0
        chosen, slope = torch.cat([chosen[kept], joining]), torch.cat([slope[kept], corner])
        on = torch.arange(len(chosen), device=margin.device) < int(kept.sum())
    return replace(best, gap=max(0.0, best.stationarity - math.sqrt(square)))


@dataclass(frozen=True)
class Fit:
    """The best weights of some columns, the multiplier of <over, weights> <= 0, the rest of theta, the work."""

    weight: Weights
    toll: float
    rest: Float[Tensor, "h P"]
    work: float


def fitted(
    columns: Rows, theta: Float[Tensor, "h P"], over: Weights, on: Bool[Tensor, " s"], budget: float
) -> Fit | None:
    """The fit of all columns; `on`: those that are likely to have a positive weight. None: out of budget."""
    if budget <= 0:
        return None
    length = columns.sizes().clamp_min(TINY)
    c = over / length
    unit = float(c.abs().amax().clamp_min(TINY))
    c = c / unit
    G = columns.gram() / length.unsqueeze(1) / length
    found = nearest_in_cone(G, columns.products(theta) / length, c, on, budget)
    if found is None:
        return None
    nu, omega = found.nu, found.omega
    rest = theta - columns.total(nu / length)
    for _ in range(REFINED):
        if found.pivot is None:
            break
        # from the true rest: inner products alone lose half of the digits
        more, further = found.pivot.solve(
            columns.products(rest) / length - omega * c, c, SOFT * omega - float(c @ nu)
        )
        better = (nu + more).clamp_min(0)
        remains = theta - columns.total(better / length)
        if float(remains.norm()) > float(rest.norm()) * (
            1 + CLOSE
        ):  # by rounding: too many columns
            break
        nu, omega, rest = better, max(omega + further, 0.0), remains
    return Fit(nu / length, omega / unit, rest, found.work)
