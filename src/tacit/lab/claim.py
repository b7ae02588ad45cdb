"""A claim: what a paper states, what was measured here, and the verdict that follows.

The verdict is computed from `expected` and `measured`, never written by hand, so a threshold cannot
be bent in one place and reported in another. A claim that differs is a finding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from tacit.errors import CallError

Verdict = Literal["holds", "differs", "not testable here"]
SMOKE_REASON = "smoke scale tests the code, not the claim"


@dataclass(frozen=True)
class Expected:
    """What the paper gives or predicts: one of `value`, `min`, `max` or `text`.

    `tolerance` is absolute and belongs to whichever of the three numbers is set.
    """

    value: float | None = None
    min: float | None = None
    max: float | None = None
    text: str | None = None
    tolerance: float = 0.0

    def admits(self, measured: float) -> bool:
        """Whether `measured` agrees; NaN never does."""
        if self.value is not None:
            # equal first: the expected value may be inf
            return measured == self.value or abs(measured - self.value) <= self.tolerance
        if self.min is not None and not measured >= self.min - self.tolerance:
            return False
        return not (self.max is not None and not measured <= self.max + self.tolerance)

    def as_json(self) -> dict[str, float | str | None]:
        """The contract's `{value | min | max | text}`, with `tolerance` where there is one."""
        numbers = {"value": self.value, "min": self.min, "max": self.max}
        out: dict[str, float | str | None] = {
            key: finite(number) for key, number in numbers.items() if number is not None
        }
        if self.text is not None:
            out["text"] = self.text
        if self.tolerance:
            out["tolerance"] = self.tolerance
        return out

    def __str__(self) -> str:
        parts = []
        slack = f"{self.tolerance:.2g}" if self.tolerance else ""
        if self.value is not None:
            parts.append(f"{self.value:.6g}" + (slack and f" ± {slack}"))
        if self.min is not None:
            parts.append(f"≥ {self.min:.6g}" + (slack and f" − {slack}"))
        if self.max is not None:
            parts.append(f"≤ {self.max:.6g}" + (slack and f" + {slack}"))
        return " and ".join(parts) if parts else (self.text or "")


@dataclass(frozen=True)
class Claim:
    """One statement of a paper with its measurement (`claims.json` of the run folder).

    `spread` is the half-width of a 95% interval over the repeats or samples, None where the value
    is deterministic; `n` is how many samples or cases the value rests on.
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
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Claim:
        """The claim that `as_json` wrote."""
        return cls(**{**record, "expected": Expected(**record["expected"])})


def judge(
    id: str,
    statement: str,
    where: str,
    expected: Expected,
    measured: float,
    *,
    n: int,
    smoke: bool,
    spread: float | None = None,
    because: str = "",
) -> Claim:
    """The claim with its verdict.

    `smoke`: the run was too small to say anything about this claim, which is then `not testable
    here`. A claim that is exact at any size (an identity, a closed form) passes `smoke=False`.
    `because` explains a difference in one sentence; it is kept only where the verdict is `differs`.
    """
    spread = finite(spread)
    if expected.value is None and expected.min is None and expected.max is None:
        raise CallError(f"claim {id}: words alone cannot be judged; expect a value, a min or a max")
    if smoke:
        return Claim(
            id, statement, where, expected, measured, spread, n, "not testable here", SMOKE_REASON
        )
    if expected.admits(measured):
        return Claim(id, statement, where, expected, measured, spread, n, "holds", "")
    reason = because or f"measured {measured:.6g} where {expected} was expected"
    return Claim(id, statement, where, expected, measured, spread, n, "differs", reason)


def untestable(id: str, statement: str, where: str, expected: Expected, reason: str) -> Claim:
    """A claim this machine or this setting cannot decide, and why."""
    return Claim(id, statement, where, expected, None, None, 0, "not testable here", reason)


def finite(number: float | None) -> float | None:
    """JSON has no inf or NaN: both become null."""
    return None if number is None or not math.isfinite(number) else float(number)
