r"""Intervals for log-sum-exp classifiers: the Bayes rule and the multi-class net of li2025, Prop. 4.8.

A positive point is broken where LSE_+ g <= LSE_- g. Since max <= LSE <= max + ln m, every broken point
lies in {max_+ g <= max_- g + ln K2} =: B, so the distance to B bounds the radius from below. The upper
end is an attack along the direction to the nearest point of B (`attack.first_crossing`).

B is the union over opposite j of the sets {g_i <= g_j + ln K2 for all own i}. For affine logits each
such set is a polyhedron, no closer than the farthest of its half-spaces: min_j max_i.
"""

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack import first_crossing
from tacit.base.linalg import span_axes
from tacit.base.shapes import Column, Numbers, Rows
from tacit.certify.interval import Radii
from tacit.errors import CallError
from tacit.nets import BayesRule, MultiClassNet

REACH = 2.0  # the attack goes up to twice as far as the bound, and as the opposite centre
ROUNDING = 1e-12  # relative


def bayes_radius(rule: BayesRule, x: Rows, y: Numbers) -> Radii:
    """g_k = (<mu_k, x> - ||mu_k||^2/2) / sd^2 + ln weight_k: affine, any centres and weights."""
    # nothing outside the span of the centres matters
    x, rule = x @ span_axes(rule.mixture.centres), BayesRule(rule.mixture.reduced())
    lower, upper = torch.zeros_like(y), torch.zeros_like(y)
    mu, var = rule.mixture.centres, rule.mixture.sd**2
    g = rule.logits(x) * var
    for sign in (1, -1):
        mine = (y * sign > 0).nonzero().squeeze(1)
        own, opp = rule.mixture.labels * sign > 0, rule.mixture.labels * sign < 0
        slack = var * math.log(max(int(opp.sum()), 1))
        gap = g[mine][:, own].unsqueeze(2) - g[mine][:, opp].unsqueeze(1) - slack
        apart = torch.cdist(mu[own], mu[opp])
        # 0/0: one centre in both classes, with one height
        depth = (gap / apart).nan_to_num(0.0, torch.inf).clamp_min(0)
        cell = depth.amax(1)
        nearest = cell.argmin(1)
        lower[mine] = cell.amin(1)
        i = (
            depth.gather(2, nearest[:, None, None].expand(-1, depth.shape[1], 1))
            .argmax(1)
            .squeeze(1)
        )
        way = mu[opp][nearest] - mu[own][i]
        way = way / way.norm(dim=1, keepdim=True) * lower[mine].unsqueeze(1)
        upper[mine] = attack(rule, x[mine], y[mine], way, mu[opp][nearest])
    return interval(rule, x, y, lower, upper)


