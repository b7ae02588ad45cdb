"""A claim: what is stated and by whom, what was measured here, and the verdict that follows.

The verdict is computed (`lab.claims.judge`), never written by hand, so that a bar cannot be bent in one place and
reported in another. A claim of a paper that differs is a finding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from tacit.lab.claims.expected import Expected, finite

Verdict = Literal[
    "holds", "differs", "as predicted", "not as predicted", "undecided", "vacuous", "not testable here"
]  # fmt: skip
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
OURS: dict[Verdict, Verdict] = {"holds": "as predicted", "differs": "not as predicted"}
SOURCES = {
    "formula": "the paper's formula",
    "number": "the paper's number",
    "order": "the paper's order of magnitude or of merit",
    "words": "the paper's words",
    "ours": "a prediction or a bar of our own",
    "check": "the accuracy of our own method",
}
BARS = ("paper", "derived", "ours")
REGIMES = ("inside", "outside", "other data", "shortened", "schematic")


@dataclass(frozen=True)
class Member:
    """One statement of a family that is judged as a whole; its interval is one of a simultaneous 95% band."""

    id: str
    statement: str
    expected: Expected
    measured: float | None
    interval: tuple[float, float] | None

    def as_json(self) -> dict[str, Any]:
        """The record under its family; inf and NaN become null."""
        return {
            "id": self.id,
            "statement": self.statement,
            "expected": self.expected.as_json(),
            "measured": finite(self.measured),
            "interval": interval_json(self.interval),
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Member:
        """The member that `as_json` wrote."""
        expected, interval = Expected(**record["expected"]), interval_of(record["interval"])
        return cls(**{**record, "expected": expected, "interval": interval})


@dataclass(frozen=True)
class Claim:
    """One statement with its measurement (`claims.json` of the run folder).

    - `source`: whose statement it is, one of SOURCES.
    - `bar`: where the number that decides comes from: one of BARS, a colon, one line.
    - `regime`: whether the setting is the statement's own: one of REGIMES, a colon, one line.
    - `interval`: the 95% interval of the measurement, None where `deterministic` says why there is none;
      `spread` is half its width; `n` counts what it is `over` (points, seeds, points and seeds).
    - `same_as`: `exhibit:claim` where this repeats another claim's measurement.
    - `members`: the statements of a family that is judged as a whole.
    """

    id: str
    statement: str
    where: str
    expected: Expected
    measured: float | None
    spread: float | None
    n: int
    verdict: Verdict
    reason: str
    source: str = "ours"
    bar: str = "ours: the exhibit does not say where it comes from"
    regime: str = "outside: the exhibit does not say where it stands"
    interval: tuple[float, float] | None = None
    over: str = ""
    same_as: str = ""
    deterministic: str = ""
    members: tuple[Member, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.source == "ours":
            object.__setattr__(self, "verdict", OURS.get(self.verdict, self.verdict))

    def as_json(self) -> dict[str, Any]:
        """The record of the contract; inf and NaN become null."""
        return {
            "id": self.id,
            "statement": self.statement,
            "where": self.where,
            "expected": self.expected.as_json(),
            "measured": finite(self.measured),
            "spread": finite(self.spread),
            "n": self.n,
            "verdict": self.verdict,
            "reason": self.reason,
            "source": self.source,
            "bar": self.bar,
            "regime": self.regime,
            "interval": interval_json(self.interval),
            "over": self.over,
            "same_as": self.same_as,
            "deterministic": self.deterministic,
            "members": [member.as_json() for member in self.members],
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Claim:
        """The claim that `as_json` wrote, here or before claims had a source."""
        read = {
            "expected": Expected(**record["expected"]),
            "interval": interval_of(record.get("interval")),
            "members": tuple(Member.from_json(member) for member in record.get("members", ())),
        }
        return cls(**{**record, **read})


def interval_json(interval: tuple[float, float] | None) -> list[float | None] | None:
    """[low, high], null for an end at infinity."""
    return None if interval is None else [finite(end) for end in interval]


def interval_of(ends: list[float | None] | None) -> tuple[float, float] | None:
    """The interval that `interval_json` wrote."""
    if ends is None:
        return None
    low, high = ends
    return -math.inf if low is None else low, math.inf if high is None else high
