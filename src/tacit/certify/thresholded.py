r"""Radii of the thresholded models of allenzhu2020, Section 3 (`nets.thresholded`).

With orthonormal features a perturbation moves the t_i = <w_i, x> freely, at the cost of its length. Turned so
that y v_i >= 0, the margin is sum_i |v_i| kept(t_i), and kept rises: to lower it each t_i moves down by s_i >= 0.

    l2    the pieces of each coordinate are a menu (`certify.menus`):
          t >= b     down to b, s <= t - b; just past b (hard), where all of t is gone; past -b
          |t| < b    stay; past -b, s >= t + b
          t <= -b    any s
    linf  where the features are axes every t_i moves by the radius: the margin at radius r is
          sum_i |v_i| kept(t_i - r), which falls in r, and its zero is found by bisection
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack.norms import L2
from tacit.base.shapes import Numbers
from tacit.certify.interval import Radii, between
from tacit.certify.menus import Menus, shortest_squares
from tacit.certify.radius import Question, signed
from tacit.errors import CallError
from tacit.nets.thresholded import ThresholdedNet, kept

ORTHONORMAL = 1e-9
CHUNK = 250  # points at once
HALVINGS = 60

Rows = Float[Tensor, "n h"]
Weights = Float[Tensor, " h"]


def thresholded_radius(
    net: ThresholdedNet, x: Float[Tensor, "n D"], y: Numbers, question: Question
) -> Radii:
    """An interval of a thousandth of the radius in l2, exact in linf."""
    net, y = net.double(), signed(y)
    gram = net.w @ net.w.T
    if (
        float((gram - torch.eye(len(gram), dtype=gram.dtype, device=gram.device)).abs().max())
        > ORTHONORMAL
    ):
        raise CallError("radii of a ThresholdedNet are known for orthonormal features")
    t = (x @ net.w.T) * (y.unsqueeze(1) * net.v.sign())
    if question.norm is L2:
        return l2_radius(t, net.v.abs(), net.b, net.hard)
    if question.norm.order == math.inf and bool(((net.w != 0).sum(1) == 1).all()):
        exact = linf_radius(t, net.v.abs(), net.b, net.hard)
        return Radii(exact, exact)
    raise CallError(
        f"norm {question.norm.name}: radii of a ThresholdedNet are known in l2, and in linf where its features "
        "are axes"
    )


def linf_radius(t: Rows, a: Weights, b: float, hard: bool) -> Numbers:
    """The least r with sum_i a_i kept(t_i - r) <= 0; t turned so that the margin is sum_i a_i kept(t_i)."""
    low, high = t.new_zeros(len(t)), t.amax(1).clamp_min(0) + b + 1
    high = torch.where(kept(t, b, hard) @ a <= 0, 0.0, high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        broken = kept(t - middle.unsqueeze(1), b, hard) @ a <= 0
        low, high = torch.where(broken, low, middle), torch.where(broken, middle, high)
    return high


def l2_radius(t: Rows, a: Weights, b: float, hard: bool) -> Radii:
    """By menus, a chunk of points at a time; t as in `linf_radius`."""
    found = [l2_chunk(part, a, b, hard) for part in t.split(CHUNK)]
    lower, upper = (torch.cat(ends) for ends in zip(*found, strict=True))
    return between(lower, upper)


def l2_chunk(t: Rows, a: Weights, b: float, hard: bool) -> tuple[Numbers, Numbers]:
    """Both ends; 0 where the margin is not positive."""
    need = kept(t, b, hard) @ a
    good = (need > 0).nonzero().squeeze(1)
    lower, upper = torch.zeros_like(need), torch.zeros_like(need)
    if len(good):
        menus = menus_of(t[good], a, need[good], b, hard)
        squares = shortest_squares(menus, need[good])
        lower[good], upper[good] = (square.sqrt() for square in squares)
    return lower, upper


def menus_of(t: Rows, a: Weights, need: Numbers, b: float, hard: bool) -> Menus:
    """The menus of all coordinates, or with equal weights of those that a shortest move can touch.

    Of the silent ones, |t| < b, the lowest leave first. One alone suffices at the cost (t + b + need/a)^2,
    so no more leave than go into that with (t + b)^2 each.
    """
    silent = t.abs() < b
    if not bool((a == a[0]).all()):
        return menu(t, a.expand_as(t), b, hard, 0)
    order = torch.where(silent, t, torch.inf).sort(1).values
    least = order[:, :1].clamp_min(-b)
    cost = (least.squeeze(1) + b).clamp_min(1e-12).square()
    start = torch.where(torch.isinf(least.squeeze(1)), t.amax(1), least.squeeze(1))
    alone = start + b + need / a[0]
    most = torch.where(torch.isinf(cost), 0.0, alone.square() / cost)
    if hard:
        most = torch.minimum(most, need / (a[0] * b) + 1) if b else torch.zeros_like(most)
    count = int(min(float(most.max().ceil()), float(silent.sum(1).max())))
    quiet = order[:, :count]
    loud = torch.where(silent, -torch.inf, t.abs())
    size, index = loud.sort(1, descending=True)
    active = int((~silent).sum(1).max())
    heard = t.gather(1, index[:, :active])
    heard = torch.where(torch.isinf(size[:, :active]), torch.nan, heard)
    both = torch.cat([torch.where(torch.isinf(quiet), torch.nan, quiet), heard], 1)
    return menu(both, a[0].expand_as(both), b, hard, count)


def menu(t: Rows, a: Rows, b: float, hard: bool, ordered: int) -> Menus:
    """Three pieces a coordinate; NaN stands for one that is not there, and can only stay."""
    none, zero, infinite = (
        torch.full_like(t, torch.inf),
        torch.zeros_like(t),
        torch.full_like(t, torch.inf),
    )
    gone, up, down = torch.isnan(t), t >= b, t <= -b
    silent = ~(gone | up | down)
    free = down & ~up
    # stay, or move within the piece
    low = [zero]
    high = [torch.where(up, t - b, torch.where(free, infinite, zero))]
    slope = [torch.where(up | free, a, zero)]
    gain = [zero]
    # past -b
    low.append(torch.where(up | silent, t + b, none))
    high.append(infinite)
    slope.append(a)
    lost = torch.where(silent, t, zero) if hard else torch.where(silent, t + b, 2 * b + zero)
    gain.append(torch.where(up | silent, -a * lost, zero))
    if hard:  # just past b
        low.append(torch.where(up, t - b, none))
        high.append(torch.where(up, t - b, infinite))
        slope.append(a)
        gain.append(torch.where(up, a * b, zero))
    low_, high_, slope_, gain_ = (torch.stack(part, -1) for part in (low, high, slope, gain))
    return Menus(low_, high_, slope_, gain_, ordered)