def prop48_radius(net: MultiClassNet, x: Rows, y: Numbers) -> Radii:
    r"""f_j = relu(<mu_j + S_s, x>), orthogonal centres of one norm rho, S_s the class sum.

    In coordinates q_l = <mu_l, x>/rho the polyhedron of opposite j asks, for all own i,

        q_i + Q_own <= q_j + Q_opp + slack,   slack = ln(K2)/rho,   Q the sum over a class.

    With multipliers nu_i >= 0, N = sum nu: own coordinates move by -(nu_i + N), opposite ones by N, j by
    2N, and nu_i = (q_i - t - (K+5) N)_+ with t = q_j + Q_opp - Q_own + slack. N is the fixed point
    N = max_m sum_{top m}(q_i - t) / (1 + m (K+5)): water-filling. As f_j is never negative, B holds one
    more set, {q_i + Q_own <= slack for all own i}, with N = max_m sum_{top m}(q_i + Q_own - slack) /
    (1 + m (K1+2)). At a centre the first gives 2 rho/sqrt(K+6).
    """
    known = prop48_centres(net)
    if known is None:
        raise CallError(
            "this interval is for the net of li2025, Prop. 4.8: one neuron a subclass, both classes, orthogonal "
            "centres of one norm; `multiclass_radius` is for any other"
        )
    axes = span_axes(net.w.squeeze(1))
    x, net = x @ axes, replace(net, w=net.w @ axes)
    mu, rho = known[0] @ axes, known[1]
    lower, upper = torch.zeros_like(y), torch.zeros_like(y)
    unit = mu / rho
    q = x @ unit.T
    for sign in (1, -1):
        mine = (y * sign > 0).nonzero().squeeze(1)
        own, opp = net.labels * sign > 0, net.labels * sign < 0
        k1, k2 = int(own.sum()), int(opp.sum())
        slack = math.log(k2) / rho
        q_own, q_opp = q[mine][:, own], q[mine][:, opp]
        j = q_opp.argmax(1, keepdim=True)
        t = q_opp.gather(1, j) + q_opp.sum(1, keepdim=True) - q_own.sum(1, keepdim=True) + slack
        fall, N = water_fill(q_own - t, k1 + k2 + 5)
        rise = N.expand(-1, k2).scatter(1, j, 2 * N)
        crossing = torch.cat([-fall - N, rise], 1)
        alone, M = water_fill(q_own + q_own.sum(1, keepdim=True) - slack, k1 + 2)
        switching_off = torch.cat([-alone - M, torch.zeros_like(rise)], 1)
        shorter = crossing.norm(dim=1) <= switching_off.norm(dim=1)
        move = torch.where(shorter.unsqueeze(1), crossing, switching_off)
        lower[mine] = move.norm(dim=1)
        way = move @ torch.cat([unit[own], unit[opp]])
        upper[mine] = attack(net, x[mine], y[mine], way, mu[opp][j.squeeze(1)])
    return interval(net, x, y, lower, upper)


def interval(
    classifier: BayesRule | MultiClassNet, x: Rows, y: Numbers, lower: Numbers, upper: Numbers
) -> Radii:
    """0 where broken; where rounding put the bound a hair above the attack (near the boundary), the attack."""
    found = Radii(lower, upper).unless(y * classifier(x) <= 0)
    hair = ROUNDING * (x.norm(dim=1) + found.upper)
    meet = found.lower - found.upper <= hair
    return Radii(
        torch.where(meet, torch.minimum(found.lower, found.upper), found.lower), found.upper
    )


def attack(
    classifier: BayesRule | MultiClassNet, x: Rows, y: Numbers, way: Rows, target: Rows
) -> Numbers:
    """The shorter crossing of two rays: past the nearest point of B, and past the opposite centre."""
    ways = (way, target - x)
    return torch.minimum(*(first_crossing(classifier, x, y, one, REACH) for one in ways))


def water_fill(height: Float[Tensor, "n k"], weight: float) -> tuple[Float[Tensor, "n k"], Column]:
    """nu = (height - weight * N)_+ with N = sum nu: N = max over prefixes m of sum / (1 + m weight)."""
    top = height.sort(dim=1, descending=True).values.cumsum(1)
    counts = torch.arange(1, height.shape[1] + 1, dtype=height.dtype, device=height.device)
    N = (top / (1 + counts * weight)).amax(1, keepdim=True).clamp_min(0)
    return (height - weight * N).clamp_min(0), N


def prop48_centres(net: MultiClassNet) -> tuple[Float[Tensor, "k D"], float] | None:
    """mu and its norm, recovered from w_j = mu_j + S_s; None where the net is another one."""
    if net.w.dim() != 3 or net.w.shape[1] != 1 or len(net.labels.sign().unique()) < 2:
        return None
    w = net.w.squeeze(1)
    mu = torch.empty_like(w)
    for sign in (1, -1):
        mine = net.labels * sign > 0
        # sum_j w_j = (K_s + 1) S_s
        mu[mine] = w[mine] - w[mine].sum(0) / (int(mine.sum()) + 1)
    gram = mu @ mu.T
    rho2 = gram.diagonal().mean()
    off = (gram - rho2 * torch.eye(len(gram)).to(gram)).abs().max()
    return (mu, float(rho2.sqrt())) if off <= 1e-12 * rho2 and rho2 > 0 else None
