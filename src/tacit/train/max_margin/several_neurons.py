r"""KKT points with several neurons of each sign, each a fixed point of convex programs.

    min 1/2 ||theta||^2   such that   y_i f(x_i; theta) >= 1 for every i      (frei2023, Problem (2))

With x~ = (x, 1) and u_j in place of |v_j| (w_j, b_j) (balanced neurons, 1/2 ||theta||^2 = sum_j ||u_j||) the
constraint of a point is a difference of convex functions of u: its own sign's neurons minus the other's. Given
which of its own neurons are on, phi_ij in {0, 1}, the convex-concave procedure (Yuille & Rangarajan 2003; Lipp &
Boyd 2016) replaces relu(<u_j, x~_i>) by phi_ij <u_j, x~_i>, which is never more, and keeps the rest:

    min sum_j ||u_j||   such that   sum_own phi_ij <u_j, x~_i> - sum_other s_ij >= 1,   s_ij >= 0, <u_j, x~_i>

Where the solution has the phi that it was made with, its multipliers lambda_i of the margins and beta_ij of the
last inequality obey u_j/||u_j|| = sum_own lambda_i phi_ij x~_i - sum_other beta_ij x~_i: frei2023's eq. (3) and
(4), so that it is a KKT point. Otherwise phi is read off and the program is solved again; sum_j ||u_j|| falls
each time. Which KKT point is found depends on the phi at the start: all on gives `two_neuron_max_margin`, one
neuron for each cluster may give another.

The programs are solved for a few points, to which those of too small a margin are added until there are none. The
multipliers of the others are 0. All in float64.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy import sparse
from torch import Tensor

from tacit.base.linalg import span_axes
from tacit.base.shapes import Numbers, Rows
from tacit.errors import CallError, RunError
from tacit.nets import TwoLayerNet
from tacit.train.max_margin.two_neuron import cone_program, in_span

FIRST = 24  # points of the first program
ADDED = 24  # points that join at a time, at most
SHORT = 1e-9  # a margin is too small where it is less than 1 by more than this
GONE = 1e-6  # neurons shorter than this share of all are zero
ROUNDS = 60  # programs, in all


@dataclass(frozen=True)
class KktPoint:
    """A balanced net of least margin 1 with its multipliers and Clarke derivatives, and what these leave.

    `value` is sum_j ||u_j|| = 1/2 ||theta||^2. `corners` are phi_ij. `stationarity` is
    ||theta - sum_i lambda_i d m_i|| / ||theta|| over all rows of both layers, and `slackness`
    sum_i lambda_i (m_i - 1) / sum_i lambda_i. `settled`: the last program repeated the phi it was made with.
    """

    net: TwoLayerNet
    value: float
    multipliers: Numbers
    corners: Float[Tensor, "n h"]
    stationarity: float
    slackness: float
    settled: bool


@dataclass(frozen=True)
class Program:
    """One solution: the neurons u, lambda, and beta (0 for points of the neuron's own sign)."""

    u: Float[Tensor, "h r"]
    weight: Numbers
    beta: Float[Tensor, "n h"]


def several_neuron_max_margin(
    x: Rows, y: Float[Tensor, " m"], sign: Float[Tensor, " h"], on: Bool[Tensor, "l s"]
) -> KktPoint:
    """The KKT point that the procedure reaches from phi = `on`, for neurons of these signs.

    `on` counts only where a point has the neuron's sign; every point needs one such neuron that is on.
    """
    y, sign = y.to(torch.float64), sign.to(torch.float64)
    points, scale, axes = in_span(x, y)
    if sign.shape != on.shape[1:] or len(on) != len(y) or not bool((sign.abs() == 1).all()):
        raise CallError(
            f"on has the shape {tuple(on.shape)} for {len(y)} points and {len(sign)} signs: one row a point, one "
            "column a neuron, signs -1 and +1"
        )
    own = y.unsqueeze(1) == sign
    bare = ~(on & own).any(1)
    if bool(bare.any()):
        raise CallError(
            f"{int(bare.sum())} points have no neuron of their sign that is on: give each one at least"
        )
    seen, settled = spread_out(len(y)), False
    for _ in range(ROUNDS):
        found = program(points, y, sign, on & own, seen)
        z = points @ found.u.T
        margin = margins_of(z, y, sign)
        short = (margin < 1 - SHORT) & ~seen
        if bool(short.any()):
            worst = torch.where(short, margin, torch.inf).argsort()[: min(ADDED, int(short.sum()))]
            seen = seen.clone()
            seen[worst] = True
            continue
        kept = found.u.norm(dim=1) > GONE * float(found.u.norm(dim=1).sum())
        now = (z > 0) & own
        settled = bool(((now == (on & own)) | ~seen.unsqueeze(1) | ~kept).all())
        # a neuron that is zero stays what it was: relu has no direction there
        on = torch.where(kept, now, on)
        if settled:
            break
    return point_of(x, y, sign, on & own, found, axes / scale, scale, settled)


def spread_out(n: int) -> Bool[Tensor, " n"]:
    """FIRST of n points, evenly."""
    seen = torch.zeros(n, dtype=torch.bool)
    seen[torch.linspace(0, n - 1, min(FIRST, n)).round().long()] = True
    return seen


def margins_of(z: Float[Tensor, "n h"], y: Numbers, sign: Float[Tensor, " h"]) -> Numbers:
    """y_i sum_j sign_j relu(z_ij)."""
    return y * (z.clamp_min(0) @ sign)


def program(
    x: Float[Tensor, "n r"],
    y: Numbers,
    sign: Float[Tensor, " h"],
    on: Bool[Tensor, "n h"],
    seen: Bool[Tensor, " n"],
) -> Program:
    """The convex program for the points `seen`; variables u_j, their lengths, s_ij of the other sign's pairs.

    It is solved in coordinates of their span, where its neurons lie.
    """
    axes = span_axes(x[seen])
    rows = x[seen] @ axes
    (m, r), h = rows.shape, len(sign)
    other = (y[seen].unsqueeze(1) != sign).numpy()
    lead = on[seen].numpy().astype(float)
    point, neuron = other.nonzero()
    slacks = len(point)
    mine = sparse.hstack([sparse.csr_matrix(lead[:, [j]] * rows.numpy()) for j in range(h)])
    sums = sparse.csr_matrix((np.ones(slacks), (point, np.arange(slacks))), (m, slacks))
    none, one = sparse.csr_matrix((m, h)), sparse.identity(slacks, format="csr")
    empty = sparse.csr_matrix((slacks, h))
    data = rows.numpy()[point].ravel()
    columns = (neuron[:, None] * r + np.arange(r)).ravel()
    theirs = sparse.csr_matrix((data, (np.repeat(np.arange(slacks), r), columns)), (slacks, h * r))
    blocks = [
        [-mine, none, sums],
        [sparse.csr_matrix((slacks, h * r)), empty, -one],
        [theirs, empty, -one],
    ]
    for j in range(h):
        length = sparse.csr_matrix(([-1.0], ([0], [j])), (r + 1, h))
        place = (-np.ones(r), (np.arange(1, r + 1), j * r + np.arange(r)))
        entries = sparse.csr_matrix(place, (r + 1, h * r))
        blocks.append([entries, length, sparse.csr_matrix((r + 1, slacks))])
    q = np.concatenate([np.zeros(h * r), np.ones(h), np.zeros(slacks)])
    b = np.concatenate([-np.ones(m), np.zeros(2 * slacks + h * (r + 1))])
    solution = cone_program(q, sparse.bmat(blocks, format="csc"), b, m + 2 * slacks, [r + 1] * h)
    if solution is None:
        raise CallError(
            "no neurons that are on where they are asked to be fit these points: ask for more, or for other ones"
        )
    weight = torch.zeros(len(y), dtype=torch.float64)
    weight[seen] = solution.z[:m]
    beta = torch.zeros(m, h, dtype=torch.float64)
    beta[point, neuron] = solution.z[m + slacks : m + 2 * slacks]
    whole = torch.zeros(len(y), h, dtype=torch.float64)
    whole[seen] = beta
    return Program(solution.x[: h * r].reshape(h, r) @ axes.T, weight, whole)


def point_of(
    x: Rows,
    y: Numbers,
    sign: Float[Tensor, " h"],
    on: Bool[Tensor, "n h"],
    found: Program,
    axes: Float[Tensor, "D1 r"],
    scale: float,
    settled: bool,
) -> KktPoint:
    """The neurons that are not zero as a net whose least margin is 1, with what its multipliers leave."""
    rows = torch.nn.functional.pad(x.to(torch.float64), (0, 1), value=1.0)
    u = found.u @ axes.T
    length = u.norm(dim=1)
    kept = length > GONE * float(length.sum())
    u, sign, on, length = u[kept], sign[kept], on[:, kept], length[kept]
    least = float(margins_of(rows @ u.T, y, sign).min())
    if not least > 0.99:
        raise RunError(f"Clarabel's solution has least margin {least:.3g}, not 1: scale the points")
    u, length = u / least, length / least
    root = length.sqrt()
    theta, v = u / root.unsqueeze(1), sign * root
    weight = found.weight.clamp_min(0) / scale
    share = (found.beta[:, kept] / scale / weight.clamp_min(1e-300).unsqueeze(1)).clamp(0, 1)
    z = rows @ theta.T
    resting = (z > 0).to(weight)  # where a point has no multiplier, the derivative itself
    share = torch.where(weight.unsqueeze(1) > 0, share, resting)
    corners = torch.where(y.unsqueeze(1) == sign, on.to(weight), share)
    pull = corners * (y * weight).unsqueeze(1) * v
    rest = torch.cat([theta - pull.T @ rows, (v - (weight * y) @ z.clamp_min(0)).unsqueeze(1)], 1)
    margin = y * (z.clamp_min(0) @ v)
    value = float(length.sum())
    return KktPoint(
        TwoLayerNet(theta[:, :-1], v, theta[:, -1]),
        value,
        weight,
        corners,
        float(rest.norm()) / (2 * value) ** 0.5,
        float(weight @ (margin - 1) / weight.sum()),
        settled,
    )
