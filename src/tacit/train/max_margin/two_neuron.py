r"""The limit of the flow where one neuron of each sign is left: a convex program.

Gradient flow with both layers and biases ends in the direction of a KKT point of

    min 1/2 ||theta||^2   such that   y_i f(x_i; theta) >= 1 for every i      (frei2023, Problem (2))

From a small init the neurons of a sign meet. With one of each sign left, x~ = (x, 1), and w+, w- in place of
|v| (w, b) (balanced: |v_j| = ||(w_j, b_j)||, so that 1/2 ||theta||^2 = ||w+|| + ||w-||), this is

    min ||w+|| + ||w-||   such that   <w_own, x~_i> - s_i >= 1,   s_i >= 0,   s_i >= <w_other, x~_i>

where w_own is the neuron with the sign of y_i: the leading relu is positive anyway, and the subtracted one is
convex. Each KKT point with two neurons is therefore a global optimum among two neurons, and one of Problem (2) at
every larger width (neurons that are zero obey their rows). With multipliers lambda_i of the margin and beta_i of
the last inequality,

    w_j / ||w_j|| = sum_own lambda_i x~_i - sum_other beta_i x~_i,   beta_i = phi_ij lambda_i,  0 <= phi_ij <= 1,

which are frei2023's eq. (3) and (4) with the same lambda. sum_i lambda_i is the value. The second-order cone
program is solved by Clarabel (Goulart & Chen 2024) in coordinates of span(x~), then made exact by Newton's method
on the conditions that are tight. All in float64.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy import sparse
from torch import Tensor

from tacit.base.checks import check_finite
from tacit.base.linalg import span_axes
from tacit.base.shapes import Numbers, Rows, Which
from tacit.errors import CallError, RunError
from tacit.nets import TwoLayerNet

TIGHT = 1e-11  # Clarabel's tolerances; it stops earlier where rounding does not let it
LOOSE = 1e-8  # its own, for the few problems (often without a solution) on which it breaks down at TIGHT
ROUNDS = 12  # guesses of what is tight
NEWTON = 8
EXACT = 1e-13  # where Newton's method stops, next to unit vectors and margins
SIGN = 1e-11  # a multiplier or a slack below minus this, relatively, has the wrong sign


@dataclass(frozen=True)
class MaxMargin:
    """The optimum, as a balanced net of two neurons (positive first) with least margin 1, and its multipliers.

    `value` is ||w+|| + ||w-|| = 1/2 ||theta||^2. `corners` are phi_ij, one column a neuron. `stationarity` is
    ||theta - sum_i lambda_i d m_i|| / ||theta|| and `slackness` sum_i lambda_i (m_i - 1) / sum_i lambda_i with
    these multipliers and corners, over all rows of both layers.
    """

    net: TwoLayerNet
    value: float
    multipliers: Numbers
    corners: Float[Tensor, "n 2"]
    stationarity: float
    slackness: float

    @property
    def margin(self) -> float:
        """The least margin over ||theta||^2, 1 / (2 value): no two neurons have a larger one."""
        return 1 / (2 * self.value)


@dataclass(frozen=True)
class Solution:
    """What a cone program found: its variables, the duals of its rows, and the two values."""

    x: Float[Tensor, " variables"]
    z: Float[Tensor, " rows"]
    value: float
    dual_value: float


def two_neuron_max_margin(x: Rows, y: Float[Tensor, " m"]) -> MaxMargin:
    """The largest margin of one neuron of each sign with biases, both layers trained. Labels are -1 and +1."""
    y = y.to(torch.float64)
    points, scale, axes = in_span(x, y)
    point = polished(points, y, solved(points, y))
    # points that are `scale` shorter have weights and multipliers that are as much longer
    point = Point(point.w / scale, point.weight / scale, point.beta / scale)
    return found(x, y, point, axes)


def in_span(
    x: Rows, y: Float[Tensor, " m"]
) -> tuple[Float[Tensor, "n r"], float, Float[Tensor, "D1 r"]]:
    """Coordinates of x~ / scale in its span (rank r), the scale (a typical length), and the axes."""
    if x.shape[0] != y.shape[0]:
        raise CallError(f"{x.shape[0]} points with {y.shape[0]} labels: one label a point")
    if not bool((y.abs() == 1).all()) or len(y.unique()) != 2:
        raise CallError(
            f"labels {y.unique().tolist()[:5]}: both -1 and +1 are needed, and no other"
        )
    check_finite("x", x)
    rows = torch.nn.functional.pad(x.to(torch.float64), (0, 1), value=1.0)
    scale = float(rows.square().sum(1).mean().sqrt())
    axes = span_axes(rows)
    return rows @ axes / scale, scale, axes


@dataclass(frozen=True)
class Point:
    """A guess of the optimum: rows of `w` are w+ and w-; lambda_i; beta_i in [0, lambda_i]."""

    w: Float[Tensor, "2 r"]
    weight: Numbers
    beta: Numbers


def solved(x: Float[Tensor, "n r"], y: Numbers) -> Point:
    """The cone program as Clarabel solves it; variables w+, w-, their lengths, s."""
    n, r = x.shape
    own = (y < 0).numpy().astype(int)  # the row of w that leads: 0 for positive points
    blank = sparse.csr_matrix((n, r))
    blocks = [sparse.csr_matrix(np.where((own == j)[:, None], x.numpy(), 0.0)) for j in (0, 1)]
    one, none = sparse.identity(n, format="csr"), sparse.csr_matrix((n, 2))
    rows = [
        [-blocks[0], -blocks[1], none, one],
        [blank, blank, none, -one],
        [x.numpy() - blocks[0], x.numpy() - blocks[1], none, -one],
    ]
    rows = [[sparse.csr_matrix(part) for part in row] for row in rows]
    for j in (0, 1):
        length = sparse.csr_matrix(([-1.0], ([0], [j])), (r + 1, 2))
        entries = sparse.csr_matrix((-np.ones(r), (np.arange(1, r + 1), np.arange(r))), (r + 1, r))
        empty = sparse.csr_matrix((r + 1, r))
        parts = [entries, empty] if j == 0 else [empty, entries]
        rows.append([*parts, length, sparse.csr_matrix((r + 1, n))])
    q = np.concatenate([np.zeros(2 * r), np.ones(2), np.zeros(n)])
    b = np.concatenate([-np.ones(n), np.zeros(2 * n + 2 * (r + 1))])
    solution = cone_program(q, sparse.bmat(rows, format="csc"), b, 3 * n, [r + 1, r + 1])
    if solution is None:
        raise CallError(
            "no net with one neuron of each sign was found to have positive margins on these points: more "
            "neurons are needed (train a wider net, or see `global_max_margin`), or the points lie too far from "
            "0 next to their spread for the solver (move them towards it)"
        )
    return Point(solution.x[: 2 * r].reshape(2, r), solution.z[:n], solution.z[2 * n : 3 * n])


def cone_program(q: Any, A: Any, b: Any, inequalities: int, cones: list[int]) -> Solution | None:
    """min <q, x> with b - A x in (nonnegative numbers) x (second-order cones); None where nothing is feasible."""
    try:
        import clarabel
    except ImportError as error:
        raise RunError(
            "the largest margin is a cone program, and its solver is not installed: pip install clarabel"
        ) from error
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    kinds = [clarabel.NonnegativeConeT(inequalities), *map(clarabel.SecondOrderConeT, cones)]
    variables = len(q)
    nothing = sparse.csc_matrix((variables, variables))
    for tolerance in (TIGHT, LOOSE):
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        out = clarabel.DefaultSolver(nothing, q, A, b, kinds, settings).solve()
        status = str(out.status)
        if status != "NumericalError":
            break
    if status in ("PrimalInfeasible", "AlmostPrimalInfeasible"):
        return None
    # at tolerances this tight it may end for want of progress; what it found is then checked by the caller
    if status not in ("Solved", "AlmostSolved", "InsufficientProgress"):
        raise RunError(f"Clarabel stopped with {status}: scale the points, or drop near-copies")
    x, z = (torch.tensor(part, dtype=torch.float64) for part in (out.x, out.z))
    return Solution(x, z, float(out.obj_val), float(out.obj_val_dual))


def polished(x: Float[Tensor, "n r"], y: Numbers, start: Point) -> Point:
    """The exact optimum near `start`: guess what is tight, solve for it, exchange what has the wrong sign.

    `start` itself where no guess settles: its residuals are then Clarabel's.
    """
    z = x @ start.w.T
    own, other = by_label(z, y)
    over = own - other.clamp_min(0) - 1
    size = float(start.weight.max())
    # a pair (multiplier, slack) has one zero: the smaller, each next to its unit
    support = start.weight / size > over
    unit = float(z.abs().mean())
    at_kink = support & (
        torch.minimum(start.beta, start.weight - start.beta) / size > other.abs() / unit
    )
    active = (other > 0) & ~at_kink
    for _ in range(ROUNDS):
        point = newton(x, y, start, support, at_kink, active)
        if point is None:
            return start
        own, other = by_label(x @ point.w.T, y)
        over, size = own - other.clamp_min(0) - 1, float(point.weight.abs().max())
        drop = support & (point.weight < -SIGN * size)
        join = ~support & (over < -SIGN)
        low, high = point.beta < -SIGN * size, point.beta > point.weight + SIGN * size
        leave = at_kink & (low | high)
        crossed = ~at_kink & ((other > SIGN * unit) != active) & (other.abs() > SIGN * unit)
        if not bool((drop | join | leave | (crossed & support)).any()):
            return point
        support = (support | join) & ~drop
        active = torch.where(leave, high, active) ^ (crossed & ~support)
        at_kink = ((at_kink & ~leave) | (crossed & support)) & support
        active = active & ~at_kink
    return start


def by_label(z: Float[Tensor, "n 2"], y: Numbers) -> tuple[Numbers, Numbers]:
    """The products with the neuron of the point's own sign, and with the other."""
    plus = y > 0
    return torch.where(plus, z[:, 0], z[:, 1]), torch.where(plus, z[:, 1], z[:, 0])


