r"""Multipliers from the pulls of the exponential loss, exp(-m_i), made exact by small relative changes.

Near the end of a flow theta is almost along sum_i exp(-m_i) d m_i, so that the pulls are multipliers up to a few
per cent (Lyu & Li 2020). What is left of theta is then removed by a change weighted by the multipliers
themselves,

    min ||rest - sum_i change_i d m_i||   from change = 0, in the norm sum_i change_i^2 / lambda_i

by conjugate gradients for least squares (Hestenes & Stiefel 1952) in s_i = change_i / sqrt(lambda_i): few large
singular values, one for each cluster of points, are all that is in the way. The change is relative, so that few
multipliers become negative; those are set to 0 and the rest is computed anew. Only products with the factors of
`kkt_rows` are taken: n h D each.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.measure.kkt.rows import Rows

STEPS = 8  # of conjugate gradients before the signs are seen to
RESTARTS = 3
HALVED = 5
GAIN = 0.9  # a restart that leaves more of the rest than this is the last
SHARPEST = 1e9  # next to the spread of the margins: only the least margin has a pull
HALVINGS = 60


def pulls(margin: Float[Tensor, " n"], slack: float) -> Float[Tensor, " n"]:
    """exp(-beta m_i), summing to 1: beta = 1 where that keeps sum_i lambda_i (m_i / least - 1) <= slack, else a
    beta which uses half of the budget and leaves room for changes."""
    over = margin / margin.min() - 1
    weight = torch.softmax(-margin, 0)
    if float(weight @ over) <= slack:
        return weight
    # the mean of `over` falls as beta grows
    low, high = 1.0, 1.0 + SHARPEST / float((margin - margin.min()).amax())
    for _ in range(HALVINGS):
        beta = (low * high) ** 0.5
        weight = torch.softmax(-beta * margin, 0)
        low, high = (beta, high) if float(weight @ over) > slack / 2 else (low, beta)
    return torch.softmax(-high * margin, 0)


def eased(
    rows: Rows,
    theta: Float[Tensor, "h P"],
    weight: Float[Tensor, " n"],
    over: Float[Tensor, " n"],
    enough: float,
    budget: float,
) -> tuple[Float[Tensor, " n"], Float[Tensor, "h P"]]:
    """Weights near `weight` that leave less of theta, and what they leave; <over, weights> <= 0 is kept.

    It ends where the rest is at most `enough`, does not shrink further, or `budget` multiplications are spent.
    """
    rest = theta - rows.total(weight)
    left = int(budget / (2 * rows.slope.numel() * theta.shape[1]))  # a step takes two products
    for _ in range(RESTARTS):
        steps = min(STEPS, left)
        left -= steps
        if float(rest.norm()) <= enough or steps == 0:
            break
        by = change(rows, rest, weight, enough, steps)
        for _ in range(HALVED):  # where signs change, the whole way may be too far
            target = (weight + by).clamp_min(0)
            now, then = float(over @ weight), float(over @ target)
            part = (
                1.0 if then <= 0 else now / (now - then)
            )  # as far as the budget of slackness goes
            moved = weight + part * (target - weight)
            remains = theta - rows.total(moved)
            shrunk = float(remains.norm() / rest.norm())
            if shrunk < GAIN:
                break
            by = by / 2
        if shrunk < 1:
            weight, rest = moved, remains
        if not shrunk < GAIN:
            break
    return weight, rest


def change(
    rows: Rows, rest: Float[Tensor, "h P"], weight: Float[Tensor, " n"], enough: float, steps: int
) -> Float[Tensor, " n"]:
    """Conjugate gradients towards the change of the weights that removes the rest, or all but enough / 2."""
    root = weight.sqrt()
    s, steep = torch.zeros_like(root), root * rows.products(rest)
    way, square = steep, float(steep @ steep)
    for _ in range(steps):
        column = rows.total(root * way)
        length = float(column.square().sum())
        if length == 0:
            break
        s, rest = s + square / length * way, rest - square / length * column
        if float(rest.norm()) <= enough / 2:
            break
        steep = root * rows.products(rest)
        before, square = square, float(steep @ steep)
        way = steep + square / before * way
    return root * s
