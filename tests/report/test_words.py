"""Numbers, verdicts and counts read the same wherever they are shown."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.base.estimate import Certain, Estimate
from tacit.lab.claims import Claim, Expected, Judge, Part
from tacit.report import words

JUDGE = Judge("where", "formula", "paper: eq. (1)", "inside: all of it")


def claim(measured: float = 0.5, spread: float | None = None, **more: Any) -> Claim:
    told = {key: more.pop(key) for key in ("source", "same_as", "low", "high") if key in more}
    low, high = (
        told.pop(end, measured + side * (spread or 0)) for end, side in (("low", -1), ("high", 1))
    )
    found = (
        Estimate(measured, low, high, 12345) if high > low else Certain(measured, "exact", 12345)
    )
    made = JUDGE(
        "id", "statement", Expected(**(more or {"value": 0.5, "tolerance": 0.3})), found, **told
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
        (0.5, math.inf, "0.5 (no interval)"),
    ],
)
def test_a_value_has_the_digits_its_spread_supports(
    measured: float, spread: float | None, text: str
) -> None:
    assert words.measured(claim(measured, spread)) == text


def test_a_lopsided_interval_is_shown_by_its_ends() -> None:
    assert words.measured(claim(0.98, low=0.93, high=0.99)) == "0.980 [0.930, 0.990]"
    assert words.measured(claim(2e9, low=1e9, high=2.1e9)) == "2e+09 [1e+09, 2.1e+09]"


def test_what_is_not_finite() -> None:
    infinite = claim(math.inf, value=math.inf)
    assert infinite.verdict == "holds"
    assert (words.expected(infinite), words.measured(infinite)) == ("∞", "∞")
    assert words.measured(claim(math.nan)) == "not finite"
    untested = JUDGE.cannot("id", "statement", Expected(text="large"), "no GPU")
    assert (words.expected(untested), words.measured(untested)) == ("large", "–")
    assert words.sample_size(untested) == "–"


def test_counts() -> None:
    untested = JUDGE.cannot("id", "statement", Expected(text="large"), "no GPU")
    assert words.totals([]) == "0 claims: none"
    assert words.totals([claim()]) == "1 claim: 1 hold"
    assert words.totals([claim(), claim(0.1), claim(0.4, 0.3), untested, untested]) == (
        "5 claims: 1 hold, 1 differ, 1 undecided, 2 not testable here"
    )
    assert words.totals([claim(source="ours"), claim(0.1, source="ours")]) == (
        "2 claims: 1 as predicted, 1 not as predicted"
    )


def test_a_family_is_told_by_its_members() -> None:
    parts = [
        Part(f"m{i}", "m", Expected(min=0.0), Estimate(1.0, low, 2.0, 5))
        for i, low in enumerate((0.5, -1.0))
    ]
    family = JUDGE.family("f", "all of them", parts)
    assert (words.expected(family), words.measured(family)) == ("all 2", "2 of 2, 1 open")
    assert words.measured(JUDGE.family("f", "all of them", parts[:1])) == "1 of 1"


def test_checks_and_repeats_are_counted_apart() -> None:
    every = [claim(), claim(source="check"), claim(0.1, source="check"), claim(same_as="a.b:c")]
    assert words.totals(every) == (
        "1 claim: 1 hold; 2 checks of our own accuracy, 1 met; 1 more repeat a measurement"
    )
    assert words.count(every)["holds"] == 1


def test_a_claim_says_where_it_comes_from() -> None:
    assert words.origin(claim()) == "The paper's formula. Bar: eq. (1) (the paper's)."
    assert words.sample_size(claim()) == "12\u2009345"
    assert words.sample_size(claim(0.5, 0.1)) == "12\u2009345 points"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (59.96, "60.0 s"), (125, "2 min 5 s"), (9000, "2.5 h")]
)
def test_duration(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text
