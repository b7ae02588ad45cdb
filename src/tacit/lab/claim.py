"""The protocol of claims before they had a source, for exhibits of other packages that still use it.

Their claims are shown as predictions of our own (`source="ours"`), with the interval that `spread` gives. One
without a spread counts as deterministic, as it always did.
"""

from __future__ import annotations

from tacit.base.estimate import Certain, Estimate
from tacit.lab.claims.claim import Claim as Claim
from tacit.lab.claims.expected import Expected as Expected
from tacit.lab.claims.expected import finite
from tacit.lab.claims.judge import SMOKE_REASON as SMOKE_REASON
from tacit.lab.claims.judge import Judge

BAR = "ours: the exhibit uses the protocol from before claims said where their bar comes from"
REGIME = "outside: the exhibit uses the protocol from before claims said in which regime they stand"
CERTAIN = "the exhibit gives no spread"


def judge(
    id: str, statement: str, where: str, expected: Expected, measured: float,
    *, n: int, smoke: bool, spread: float | None = None, because: str = "",
) -> Claim:  # fmt: skip
    """The claim with its verdict, from a value and half the width of its interval."""
    half = finite(spread)
    found = (
        Certain(measured, CERTAIN, n)
        if half is None
        else Estimate(measured, measured - half, measured + half, max(n, 1))
    )
    return Judge(where, "ours", BAR, REGIME, smoke)(id, statement, expected, found, because=because)


def untestable(id: str, statement: str, where: str, expected: Expected, reason: str) -> Claim:
    """A claim this machine or this setting cannot decide, and why."""
    return Judge(where, "ours", BAR, REGIME).cannot(id, statement, expected, reason)
