r"""The nearest point of a cone to a given one, from inner products alone, with one homogeneous inequality.

    min 1/2 ||t - A nu||^2   over nu >= 0 with <c, nu> <= 0

with unit columns of A, given G = A'A and q = A't. Its optimality conditions are a linear complementarity problem
in (nu, omega), omega the multiplier of the inequality:

    0 <= nu    is orthogonal to    G nu + omega c - q >= 0
    0 <= omega is orthogonal to    -<c, nu> + SOFT omega >= 0

solved by block principal pivoting (Portugal, Judice & Vicente 1994; Kim & Park 2011): guess which variables are
positive, solve for them, exchange all that have the wrong sign; one at a time (Murty 1974) where that does not
help. G + ridge I is in place of G, so that columns which depend on each other share their weight; the ridge grows
where rounding keeps the signs from settling. Where no ridge helps (many more columns than dimensions, and next to
nothing left of t), Lawson & Hanson's active set takes over. A pivot with k positive variables costs k^3 / 3
multiplications, the active set at most about 3 s^3; both are used only where the budget allows it.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from scipy.optimize import nnls
from torch import Tensor

Weights = Float[Tensor, " s"]  # of the columns

RIDGES = (1e-13, 1e-11, 1e-9, 1e-7)  # next to unit columns
PIVOTS = 60  # for each ridge
SOFT = 1e-12
WRONG = 1e-11  # a sign is wrong beyond this
LOST = 1e-15  # of the largest eigenvalue: rounding
HEAVY = 1e5
TRIES = 3  # block exchanges that may fail to lower the number of wrong signs


@dataclass(frozen=True)
class Pivot:
    """Which variables are positive: `nu`, and `omega`; and the Cholesky factor of their part of G."""

    nu: Bool[Tensor, " s"]
    omega: bool
    factor: Float[Tensor, "k k"]

    def solve(self, q: Weights, c: Weights, rest: float = 0.0) -> tuple[Weights, float]:
        """nu and omega with G nu + omega c = q and <c, nu> - SOFT omega = rest, 0 where not positive."""
        sides = torch.stack([q[self.nu], c[self.nu]], 1)
        free, back = torch.cholesky_solve(sides, self.factor).unbind(1)
        omega = 0.0
        if self.omega:
            bend = float(c[self.nu] @ back) + SOFT
            omega = (float(c[self.nu] @ free) - rest) / bend
        nu = torch.zeros_like(q)
        nu[self.nu] = free - omega * back
        return nu, omega


@dataclass(frozen=True)
class Nearest:
    """The solution with its last pivot, if by pivoting; `work`: the multiplications, with what failed before."""

    nu: Weights
    omega: float
    pivot: Pivot | None
    work: float


def nearest_in_cone(
    G: Float[Tensor, "s s"],
    q: Weights,
    c: Weights,
    start: Bool[Tensor, " s"],
    budget: float = math.inf,
) -> Nearest | None:
    """From the guess that `start` are the positive ones; None where `budget` multiplications are not enough."""
    eye = torch.eye(len(q), dtype=G.dtype, device=G.device)
    work = 0.0
    for ridge in RIDGES:
        found, spent = settled(G + ridge * eye, q, c, start, budget - work)
        work += spent
        if found is not None:
            return Nearest(*found, work)
    work += 3 * len(q) ** 3
    found_last = by_active_set(G, q, c) if work <= budget else None
    return None if found_last is None else Nearest(*found_last, None, work)


def by_active_set(G: Float[Tensor, "s s"], q: Weights, c: Weights) -> tuple[Weights, float] | None:
    """nu and omega by non-negative least squares (Lawson & Hanson, chapter 23), the inequality as a heavy row
    with a slack variable; None where it does not end."""
    values, vectors = torch.linalg.eigh(G)
    here = values > LOST * values[-1]
    root = values[here].sqrt()
    A = torch.zeros(len(root) + 1, len(q) + 1, dtype=G.dtype)
    A[:-1, :-1] = root.unsqueeze(1) * vectors[:, here].T
    A[-1, :-1], A[-1, -1] = HEAVY * c, HEAVY
    t = torch.cat([vectors[:, here].T @ q / root, q.new_zeros(1)])
    try:
        found, _ = nnls(A.numpy(), t.numpy())
    except RuntimeError:  # out of iterations
        return None
    nu, omega = torch.from_numpy(found)[:-1], HEAVY * max(float(A[-1].numpy() @ found), 0.0)
    above, below = float(c.clamp_min(0) @ nu), -float(c.clamp_max(0) @ nu)
    if above > below:  # the row is not infinitely heavy
        nu = torch.where(c > 0, nu * (below / above), nu)
    return nu, omega


def settled(
    G: Float[Tensor, "s s"], q: Weights, c: Weights, start: Bool[Tensor, " s"], budget: float
) -> tuple[tuple[Weights, float, Pivot] | None, float]:
    """The pivoting of the module, and its work; None where the signs have not settled."""
    nu_on, omega_on = start.clone(), False
    fewest, tries = len(q) + 2, TRIES
    work = 0.0
    for _ in range(PIVOTS):
        held = nu_on.nonzero().squeeze(1)
        work += len(held) ** 3 / 3
        if work > budget:
            return None, work
        factor, failed = torch.linalg.cholesky_ex(G[held][:, held])
        if bool(failed):
            return None, work
        pivot = Pivot(nu_on, omega_on, factor)
        nu, omega = pivot.solve(q, c)
        dual = G[:, held] @ nu[held] + omega * c - q
        wrong = torch.where(nu_on, nu < -WRONG, dual < -WRONG)
        wrong_omega = omega < 0 if omega_on else float(c @ nu) > WRONG
        count = int(wrong.sum()) + int(wrong_omega)
        if count == 0:
            return (nu.clamp_min(0), omega, pivot), work
        if count < fewest:
            fewest, tries = count, TRIES
        elif tries > 0:
            tries -= 1
        else:  # one at a time, the last in a fixed order
            highest = -1 if wrong_omega else int(wrong.nonzero()[-1])
            wrong = torch.arange(len(q), device=q.device) == highest
        nu_on, omega_on = nu_on ^ wrong, omega_on ^ wrong_omega
    return None, work
