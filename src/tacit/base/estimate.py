"""What a measurement is worth: a value with its 95% interval, or a value that no chance entered.

Free of torch and numpy, so that a catalogue of claims can be read without them; `base.statistics` makes estimates
from samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Estimate:
    """A value with the ends of its 95% interval, over `n` of what `over` names (points, seeds, points and seeds).

    An interval that is one of m to be judged together is made wider (`of=m` in `base.statistics`), so that all m
    hold at once with 95%. `fixed` is the part of half its width that more samples do not shrink: the resolution
    of a bisection, the gap from certificate to attack.
    """

    value: float
    low: float
    high: float
    n: int = 0
    over: str = "points"
    fixed: float = 0.0

    @property
    def spread(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def through(self, monotone: Callable[[float], float]) -> Estimate:
        """The same estimate of a monotone function of the quantity, say of its ratio to a constant."""
        value, *ends = map(monotone, (self.value, self.low, self.high))
        same = self.fixed and (max(ends) - min(ends)) / (self.high - self.low)
        return replace(self, value=value, low=min(ends), high=max(ends), fixed=self.fixed * same)

    def away_from(self, goal: float) -> Estimate:
        """The distance |quantity - goal|; its least is 0 where the interval has the goal inside."""
        value, *ends = (abs(x - goal) for x in (self.value, self.low, self.high))
        low = 0.0 if self.low <= goal <= self.high else min(ends)
        return replace(self, value=value, low=low, high=max(ends))


@dataclass(frozen=True)
class Certain:
    """A value that no chance entered, and why: a closed form, an identity, a proof. `n` cases were looked at."""

    value: float
    why: str
    n: int = 1


def between(lower: Estimate, upper: Estimate) -> Estimate:
    """What is known from a lower quantity (certified) to an upper one (attacked): from the low end of the one to
    the high end of the other. The gap between the two stays, however many samples there are."""
    half = (upper.value - lower.value) / 2
    return replace(lower, value=lower.value + half, high=upper.high, fixed=half)


def most(found: Iterable[Estimate]) -> Estimate:
    """The largest of several quantities; its interval has 95% where those of the parts, together, have.

    `n` is that of the part with the largest value.
    """
    parts = list(found)
    largest = max(parts, key=lambda e: e.value)
    return replace(largest, low=max(e.low for e in parts), high=max(e.high for e in parts))


def least(found: Iterable[Estimate]) -> Estimate:
    """The smallest of several quantities, as `most`."""
    parts = list(found)
    smallest = min(parts, key=lambda e: e.value)
    return replace(smallest, low=min(e.low for e in parts), high=min(e.high for e in parts))


def farthest(found: Iterable[Estimate], goal: float = 1.0) -> Estimate:
    """The largest distance of several quantities from a goal: all are within t of it where this is at most t."""
    return most(e.away_from(goal) for e in found)
