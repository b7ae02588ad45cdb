"""Exhibits that use the protocol from before claims had a source still run, and are shown as predictions."""

from __future__ import annotations

import math

import pytest

from tacit.errors import CallError
from tacit.lab.claim import judge, untestable
from tacit.lab.claims import SMOKE_REASON, Expected


def judged(expected, measured, **more):
    return judge(
        "c", "a statement", "Section 1", expected, measured, **{"n": 7, "smoke": False} | more
    )


@pytest.mark.parametrize(
    ("expected", "measured", "spread", "verdict"),
    [
        (Expected(min=0.5), 0.5, None, "as predicted"),
        (Expected(min=0.5), 0.49, None, "not as predicted"),
        (Expected(min=0.5), 0.49, 0.1, "undecided"),
        (Expected(min=0.5), 0.7, 0.1, "as predicted"),
        (Expected(max=0.5, tolerance=0.02), 0.51, None, "as predicted"),
        (Expected(min=0.1, max=0.2), 0.25, 0.01, "not as predicted"),
        (Expected(value=math.inf), math.inf, None, "as predicted"),
        (Expected(value=1.0, tolerance=9.0), math.nan, None, "undecided"),
        (Expected(min=0.0), 1.0, math.inf, "as predicted"),
    ],
)
def test_verdicts(expected, measured, spread, verdict):
    claim = judged(expected, measured, spread=spread)
    assert (claim.verdict, claim.source) == (verdict, "ours")
    assert claim.bar.startswith("ours: ")
    assert claim.regime.startswith("outside: ")
    assert bool(claim.deterministic) == (claim.interval is None)


def test_smoke_decides_nothing():
    claim = judged(Expected(min=1.0), 0.0, smoke=True)
    assert (claim.verdict, claim.reason) == ("not testable here", SMOKE_REASON)
    assert claim.measured == 0.0


def test_a_reason_belongs_to_a_difference():
    assert judged(Expected(min=1.0), 0.0, because="too small").reason == "too small"
    assert judged(Expected(min=1.0), 2.0, because="too small").reason == ""


def test_words_alone_cannot_be_judged():
    with pytest.raises(CallError, match="words alone"):
        judged(Expected(text="about one"), 1.0)
    claim = untestable("c", "s", "w", Expected(text="about one"), "no data here")
    assert (claim.verdict, claim.source) == ("not testable here", "ours")
    assert claim.as_json()["expected"] == {"text": "about one"}
