import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import CallError
from tacit.lab.claim import SMOKE_REASON, Claim, Expected, judge, untestable

number = st.floats(-1e6, 1e6)


def judged(expected, measured, **more):
    return judge(
        "c", "a statement", "Section 1", expected, measured, n=7, **{"smoke": False} | more
    )


@given(value=number, tolerance=st.floats(0, 10), off=st.floats(-20, 20))
def test_a_value_holds_within_its_tolerance(value, tolerance, off):
    measured = value + off
    holds = abs(measured - value) <= tolerance
    claim = judged(Expected(value=value, tolerance=tolerance), measured)
    assert claim.verdict == ("holds" if holds else "differs")
    assert bool(claim.reason) == (not holds)


@pytest.mark.parametrize(
    ("expected", "measured", "verdict"),
    [
        (Expected(min=0.5), 0.5, "holds"),
        (Expected(min=0.5), 0.49, "differs"),
        (Expected(max=0.5), 0.51, "differs"),
        (Expected(max=0.5, tolerance=0.02), 0.51, "holds"),
        (Expected(min=0.1, max=0.2), 0.15, "holds"),
        (Expected(min=0.1, max=0.2), 0.25, "differs"),
        (Expected(min=0.5), math.inf, "holds"),
        (Expected(value=math.inf), math.inf, "holds"),
        (Expected(value=1.0, tolerance=9.0), math.nan, "differs"),
        (Expected(min=0.0), math.nan, "differs"),
        (Expected(max=0.0), math.nan, "differs"),
    ],
)
def test_verdicts(expected, measured, verdict):
    assert judged(expected, measured).verdict == verdict


def test_smoke_decides_nothing():
    claim = judged(Expected(min=1.0), 0.0, smoke=True)
    assert (claim.verdict, claim.reason) == ("not testable here", SMOKE_REASON)
    assert claim.measured == 0.0


def test_a_reason_belongs_to_a_difference():
    assert judged(Expected(min=1.0), 0.0, because="too small").reason == "too small"
    assert judged(Expected(min=1.0), 2.0, because="too small").reason == ""
    assert "measured 0 where ≥ 1 was expected" in judged(Expected(min=1.0), 0.0).reason


def test_words_alone_cannot_be_judged():
    with pytest.raises(CallError, match="words alone"):
        judged(Expected(text="about one"), 1.0)
    claim = untestable("c", "s", "w", Expected(text="about one"), "no data here")
    assert claim.verdict == "not testable here"
    assert claim.as_json()["expected"] == {"text": "about one"}


@pytest.mark.parametrize("measured", [0.25, math.inf, math.nan])
def test_the_record_is_valid_json_and_comes_back(measured):
    claim = judged(Expected(value=0.25, tolerance=0.1), measured, spread=0.01)
    text = json.dumps(claim.as_json(), allow_nan=False)
    keys = ["id", "statement", "where", "expected", "measured", "spread", "n", "verdict", "reason"]
    assert list(json.loads(text)) == keys
    back = Claim.from_json(json.loads(text))
    assert back.as_json() == claim.as_json()
    assert back.measured == (measured if math.isfinite(measured) else None)


def test_a_spread_that_is_not_finite_is_no_spread():
    claim = judge("a", "b", "c", Expected(min=0.0), 1.0, n=1, smoke=False, spread=math.inf)
    assert claim.spread is None
