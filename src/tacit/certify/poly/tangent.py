r"""A certified l2 bound for PolyReLU nets of any directions: a separable minorant of the squared length, p >= 2.

With c = V delta the change of the projections (V unit rows) and theta <= 1 / lambda_max(V'V),
M = I - theta V'V is positive semidefinite, so delta' M delta lies above its tangents. For any points delta_i
with weights w_i that sum to 1, M delta_bar = V'b + e (e is rounding: everything lives in the span), and

    ||delta||^2 = theta ||c||^2 + delta' M delta
               >= theta ||c||^2 + 2 <b, c> - 2 ||e|| ||delta|| - sum_i w_i delta_i' M delta_i
                = theta ||c + b / theta||^2 - ||b||^2 / theta - 2 ||e|| ||delta|| - sum_i w_i delta_i' M delta_i.

The right side is separable in c: the problem of `power.py` with its centre moved by -b/theta, solved with a
proof by `poly_cells`. One tangent at a shortest breaking move delta* has its gradient there: the separable
problem then has the same stationary point, and where the directions are near-orthogonal (theta near 1, M small)
the bound is
||delta*|| itself, to rounding. Where another riser wins in the separable problem, a tangent at its solution is
mixed in. With tangents at 0 this is ||delta|| >= sqrt(theta) ||c||, the bound by the largest singular value.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.certify.poly.cells import power_lower
from tacit.certify.poly.curve import Separable
from tacit.certify.poly.merge import Shifted
from tacit.certify.poly.power import Shortest, power_radius

TANGENTS = 5  # mixed at most
NEAR = 1e-5  # relative gap to the radius below which no further tangent is tried


def tangent_lower(problem: Shifted, delta: Float[Tensor, "n r"]) -> Float[Tensor, " n"]:
    """No broken point is closer than this, nor than `problem.radius`; `delta` are good breaking moves."""
    V = problem.V
    theta = (1 - 1e-12) / torch.linalg.matrix_norm(V, 2) ** 2
    M = torch.eye(V.shape[1], dtype=V.dtype) - theta * V.T @ V
    back = torch.linalg.pinv(V)
    best = torch.zeros_like(problem.radius)
    here = torch.arange(len(best))
    mean, level = delta, quadratic(delta, M)
    for i in range(TANGENTS):
        some = problem.at(here)
        bound, found = separable_bound(some, mean, level, theta, M, back)
        best[here] = torch.maximum(best[here], bound)
        left = (best[here] < some.radius * (1 - NEAR)).nonzero().squeeze(1)
        if not len(left):
            break
        here, mean, level = here[left], mean[left], level[left]
        fresh = (found[left] - problem.t[here]) @ back.T
        weight = 1 / (i + 2)
        mean = mean + weight * (fresh - mean)
        level = level + weight * (quadratic(fresh, M) - level)
    return torch.minimum(best, problem.radius)


def quadratic(delta: Float[Tensor, "n r"], M: Float[Tensor, "r r"]) -> Float[Tensor, " n"]:
    """delta' M delta of each row."""
    return ((delta @ M) * delta).sum(1)


def separable_bound(
    problem: Shifted,
    mean: Float[Tensor, "n r"],
    level: Float[Tensor, " n"],
    theta: Float[Tensor, ""],
    M: Float[Tensor, "r r"],
    back: Float[Tensor, "r K"],
) -> tuple[Float[Tensor, " n"], Float[Tensor, "n K"]]:
    """The bound for one mixture of tangents, and the projections at the separable problem's solution."""
    gradient = mean @ M
    b = gradient @ back
    residual = (gradient - b @ problem.V).norm(dim=1)
    centre = problem.t - b / theta
    own, opp = problem.own, ~problem.own
    task = Separable(centre[:, own], centre[:, opp], problem.A[own], problem.A[opp], problem.p)
    found = power_radius(task.own, task.opp, task.A_own, task.A_opp, task.p)
    square = power_lower(task, found, problem.tau)
    offset = b.square().sum(1) / theta + level
    # rounding of the sums, relative to the largest of them
    rounding = 1e-13 * (theta * centre.square().sum(1) + theta * square + offset.abs())
    total = theta * square - offset - 2 * residual * problem.radius - rounding
    return total.clamp_min(0).sqrt(), centre + moves(found, own)


def moves(found: Shortest, own: Tensor) -> Float[Tensor, "n K"]:
    """The moves of all projections in the net's order."""
    move = torch.zeros(len(found.square), len(own), dtype=found.own.dtype)
    move[:, own], move[:, ~own] = found.own, found.opp
    return move
