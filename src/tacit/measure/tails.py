"""Bounds of the form P(event) <= a exp(-C b) with an unnamed constant C, against counted events.

The papers' bounds hold "for some constant C > 0"; a count of events allows every C <= ln(a / P(event)) / b.
"""

import math
from dataclasses import dataclass

C = 0.5  # what the Gaussian tail gives: P(|N(0, s^2)| > t) <= 2 exp(-t^2 / (2 s^2))
VISIBLE = 30  # events that make a setting count


@dataclass(frozen=True)
class Tail:
    """One setting: `events` of `n` samples, against a exp(-C b)."""

    events: int
    n: int
    a: float
    b: float

    def bound(self, C: float = C) -> float:
        """a exp(-C b); above 1 it says nothing."""
        return self.a * math.exp(-C * self.b)
