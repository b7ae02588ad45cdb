r"""The least cost at which one sum of exponentials falls to another, bounded from below.

Own terms e^{relu(z_i + s_i)}, opposite terms e^{max(floor_j, z_j + s_j)} with floors >= 0; a move s costs
sum_l D_l s_l^2. Wanted: the least cost of sum_own <= sum_opp. At a price p of the sum each term stands alone:

    own       convex in s: term i falls by q_i = W(p e^{z_i} / (2 D_i)), W e^W = y, at most by relu(z_i)
    opposite  up to s = 1 the cost D s^2 is convex in the gain e^{z+s}: term l rises to the root of
              s e^{-s} = p e^{z_l} / (2 D_l), s <= 1, or not at all; beyond s = 1 the cost is concave in the gain

The concave part needs cases. Case j: opposite term j, the *leader*, ends at e^v, v >= base_j = max(floor_j, z_j),
and

    one cost      no other rises beyond s = 1: of two such terms one can give to the other at no loss
    costs by j    j is the largest. Costs D may then depend on j. Others beyond s = 1 end level with j, at e^v,
                  all but one of them (of two strictly between, one can give to the other)

For every price p >= 0 weak duality gives, in case j,

    cost >= D_j (v - z_j)^2 + phi_j(p) - p e^v + T,
    phi_j(p) = sum_own min_s [D s^2 + p e^{relu(z+s)}]
               + sum_{l != j} min_{0<=s<=1} [D s^2 - p e^{max(floor, z+s)}].

T = 0 with one cost. Else let tie_l = D_l (v - z_l)^2 - p (e^v - e^{base_l}), less what l has in phi already: what
it adds by ending level with j. The one strictly between adds at least min(0, tie_l). With no other level with j,
T = min(0, min_l tie_l); with one or more, T = sum_l min(0, tie_l) + max(0, min_l tie_l). Each has its own best
price, and the smaller value counts.

v runs over cells. On [a, b] the square is above its tangent at a and e^v below its chord, so the right side is at
least its smaller end. At v = base_j the leader has not moved and costs nothing. From v = log(sum_own -
sum_{l != j} e^{base_l}) on, nothing else need move. A price is named by the fall q of a leading own term,
p = 2 D q e^{q-z}, for p itself may overflow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

PRICES = 96
CELLS = 64
ELEMENTS = 2**18  # of the largest array: it stays in the cache
STEPS = 5  # Newton's and Halley's: four reach rounding
ROUNDING = 1e-13
NEVER = 1e300  # a cost that is out of the question; inf - inf is no number
SLACK = 1e-9  # relative, for rounding in what is returned


@dataclass(frozen=True)
class Sums:
    """z of own and opposite terms, floors of the opposite ones, and what a move of each term costs in case j.

    `one_cost`: all rows of the costs are the same.
    """

    own: Float[Tensor, "n k"]
    opp: Float[Tensor, "n j"]
    floor: Float[Tensor, "n j"]
    own_cost: Float[Tensor, "j k"]
    opp_cost: Float[Tensor, "j j"]
    one_cost: bool

    def rows(self, which: Tensor) -> Sums:
        """Some of the points."""
        own, opp, floor = (t[which] for t in (self.own, self.opp, self.floor))
        return Sums(own, opp, floor, self.own_cost, self.opp_cost, self.one_cost)


def least_cost(sums: Sums) -> Float[Tensor, " n"]:
    """A lower bound of the cost of sum_own <= sum_opp, never negative."""
    at_once = max(ELEMENTS // (PRICES * CELLS * sums.opp.shape[1]), 1)
    every = torch.arange(len(sums.own), device=sums.own.device)
    found = [least_over_leaders(sums.rows(part)) for part in every.split(at_once)]
    return torch.cat([torch.zeros_like(sums.own[:0, 0]), *found])


def least_over_leaders(sums: Sums) -> Float[Tensor, " n"]:
    """The least over all leaders and cells of the best dual value."""
    log_p = log_prices(sums)
    phi, held = duals(sums, log_p)  # (n, j, prices)
    z, base = sums.opp, torch.maximum(sums.opp, sums.floor)
    now = torch.logsumexp(sums.own.clamp_min(0), 1, keepdim=True)
    left = 1 - without_each((base - now).exp())
    top = torch.maximum(now + left.clamp_min(1e-300).log(), base)
    share = torch.linspace(0, 1, CELLS + 1, dtype=z.dtype, device=z.device)
    v = base.unsqueeze(2) + (top - base).unsqueeze(2) * share  # (n, j, cells + 1)
    value = (v.unsqueeze(3) + log_p[:, None, None]).exp()  # p e^v
    rest = phi.unsqueeze(2) - value
    D = sums.opp_cost.diagonal()[:, None, None]
    height = (v - z.unsqueeze(2)).unsqueeze(3)
    a, b = height[:, :, :-1], height[:, :, 1:]
    cells = torch.minimum(D * a**2 + rest[:, :, :-1], D * (a**2 + 2 * a * (b - a)) + rest[:, :, 1:])
    cells = torch.cat([rest[:, :, :1], cells], 2)  # the first cell is v = base_j
    if sums.one_cost or z.shape[1] == 1:
        bound = cells.amax(3)
    else:
        low, high = (torch.cat([v[:, :, :1], t], 2) for t in (v[:, :, :-1], v[:, :, 1:]))
        least, gains = level_with_leader(sums, log_p, low, high, value, held)
        bound = torch.minimum(
            (cells + least.clamp_max(0)).amax(3), (cells + gains + least.clamp_min(0)).amax(3)
        )
    alone = (D * height[:, :, -1:] ** 2)[:, :, 0, 0]
    return torch.minimum(bound.amin(2), alone).amin(1).clamp_min(0) * (1 - SLACK)


def level_with_leader(
    sums: Sums,
    log_p: Float[Tensor, "n p"],
    low: Float[Tensor, "n j c"],
    high: Float[Tensor, "n j c"],
    value: Float[Tensor, "n j c p"],
    held: Float[Tensor, "n _ j p"],
) -> tuple[Float[Tensor, "n j c p"], Float[Tensor, "n j c p"]]:
    """min_l tie_l and sum_l min(0, tie_l) over the others, v in [low, high], value = p e^high."""
    least, gains = torch.full_like(value, NEVER), torch.zeros_like(value)
    for term in range(sums.opp.shape[1]):
        z, floor = (t[:, term, None, None] for t in (sums.opp, sums.floor))
        cost = sums.opp_cost[:, term, None] * (low - z).clamp_min(0) ** 2
        cost[:, term] = NEVER  # the leader itself
        cost[high - z <= 1] = NEVER  # phi holds it already
        back = (torch.maximum(z, floor) + log_p.unsqueeze(1)).exp() + held[:, :, term]
        tie = cost.unsqueeze(3) + back.unsqueeze(2) - value
        tie = tie.nan_to_num(-torch.inf, torch.inf, -torch.inf)  # inf - inf: p e^v is out of reach
        least, gains = torch.minimum(least, tie), gains + tie.clamp_max(0)
    return least, gains


def log_prices(sums: Sums) -> Float[Tensor, "n p"]:
    """From price 0 to where all own terms are off, by falls of the term that costs most to switch off.

    Where own terms are so small that this is soon reached: to where an opposite term has risen by 1. The falls
    are squares of even steps: points near the boundary need small ones.
    """
    height, cost = sums.own.clamp_min(0), sums.own_cost.amax(0)
    at = (cost * height**2).argmax(1, keepdim=True)
    z, D = height.gather(1, at), cost[at]
    # term i is off from the price 2 D_i z_i on
    most = (cost * height).amax(1, keepdim=True).clamp_min(float(sums.opp_cost.amin()) / math.e)
    last = lambert((most / D).log() + z)
    q = last * torch.linspace(0, 1, PRICES, dtype=z.dtype, device=z.device) ** 2
    return (2 * D * q).log() + q - z


def duals(
    sums: Sums, log_p: Float[Tensor, "n p"]
) -> tuple[Float[Tensor, "n j p"], Float[Tensor, "n _ j p"]]:
    """phi_j(p), less what rounding may have added, and how much each opposite term has brought there."""
    price = log_p[:, None, None]  # (n, j, terms, p)
    few = slice(1) if sums.one_cost else slice(None)
    z, D = sums.own[:, None, :, None], sums.own_cost[few, :, None]
    q = torch.minimum(lambert(price + z - (2 * D).log()), z.clamp_min(0))
    own = (D * q**2 + (price + (z - q).clamp_min(0)).exp()).sum(2)
    z, D = sums.opp[:, None, :, None], sums.opp_cost[few, :, None]
    base = torch.maximum(z, sums.floor[:, None, :, None])
    s = lower_root((price + z - (2 * D).log()).exp())
    still = -(price + base).exp()
    opp = torch.minimum(still, D * s**2 - (price + z + s).exp())
    itself = torch.eye(z.shape[2], dtype=torch.bool, device=z.device).unsqueeze(2)
    held = (still - opp).nan_to_num(0.0, 0.0)
    others = without_each(opp.squeeze(1)) if sums.one_cost else opp.masked_fill(itself, 0.0).sum(2)
    size = torch.cat([sums.own, sums.opp, sums.floor], 1).abs().amax(1)[:, None, None]
    hair = ROUNDING * (1 + size / 100)  # exponents are rounded too
    return own * (1 - hair) + others * (1 + hair), held


def without_each(terms: Float[Tensor, "n j *p"]) -> Float[Tensor, "n j *p"]:
    """Sums over all others, by sums from both sides: what is left out may be infinite."""
    zero = torch.zeros_like(terms[:, :1])
    before = torch.cat([zero, terms[:, :-1]], 1).cumsum(1)
    after = torch.cat([zero, terms.flip(1)[:, :-1]], 1).cumsum(1).flip(1)
    return before + after


def lambert(log_y: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
    """W with W e^W = y, from log y: Newton's steps for W + log W = log y. W(0) = 0."""
    small = log_y.clamp_max(1).exp()
    w = torch.where(log_y > 1, log_y - log_y.clamp_min(1).log(), torch.log1p(small))
    for _ in range(STEPS):
        w = w * (1 + log_y - w.log()) / (1 + w)
    return torch.where(log_y > -600, w, 0.0)


def lower_root(y: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
    """s <= 1 with s e^{-s} = y, and 1 for y > 1/e: the series at 1, then Halley's steps (Corless et al. 1996)."""
    y = y.clamp_max(1 / math.e)
    root = (2 * (1 - math.e * y)).clamp_min(0).sqrt()
    s = (1 - root + root**2 / 3 - 11 / 72 * root**3).clamp_min(0)
    for _ in range(STEPS):
        excess, ahead = s - y * s.exp(), (1 - s).clamp_min(1e-8)
        s = s - excess / (ahead + (2 - s) * excess / (2 * ahead))
    return s
