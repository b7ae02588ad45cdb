r"""Lottery tickets: which neurons are bound for which feature (allenzhu2020, Definitions B.1 and B.3, Lemma B.2).

With a = <w_i, M_j>, a scale s = sigma_w, and c1 > c2:

    S_sure   a_j^2 >= (c1 + c2) s^2 log d,  a_j'^2 < (c1 - c2) s^2 log d for all j' != j,  sign a_j = sign w*_j
    S_pot    a_j^2 >= (c1 - c2) s^2 log d
    S_ept    ||w||^2 <= 2 s^2 d;  at most `few` j in S_pot;  a_j^2 >= 2 s^2 sqrt(log d) for at most
             2^-sqrt(log d) d of the j;  |a_j| <= s / log d for at least `flat` d / log d of them

and, later in training, with the bias b, beta and k

    S_ept+   ||w||^2 <= s^2 d / log^2 d;  |a_j| >= s / log d for at most `few` j
    S_ept++  ||w||^2 <= s^2 / beta^2
    S_pot+   |a_j| >= k b / (d beta)
    S_sure+  a_j^2 >= 4 k b^2,  sign a_j = sign w*_j

The paper's O(1) and Omega(1) are the numbers `few` and `flat`. s follows the bias, b = sqrt(c1) s sqrt(log d)
(Definition C.12).
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.errors import CallError
from tacit.nets.symmetric import SymmetricNet

Table = Bool[Tensor, "h D"]
Chosen = Bool[Tensor, " h"]


@dataclass(frozen=True)
class Constants:
    """c1, c2 of Definition B.1, and what its O(1) and Omega(1) stand for."""

    c1: float
    c2: float
    few: int = 20
    flat: float = 0.1

    def scale(self, bias: float, d: int) -> float:
        """sigma_w for this bias (Definition C.12)."""
        return bias / math.sqrt(self.c1 * math.log(d))


def lottery_constants(m: int, d: int, gamma: float = 0.1, few: int = 20) -> Constants:
    """c1 = 2 + 2 (1 - gamma) c0 and c2 = gamma c0 with m = d^(1 + c0) (Lemma B.2, gamma in (0, 0.1])."""
    if not m > d:
        raise CallError(
            f"m={m} neurons for d={d}: Lemma B.2 needs m = d^(1+c0), more neurons than features"
        )
    if not 0 < gamma <= 0.1:
        raise CallError(f"gamma={gamma:g}: it lies in (0, 0.1]")
    c0 = math.log(m) / math.log(d) - 1
    return Constants(2 + 2 * (1 - gamma) * c0, gamma * c0, few)


@dataclass(frozen=True)
class Tickets:
    """Who is in S_sure and S_pot, neuron by feature, and who in S_ept."""

    sure: Table
    pot: Table
    ept: Chosen


@dataclass(frozen=True)
class LateTickets:
    """S_sure+ and S_pot+, neuron by feature, S_ept+ and S_ept++."""

    sure: Table
    pot: Table
    ept: Chosen
    ept_more: Chosen


def tickets(
    w: Float[Tensor, "h d"],
    M: Float[Tensor, "d D"],
    w_star: Float[Tensor, " D"],
    scale: float,
    constants: Constants,
) -> Tickets:
    """The sets of Definition B.1 at this moment."""
    a, d = along(w, M), w.shape[1]
    log, s2 = math.log(d), scale**2
    square = a.square()
    pot = square >= (constants.c1 - constants.c2) * s2 * log
    sure = (square >= (constants.c1 + constants.c2) * s2 * log) & (pot.sum(1, keepdim=True) == 1)
    sure &= a.sign() == w_star.to(a).sign()
    ept = w.to(torch.float64).square().sum(1) <= 2 * s2 * d
    ept &= pot.sum(1) <= constants.few
    ept &= (square >= 2 * s2 * math.sqrt(log)).sum(1) <= 2 ** -math.sqrt(log) * d
    ept &= (a.abs() <= scale / log).sum(1) >= constants.flat * d / log
    return Tickets(sure, pot, ept)


def late_tickets(
    w: Float[Tensor, "h d"],
    M: Float[Tensor, "d D"],
    w_star: Float[Tensor, " D"],
    scale: float,
    bias: float,
    k: float,
    beta: float,
    constants: Constants,
) -> LateTickets:
    """The sets of Definition B.3; the paper has beta = 1 / sqrt(k Xi_2^10)."""
    a, d = along(w, M), w.shape[1]
    log, length = math.log(d), w.to(torch.float64).square().sum(1)
    sure = (a.square() >= 4 * k * bias**2) & (a.sign() == w_star.to(a).sign())
    ept = (length <= scale**2 * d / log**2) & ((a.abs() >= scale / log).sum(1) <= constants.few)
    return LateTickets(sure, a.abs() >= k * bias / (d * beta), ept, length <= (scale / beta) ** 2)


def along(w: Float[Tensor, "h d"], M: Float[Tensor, "d D"]) -> Float[Tensor, "h D"]:
    """<w_i, M_j> in float64."""
    return w.to(torch.float64) @ M.to(w.device, torch.float64)


def winners(
    w: Float[Tensor, "h d"],
    M: Float[Tensor, "d D"],
    alive: Chosen | None = None,
    *,
    w_star: Float[Tensor, " D"] | None = None,
) -> Int[Tensor, " h"]:
    """The feature with the largest |<w_i, M_j>| of each neuron; -1 for those that are not alive.

    With `w_star`, the largest sign(w*_j) <w_i, M_j>: the side to which training pulls (S_sure asks for it too).
    """
    a = along(w, M)
    found = (a.abs() if w_star is None else a * w_star.to(a).sign()).argmax(1)
    return found if alive is None else torch.where(alive, found, -1)


def firing(net: SymmetricNet, x: Float[Tensor, "n d"], rows: int = 2000) -> Chosen:
    """Which neurons fire on some of the points: |<w_i, x>| >= b_i."""
    parts = [(net.before(part).abs().amax(0) >= net.b) for part in x.split(rows)]
    return torch.stack(parts).any(0)


def kept(before: Bool[Tensor, "*any"], after: Bool[Tensor, "*any"]) -> float:
    """The share of a set that is still in it: 1 where `before` is contained in `after` (Theorems C.1, C.2)."""
    count = int(before.sum())
    if not count:
        raise CallError("the set is empty: there is no share of it")
    return int((before & after).sum()) / count


def foretold(start: Tickets, won: Int[Tensor, " h"]) -> float:
    """The share of surely lucky neurons, of those that live, which won the feature of their ticket."""
    has = start.sure.any(1) & (won >= 0)
    if not bool(has.any()):
        raise CallError("no surely lucky neuron is alive: widen the net, or take smaller constants")
    return float((start.sure.int().argmax(1)[has] == won[has]).double().mean())