def newton(
    x: Float[Tensor, "n r"], y: Numbers, start: Point, support: Which, at_kink: Which, active: Which
) -> Point | None:
    """Newton's method on the conditions with margins = 1 on `support` and <w_other, x~> = 0 `at_kink`.

    Unknown are w, lambda on the support, beta at the kinks; beta = lambda where the other neuron is `active`,
    else 0. None where it does not settle.
    """
    r = x.shape[1]
    tight, corner = support.nonzero().flatten(), at_kink.nonzero().flatten()
    plus = (y > 0).to(torch.float64)
    # C w = 1 on the support (rows: own neuron's x, less the other's where it is active); 0 at the kinks
    lead = torch.stack([plus, 1 - plus], 1)[tight]
    lead = lead - active[tight].to(torch.float64).unsqueeze(1) * (1 - lead)
    follow = torch.stack([1 - plus, plus], 1)[corner]
    C = torch.cat(
        [
            (lead.unsqueeze(-1) * x[tight].unsqueeze(1)).flatten(1),
            (-follow.unsqueeze(-1) * x[corner].unsqueeze(1)).flatten(1),
        ]
    )
    goal = torch.cat([torch.ones(len(tight)), torch.zeros(len(corner))]).to(torch.float64)
    w = start.w.clone()
    dual = torch.cat([start.weight[tight], start.beta[corner]])
    for _ in range(NEWTON):
        length = w.norm(dim=1, keepdim=True)
        if not bool((length > 0).all()):
            return None
        unit = w / length
        rest = torch.cat([unit.flatten() - C.T @ dual, C @ w.flatten() - goal])
        if float(rest.abs().max()) <= EXACT:
            break
        bend = [
            (torch.eye(r).to(w) - torch.outer(u, u)) / size
            for u, size in zip(unit, length, strict=True)
        ]
        J = torch.zeros(2 * r + len(goal), 2 * r + len(goal), dtype=torch.float64)
        J[:r, :r], J[r : 2 * r, r : 2 * r] = bend
        J[: 2 * r, 2 * r :], J[2 * r :, : 2 * r] = -C.T, C
        # of least length: points that occur twice share their multiplier
        step = torch.linalg.lstsq(J, -rest.unsqueeze(1), driver="gelsd").solution.squeeze(1)
        w, dual = w + step[: 2 * r].reshape(2, r), dual + step[2 * r :]
    else:
        return None
    weight, beta = torch.zeros_like(y), torch.zeros_like(y)
    weight[tight] = dual[: len(tight)]
    beta[corner] = dual[len(tight) :]
    beta = torch.where(active & support, weight, beta)
    return Point(w, weight, beta)


