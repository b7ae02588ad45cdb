r"""The l2 radius of 1-NN on clustered data, as an interval, without a quadratic program for every cell.

A point is broken where some opposite training point j is at least as close as every own one i: the polyhedra
C_j of `certify.nearest`. Any average of half-spaces holds C_j too; averaged over the own points of one cluster,
with mean m and mean square distance s from x,

    dist(x, C_j) >= (||x - x_j||^2 - s) / (2 ||m - x_j||),

the bound that is attained in high dimensions, where all points of the cluster are left behind at once. For the
`TRIED` cells of the smallest bound the program over the points of the nearest cluster is solved: its length is
a better lower bound, and where its move breaks the point, an upper end.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.base.shapes import Numbers, Rows
from tacit.certify.interval import Radii, between
from tacit.certify.nearest.radius import least_distance, nearest_bounds
from tacit.nets import NearestNeighbour
from tacit.nets.rules import squared_distances

TRIED = 3
SLACK = 1e-9  # relative: rounding


def cluster_nearest(rule: NearestNeighbour, z: Int[Tensor, " m"], x: Rows, y: Numbers) -> Radii:
    """The interval of each point; z is the cluster of each training point of the rule."""
    known = nearest_bounds(rule, x, y)
    lower, upper = known.lower.clone(), known.upper.clone()
    for sign in (1, -1):
        own, opp = rule.y * sign > 0, rule.y * sign < 0
        groups = [rule.x[own & (z == c)] for c in z[own].unique()]
        for i in ((y * sign > 0) & (known.upper > 0)).nonzero().flatten().tolist():
            low, high = point_interval(x[i], groups, rule.x[opp])
            lower[i] = max(float(lower[i]), low)
            moved = (x[i] + high).unsqueeze(0)
            if float(y[i] * rule(moved)) <= 0:
                upper[i] = min(float(upper[i]), float(high.norm()))
    return between(lower, upper)


def point_interval(
    x: Float[Tensor, " D"], groups: list[Float[Tensor, "_ D"]], opp: Float[Tensor, "m D"]
) -> tuple[float, Float[Tensor, " D"]]:
    """A lower bound over all cells, and a move into the best of those tried (it may break, or not)."""
    away = squared_distances(x.unsqueeze(0), opp).squeeze(0)
    bound = torch.zeros_like(away)
    for group in groups:
        mean = group.mean(0)
        spread = squared_distances(x.unsqueeze(0), group).mean()
        apart = squared_distances(mean.unsqueeze(0), opp).squeeze(0).sqrt()
        bound = torch.maximum(bound, (away - spread).clamp_min(0) / (2 * apart.clamp_min(1e-300)))
    nearest = min(groups, key=lambda group: float((x - group.mean(0)).norm()))
    first = bound.argsort()[: TRIED + 1]
    best: Float[Tensor, " D"] | None = None
    least = float(bound[first[-1]]) if len(first) > TRIED else torch.inf
    for j in first[:TRIED].tolist():
        normal = 2 * (nearest - opp[j])
        side = (normal * ((nearest + opp[j]) / 2 - x)).sum(1)
        move = torch.from_numpy(np.asarray(least_distance(normal.numpy(), side.numpy())))
        least = min(least, max(float(bound[j]), float(move.norm())))
        if best is None or move.norm() < best.norm():
            best = move
    assert best is not None
    return least * (1 - SLACK), best * (1 + SLACK)
