"""The curve on which a riser's shortest breaking move lies: everything as a function of s.

s drives the multiplier lam through the largest own projection, c_1 -> (1 - s) c_1; see `power.py` for the
problem, the roots that the other coordinates sit on, and why the riser follows from the constraint.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.certify.poly.roots import falling_root, high_rising_root, low_rising_root, power

EQUAL = 1e-11  # weights that differ by rounding are equal


@dataclass(frozen=True)
class Separable:
    """Problem (*) for a chunk of points: projections and weights, float64."""

    own: Float[Tensor, "n K1"]
    opp: Float[Tensor, "n K2"]
    A_own: Float[Tensor, " K1"]
    A_opp: Float[Tensor, " K2"]
    p: float

    def at(self, here: Int[Tensor, " m"]) -> Separable:
        """The problem for some of the points."""
        return replace(self, own=self.own[here], opp=self.opp[here])

    @property
    def equal_opposite(self) -> bool:
        """Whether all opposite weights are one number."""
        return bool(self.A_opp.max() <= (1 + EQUAL) * self.A_opp.min())

    def largest_own(self) -> tuple[Float[Tensor, "n 1"], Float[Tensor, "n 1"]]:
        """The own projection that contributes most, and its weight."""
        first = (self.A_own * power(self.own.clamp_min(0), self.p)).argmax(1, keepdim=True)
        return self.own.gather(1, first).clamp_min(1e-12), self.A_own[first]


@dataclass(frozen=True)
class Move:
    """Points on a curve: squared length, the sign of its derivative in s, and the moves themselves."""

    square: Float[Tensor, "n b"]
    slope: Float[Tensor, "n b"]
    own: Float[Tensor, "n b K1"]
    opp: Float[Tensor, "n b K2"]


@dataclass(frozen=True)
class Curve:
    """Riser j of each point; `risers` are the opposite coordinates that rise with it (1 < p < 2)."""

    task: Separable
    j: Int[Tensor, " n"]
    risers: Bool[Tensor, "n K2"] | None = None

    def at(self, here: Int[Tensor, " m"]) -> Curve:
        """The curves of some of the points."""
        risers = None if self.risers is None else self.risers[here]
        return Curve(self.task.at(here), self.j[here], risers)

    def multiplier(self, s: Float[Tensor, "n b"]) -> Float[Tensor, "n b"]:
        """lam that brings the largest own projection c_1 to (1 - s) c_1."""
        c, A = self.task.largest_own()
        p = self.task.p
        remaining = (c * (1 - s)).clamp_min(1e-300)
        return (s * c / (p * A * remaining ** (p - 1))).clamp_max(1e250)

    def fraction(self, lam: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """s at which the multiplier is lam (1 where it is infinite)."""
        c, A = self.task.largest_own()
        k = (lam.unsqueeze(1) * self.task.p * A).clamp_max(1e250)
        return (1 - falling_root(c, k, self.task.p) / c).squeeze(1).clamp(0, 1 - 1e-9)

    def range(self) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """The s for which the other opposite coordinates have their root: up to, or from, a fold."""
        if self.risers is None:
            lam = self.last_multiplier()
            return torch.zeros_like(lam), self.fraction(lam)
        p, A, opp = self.task.p, self.task.A_opp, self.task.opp
        others = self.others()
        q = p - 1
        fold = (-opp).clamp_min(0).mul(q / (1 - q)) ** (1 - q) / (p * q * A)
        lam = torch.where(others & self.risers, fold, 0.0).amax(1)
        return self.fraction(lam), torch.ones_like(lam) - 1e-9

    def others(self) -> Bool[Tensor, "n K2"]:
        """The opposite coordinates that are not the riser."""
        every = torch.ones_like(self.task.opp, dtype=torch.bool)
        return every.scatter(1, self.j[:, None], False)

    def last_multiplier(self) -> Float[Tensor, " n"]:
        """p >= 2: lam at the first fold of another opposite coordinate, inf where there is none."""
        p, A, opp = self.task.p, self.task.A_opp, self.task.opp
        stretch = 1.0 if p == 2 else (opp.clamp_min(1e-12) * (p - 1) / (p - 2)) ** (2 - p)
        fold = torch.as_tensor(stretch / (p * (p - 1) * A)).expand_as(opp)
        return torch.where(self.others() & (opp > 0), fold, torch.inf).amin(1)

    def move(self, s: Float[Tensor, "n b"]) -> Move:
        """The points at each s: feasible by construction.

        With S the others' half squared length, dS = -lam dG (envelope), and u_j = (G/A_j)^(1/p), so
        d(length^2 / 2) = [(u_j - c_j) / (p A_j u_j^(p-1)) - lam] dG with dG < 0: the slope has the sign of
        lam p A_j u_j^(p-1) - (u_j - c_j), zero exactly where j obeys its own multiplier equation.
        """
        task, p = self.task, self.task.p
        lam = self.multiplier(s)
        c_own, c_opp = task.own.unsqueeze(1), task.opp.unsqueeze(1)
        k_own, k_opp = (p * A * lam.unsqueeze(2) for A in (task.A_own, task.A_opp))
        own = torch.where(c_own > 0, falling_root(c_own, k_own, p), c_own)
        if self.risers is None:
            opp = low_rising_root(c_opp, k_opp, p)
        else:
            rising = high_rising_root(c_opp, k_opp, p)
            opp = torch.where(self.risers.unsqueeze(1), rising, c_opp)
        at_j = self.j[:, None, None].expand(*s.shape, 1)
        opp = opp.expand(*s.shape, -1).scatter(2, at_j, 0.0)
        mine, theirs = (power(u.clamp_min(0), p) for u in (own, opp))
        needed = mine @ task.A_own - theirs @ task.A_opp
        c_j, A_j = task.opp.gather(1, self.j[:, None]), task.A_opp[self.j][:, None]
        enough = A_j * power(c_j.clamp_min(0), p) >= needed
        u_j = torch.where(enough, c_j, (needed.clamp_min(0) / A_j) ** (1 / p))
        opp = opp.scatter(2, at_j, u_j.unsqueeze(2))
        d_own, d_opp = own - c_own, opp - c_opp
        square = d_own.square().sum(2) + d_opp.square().sum(2)
        # as a difference of logarithms, which is nearly straight in s for any p
        pull = log(lam * p * A_j) + (p - 1) * log(u_j)
        return Move(square, (pull - log(u_j - c_j)).clamp(-50, 50), d_own, d_opp)


def log(u: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
    """log with a floor in place of -inf."""
    return u.clamp_min(1e-300).log()
