r"""The largest margin of ReLU nets of any width, at small size: a convex program over all activation patterns.

    min 1/2 ||theta||^2   such that   y_i f(x_i; theta) >= 1 for every i      (frei2023, Problem (2))

has many KKT points. Its global optimum is found by Pilanci & Ergen's reformulation (2020, Section 3, there with
a squared loss or any convex one). A balanced neuron is w_j = |v_j| (w, b)_j with a sign, 1/2 ||theta||^2 is
sum_j ||w_j||, and two neurons of one sign and one activation pattern add up to one without becoming longer. So
with the patterns P = (1[<x~_i, u> >= 0])_i that some u has, x~ = (x, 1), the problem is

    min sum_P ||u_P|| + ||u'_P||   such that   y_i sum_P P_i <x~_i, u_P - u'_P> >= 1,
                                               (2 P_i - 1) <x~_i, u_P> >= 0,   the same for u'_P

exactly, at every width from the number of nonzero u on (at most n + 1 are needed). Its dual is

    max sum_i lambda_i   such that   |sum_i lambda_i y_i relu(<x~_i, u>)| <= 1 for every unit u,  lambda >= 0

The patterns are the cells of n hyperplanes through 0: 2 sum_{k < r} C(n - 1, k) in general position, r the rank
of x~ (Cover 1965, Theorem 1). They are enumerated exactly: every cell has an edge, and around an edge the cells
are those of the hyperplanes that hold it, one dimension lower.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy import sparse
from torch import Tensor

from tacit.base.shapes import Numbers, Rows
from tacit.errors import CallError, RunError
from tacit.nets import TwoLayerNet
from tacit.train.max_margin.two_neuron import cone_program, in_span

MOST = 1100  # patterns: 1024 (ten independent points) take about 2 s
ON = 1e-9  # a unit point closer than this to a hyperplane is on it
GONE = 1e-7  # neurons shorter than this share of the value are zero


@dataclass(frozen=True)
class GlobalMaxMargin:
    """A net with the largest margin over ||theta||^2 of any ReLU net with biases: balanced, least margin 1.

    `value` is 1/2 ||theta||^2; no net of any width has less than `lower`, the dual's value. `multipliers` are the
    dual's lambda.
    """

    net: TwoLayerNet
    value: float
    lower: float
    multipliers: Numbers

    @property
    def margin(self) -> float:
        """The least margin over ||theta||^2, 1 / (2 value)."""
        return 1 / (2 * self.value)


def global_max_margin(x: Rows, y: Float[Tensor, " m"]) -> GlobalMaxMargin:
    """The global optimum for few points: in low dimension (n = 10 in 3: 260 patterns), or n <= 10 in any."""
    points, scale, axes = in_span(x, y)
    patterns = activation_patterns(points)
    n, r = points.shape
    count = len(patterns)
    on = patterns.numpy().astype(float)
    signed = (y.to(torch.float64).unsqueeze(1) * points).numpy()
    # variables: u_P of positive neurons, then of negative ones, then the lengths of all
    margins = np.concatenate(
        [-side * (on[:, :, None] * signed).transpose(1, 0, 2).reshape(n, -1) for side in (1, -1)], 1
    )
    cones = sparse.block_diag([-(2 * p - 1)[:, None] * points.numpy() for p in on] * 2)
    length = sparse.kron(
        sparse.identity(2 * count), sparse.csr_matrix(([-1.0], ([0], [0])), (r + 1, 1))
    )
    entries = sparse.kron(
        sparse.identity(2 * count), sparse.vstack([sparse.csr_matrix((1, r)), -sparse.identity(r)])
    )
    A = sparse.bmat(
        [[sparse.csr_matrix(margins), None], [cones, None], [entries, length]], format="csc"
    )
    b = np.concatenate([-np.ones(n), np.zeros(A.shape[0] - n)])
    q = np.concatenate([np.zeros(2 * count * r), np.ones(2 * count)])
    solution = cone_program(q, A, b, n + 2 * count * n, [r + 1] * (2 * count))
    if solution is None:
        raise CallError(
            "no net fits these points: equal points have opposite labels; drop one of each"
        )
    u = solution.x[: 2 * count * r].reshape(2, count, r) @ (axes / scale).T
    return balanced(x, y, u, solution.dual_value / scale, solution.z[:n] / scale)


def balanced(
    x: Rows, y: Numbers, u: Float[Tensor, "2 patterns D1"], lower: float, multipliers: Numbers
) -> GlobalMaxMargin:
    """The neurons that are not zero, as a net scaled to least margin 1."""
    length = u.norm(dim=-1)
    keep = length > GONE * float(length.sum())
    sign = torch.tensor([[1.0], [-1.0]], dtype=torch.float64).expand_as(length)[keep]
    w, root = u[keep], length[keep].sqrt()
    w = w / root.unsqueeze(1)
    net = TwoLayerNet(w[:, :-1], sign * root, w[:, -1])
    least = float((y.to(torch.float64) * net(x.to(torch.float64))).min())
    if not least > 0.99:
        raise RunError(f"Clarabel's solution has least margin {least:.3g}, not 1: scale the points")
    net = TwoLayerNet(net.w / least**0.5, net.v / least**0.5, w[:, -1] / least**0.5)
    return GlobalMaxMargin(net, float(length[keep].sum()) / least, lower, multipliers)


def activation_patterns(x: Float[Tensor, "n r"]) -> Bool[Tensor, "patterns n"]:
    """Every (1[<x_i, u> > 0])_i that some u off all hyperplanes has; x has rank r and no zero row."""
    n, r = x.shape
    rows = x / x.norm(dim=1, keepdim=True)
    expected = cell_count(n, r)
    if expected > MOST:
        raise CallError(
            f"{n} points of rank {r} have up to {expected} activation patterns, more than {MOST}: "
            "take fewer points, or a lower dimension"
        )
    found = cells(rows)
    return torch.tensor(sorted(found, reverse=True)) > 0


def cell_count(n: int, r: int) -> int:
    """2 sum_{k < r} C(n - 1, k): the cells of n hyperplanes through 0 in general position in r dimensions."""
    total, term = 0, 1
    for k in range(min(r, n)):
        total += term
        term = term * (n - 1 - k) // (k + 1)
    return 2 * total


def cells(rows: Float[Tensor, "n r"]) -> set[tuple[int, ...]]:
    """The sign vectors (-1 or 1) of the cells; `rows` are unit, of full rank r."""
    n, r = rows.shape
    if n == r:  # independent: every combination
        return set(itertools.product((-1, 1), repeat=n))
    if r == 1:
        signs = tuple(int(s) for s in rows[:, 0].sign())
        return {signs, tuple(-s for s in signs)}
    out: set[tuple[int, ...]] = set()
    seen: set[tuple[bool, ...]] = set()
    for chosen in itertools.combinations(range(n), r - 1):
        _, sizes, basis = torch.linalg.svd(rows[list(chosen)])
        if float(sizes[-1]) < ON:
            continue
        edge = basis[-1]
        z = rows @ edge
        on = z.abs() < ON
        if (key := tuple(on.tolist())) in seen:
            continue
        seen.add(key)
        held = on.nonzero().flatten().tolist()
        around = cells(rows[held] @ basis[:-1].T)
        for side in (1, -1):
            cell = [int(s) for s in side * z.sign()]
            for inner in around:
                for i, s in zip(held, inner, strict=True):
                    cell[i] = s
                out.add(tuple(cell))
    return out
