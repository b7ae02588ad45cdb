r"""The least value of a sum of functions of one coordinate each over sum_j t_j^2 <= budget, from below.

    min  >=  max_{lam >= 0}  sum_j min_{|t| <= reach_j} ( h_j(t) + lam t^2 / 2 ) - lam budget / 2

Any lam is sound. The right side is concave in lam, with slope (sum_j t_j^2 - budget)/2 at the minimisers. With
one constraint what is lost is the bend of few of the h_j, however many there are (Shapley and Folkman).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.certify.symmetric.cells import Pieces, Table

STEPS = 24  # of the search for lam
CLOSE = 1.002  # the bracket where it ends
FAR = 3.0  # its steps while there is no bracket

Any = Float[Tensor, "*any"]
Bend = Float[Tensor, "*b"]


def least(pieces: Pieces, budget: float, guess: float) -> float:
    """The bound without its constant; the search begins at lam = guess > 0."""
    chords = Chords.of(pieces)
    best, t = spent(pieces, chords, 0.0)
    if float(t.square().sum()) <= budget:
        return best
    low, high, lam = 0.0, math.inf, guess
    for _ in range(STEPS):
        value, t = spent(pieces, chords, lam)
        best = max(best, value - lam * budget / 2)
        if float(t.square().sum()) > budget:
            low = lam
        else:
            high = lam
        if high < CLOSE * low:
            break
        lam = FAR * low if high == math.inf else math.sqrt(high * max(low, high / FAR**2))
    return best


@dataclass(frozen=True)
class Chords:
    """On each cell the chord of h with the linear form: its slope, and what h lost to it where t = 0."""

    first: Table
    last: Table
    slope: Table
    off: Table

    @staticmethod
    def of(pieces: Pieces) -> Chords:
        """The same at every lam."""
        first, last = pieces.ends[:, :-1], pieces.ends[:, 1:]
        width = last - first
        rise = (pieces.right - pieces.left) / torch.where(width > 0, width, 1.0)
        return Chords(first, last, rise + pieces.slope[pieces.axis].unsqueeze(1), rise * first)


def spent(pieces: Pieces, chords: Chords, lam: float) -> tuple[float, Float[Tensor, " D"]]:
    """The sum over the coordinates at one lam, and the minimisers."""
    bend, axis = lam - pieces.bend, pieces.axis
    t, value = minimum(pieces.slope, bend, -pieces.reach, pieces.reach)
    at, here = minimum(chords.slope, bend[axis].unsqueeze(1), chords.first, chords.last)
    lowest, cell = (here + pieces.left - chords.off).min(1)
    t[axis] = at.gather(1, cell.unsqueeze(1)).squeeze(1)
    value[axis] = lowest
    return float(value.sum()), t


def minimum(slope: Any, bend: Bend, first: Any, last: Any) -> tuple[Any, Any]:
    """Of slope t + bend t^2 / 2 on [first, last]: where, and the value."""
    up = bend > 0
    at = torch.maximum(-slope / torch.where(up, bend, 1.0), first).minimum(last)
    if not bool(up.all()):
        # concave or straight: at the lower of the ends
        end = torch.where(slope + bend * (first + last) / 2 > 0, first, last)
        at = torch.where(up, at, end)
    return at, (slope + bend * at / 2) * at
