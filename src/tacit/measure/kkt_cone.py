r"""The nearest point of a cone to a given one, from inner products alone, with one homogeneous inequality.

    min 1/2 ||t - A nu||^2   over nu >= 0 with <c, nu> <= 0

with unit columns of A, given G = A'A and q = A't. Its optimality conditions are a linear complementarity problem
in (nu, omega), omega the multiplier of the inequality:

    0 <= nu    is orthogonal to    G nu + omega c - q >= 0
    0 <= omega is orthogonal to    -<c, nu> + SOFT omega >= 0

solved by block principal pivoting (Portugal, Judice & Vicente 1994; Kim & Park 2011): guess which variables are
positive, solve for them, exchange all that have the wrong sign; one at a time (Murty 1974) where that does not
help. G + ridge I is in place of G, so that columns which depend on each other share their weight; the ridge grows
where rounding keeps the signs from settling.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.errors import RunError

RIDGES = (1e-13, 1e-11, 1e-9, 1e-7)  # next to unit columns
PIVOTS = 60  # for each ridge
SOFT = 1e-12
WRONG = 1e-11  # a sign is wrong beyond this
TRIES = 3  # block exchanges that may fail to lower the number of wrong signs


@dataclass(frozen=True)
class Pivot:
    """Which variables are positive: `nu`, and `omega`; and the Cholesky factor of their part of G."""

    nu: Bool[Tensor, " s"]
    omega: bool
    factor: Float[Tensor, "k k"]

    def solve(
        self, q: Float[Tensor, " s"], c: Float[Tensor, " s"], rest: float = 0.0
    ) -> tuple[Float[Tensor, " s"], float]:
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


def nearest_in_cone(
    G: Float[Tensor, "s s"],
    q: Float[Tensor, " s"],
    c: Float[Tensor, " s"],
    start: Bool[Tensor, " s"],
) -> tuple[Float[Tensor, " s"], float, Pivot]:
    """nu, omega and the last pivot, from the guess that `start` are the positive ones."""
    eye = torch.eye(len(q), dtype=G.dtype, device=G.device)
    for ridge in RIDGES:
        found = settled(G + ridge * eye, q, c, start)
        if found is not None:
            return found
    raise RunError(
        f"the multipliers of {len(q)} points were not found: no choice of the positive ones had the right signs; "
        "leave out points that are equal up to rounding"
    )


def settled(
    G: Float[Tensor, "s s"],
    q: Float[Tensor, " s"],
    c: Float[Tensor, " s"],
    start: Bool[Tensor, " s"],
) -> tuple[Float[Tensor, " s"], float, Pivot] | None:
    """The pivoting of the module; None where the signs have not settled after `PIVOTS`."""
    nu_on, omega_on = start.clone(), False
    fewest, tries = len(q) + 2, TRIES
    for _ in range(PIVOTS):
        held = nu_on.nonzero().squeeze(1)
        factor, failed = torch.linalg.cholesky_ex(G[held][:, held])
        if bool(failed):
            return None
        pivot = Pivot(nu_on, omega_on, factor)
        nu, omega = pivot.solve(q, c)
        dual = G[:, held] @ nu[held] + omega * c - q
        wrong = torch.where(nu_on, nu < -WRONG, dual < -WRONG)
        wrong_omega = omega < 0 if omega_on else float(c @ nu) > WRONG
        count = int(wrong.sum()) + int(wrong_omega)
        if count == 0:
            return nu.clamp_min(0), omega, pivot
        if count < fewest:
            fewest, tries = count, TRIES
        elif tries > 0:
            tries -= 1
        else:  # one at a time, the last in a fixed order
            highest = -1 if wrong_omega else int(wrong.nonzero()[-1])
            wrong = torch.arange(len(q), device=q.device) == highest
        nu_on, omega_on = nu_on ^ wrong, omega_on ^ wrong_omega
    return None
