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
        return {name: in_json(value) for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Claim:
        """The claim that `as_json` wrote, here or before claims had a source."""
        members = tuple(Member(**read(member)) for member in record.get("members", ()))
        return cls(**{**read(record), "members": members})


def in_json(value: Any) -> Any:
    """A field of a claim or a member; an end of an interval at infinity is null."""
    if isinstance(value, Expected):
        return value.as_json()
    if isinstance(value, Member):
        return {name: in_json(part) for name, part in vars(value).items()}
    if isinstance(value, tuple):
        return [in_json(part) for part in value]
    return finite(value) if isinstance(value, float) else value


def read(record: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record, with its expectation and its interval."""
    low, high = record.get("interval") or (None, None)
    ends = (-math.inf if low is None else low, math.inf if high is None else high)
    told = {"expected": Expected(**record["expected"])}
    return {**record, **told, "interval": ends if record.get("interval") else None}
