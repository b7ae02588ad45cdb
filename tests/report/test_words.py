"""Numbers, verdicts and counts read the same wherever they are shown."""

from __future__ import annotations

import math

import pytest

from tacit.lab.claim import judge, untestable
from tacit.lab.claims import Claim, Expected
from tacit.report import words


def claim(measured: float = 0.5, spread: float | None = None, **expected: float) -> Claim:
    made = judge(
        "id",
        "statement",
        "where",
        Expected(**(expected or {"value": 0.5})),
        measured,
        n=12345,
        spread=spread,
        smoke=False,
    )
    return Claim.from_json(made.as_json())


@pytest.mark.parametrize(
    ("measured", "spread", "text"),
    [
        (0.316227766, None, "0.316228"),
        (0.316227766, 0.0, "0.316228"),
        (0.316227766, 0.0123, "0.316 ± 0.012"),
        (0.5, 0.25, "0.50 ± 0.25"),
        (1234.5678, 12.3, "1235 ± 12"),
        (1e-12, 1e-13, "1e-12 ± 1e-13"),
        (2e9, 0.5, "2e+09 ± 0.5"),
        (1.23456e-16, None, "1.2e-16"),
        (0.0, None, "0"),
    ],
)
def test_a_value_has_the_digits_its_spread_supports(
    measured: float, spread: float | None, text: str
) -> None:
    assert words.measured(claim(measured, spread)) == text


def test_what_is_not_finite() -> None:
    infinite = claim(math.inf, value=math.inf)
    assert infinite.verdict == "holds"
    assert (words.expected(infinite), words.measured(infinite)) == ("∞", "∞")
    assert words.measured(claim(math.nan)) == "not finite"
    untested = untestable("id", "statement", "where", Expected(text="large"), "no GPU")
    assert (words.expected(untested), words.measured(untested)) == ("large", "–")
    assert words.sample_size(untested) == "–"


def test_counts() -> None:
    untested = untestable("id", "statement", "where", Expected(text="large"), "no GPU")
    assert words.totals([]) == "0 claims: none"
    assert words.totals([claim()]) == "1 claim: 1 hold"
    assert words.totals([claim(), claim(0.4), untested, untested]) == (
        "4 claims: 1 hold, 1 differ, 2 not testable here"
    )
    assert words.sample_size(claim()) == "12\u2009345"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (59.96, "60.0 s"), (125, "2 min 5 s"), (9000, "2.5 h")]
)
def test_duration(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text
