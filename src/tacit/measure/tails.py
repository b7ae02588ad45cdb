"""Bounds of the form P(event) <= a exp(-C b) with an unnamed constant C, against counted events.

The papers' bounds hold "for some constant C > 0". A count of events turns into the largest C that the
sample supports: with the one-sided upper confidence limit q of P(event), the bound is known to hold for
every C <= ln(a / q) / b. Settings in which too few events were seen say nothing about C (q is then the
sample's size speaking), so they do not count, unless even their lower limit exceeds the bound at C = 1/2.
"""

import math
from dataclasses import dataclass

from tacit.base.statistics import lower_limit, upper_limit

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

    def largest_C(self, level: float) -> float:
        """The largest constant for which the bound holds with confidence `level`; inf if the setting
        says nothing. Few events say nothing unless they are too many for C = 1/2."""
        if self.b == 0:
            return math.inf
        if self.events < VISIBLE:
            least = lower_limit(self.events, self.n, level)
            return math.inf if least <= self.bound() else math.log(self.a / least) / self.b
        return math.log(self.a / upper_limit(self.events, self.n, level)) / self.b


def largest_constant(tails: list[Tail], confidence: float = 0.99) -> float:
    """The largest C that holds in every setting together (Bonferroni over the settings)."""
    level = 1 - (1 - confidence) / max(len(tails), 1)
    return min((tail.largest_C(level) for tail in tails), default=math.inf)