def found(x: Rows, y: Numbers, point: Point, axes: Float[Tensor, "D1 r"]) -> MaxMargin:
    """The point as a net whose least margin is 1, with what its multipliers leave."""
    y = y.to(torch.float64)
    rows = torch.nn.functional.pad(x.to(torch.float64), (0, 1), value=1.0)
    w = point.w @ axes.T
    own, other = by_label(rows @ w.T, y)
    least = float((own - other.clamp_min(0)).min())
    if least <= 0:
        raise RunError(f"Clarabel's solution has least margin {least:.3g}: scale the points")
    w = w / least
    weight = point.weight.clamp_min(0)
    share = torch.where(
        weight > 0, point.beta / weight.clamp_min(1e-300), (other > 0).to(weight)
    ).clamp(0, 1)
    plus = (y > 0).unsqueeze(1)
    one = torch.ones_like(share)
    corners = torch.where(plus, torch.stack([one, share], 1), torch.stack([share, one], 1))
    length = w.norm(dim=1)
    sign = torch.tensor([1.0, -1.0], dtype=torch.float64)
    theta, v = w / length.sqrt().unsqueeze(1), sign * length.sqrt()
    pull = (corners * (y * weight).unsqueeze(1)) * v
    z = rows @ theta.T
    rest = torch.cat([theta - pull.T @ rows, (v - (weight * y) @ z.clamp_min(0)).unsqueeze(1)], 1)
    margin = y * (z.clamp_min(0) @ v)
    value = float(length.sum())
    return MaxMargin(
        TwoLayerNet(theta[:, :-1], v, theta[:, -1]),
        value,
        weight,
        corners,
        float(rest.norm()) / math.sqrt(2 * value),
        float(weight @ (margin - 1) / weight.sum()),
    )
