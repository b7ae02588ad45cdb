"""A verdict is as strong as its interval, says where it comes from, and is refused where it cannot."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.base.estimate import Certain, Estimate, farthest, least, most
from tacit.base.statistics import mean_of, proportion
from tacit.errors import CallError
from tacit.lab.claims import SMOKE_REASON, Claim, Expected, Judge, Part

PAPER = Judge("Section 1", "formula", "paper: eq. (1)", "inside: all of it")
OURS = PAPER.but(source="ours")
number = st.floats(-100, 100)


def estimate(low, high, value=None, n=10):
    return Estimate((low + high) / 2 if value is None else value, low, high, n, "seeds")


@given(number, st.floats(0, 50), number, st.floats(0, 50))
def test_a_decided_verdict_has_its_whole_interval_on_one_side(value, tolerance, low, width):
    expected, found = Expected(value=value, tolerance=tolerance), estimate(low, low + width)
    verdict = PAPER("c", "s", expected, found).verdict
    inside = [abs(x - value) <= tolerance for x in np.linspace(found.low, found.high, 101)]
    if verdict == "holds":
        assert all(inside)
    elif verdict == "differs":
        assert not any(inside)
    else:
        assert verdict == "undecided"
        assert abs(found.low - value) > tolerance or abs(found.high - value) > tolerance


@pytest.mark.parametrize(
    ("expected", "low", "high", "verdict"),
    [
        (Expected(min=0.5), 0.5, 0.7, "holds"),
        (Expected(min=0.5), 0.4, 0.7, "undecided"),
        (Expected(min=0.5), 0.1, 0.49, "differs"),
        (Expected(min=0.5, tolerance=0.1), 0.4, 0.49, "holds"),
        (Expected(max=0.5), 0.6, 0.7, "differs"),
        (Expected(min=0.0, max=1.0), -0.5, 1.5, "undecided"),
        (Expected(min=0.0, max=1.0), 2.0, 3.0, "differs"),
        (Expected(value=0.5), 0.4, 0.6, "undecided"),
        (Expected(max=1.0), -math.inf, math.inf, "undecided"),
    ],
)
def test_verdicts(expected, low, high, verdict):
    found = Estimate(0.5 if low < 0.5 < high else low, low, high, 10, "seeds")
    assert PAPER("c", "s", expected, found).verdict == verdict
    ours = {"holds": "as predicted", "differs": "not as predicted"}.get(verdict, verdict)
    assert OURS("c", "s", expected, found).verdict == ours


def test_what_chance_did_not_enter_decides_by_itself_and_says_so():
    claim = PAPER("c", "s", Expected(max=1e-9), Certain(1e-12, "an identity", 7))
    told = (claim.verdict, claim.interval, claim.spread, claim.deterministic, claim.n)
    assert told == ("holds", None, None, "an identity", 7)
    assert PAPER("c", "s", Expected(max=1e-9), Certain(1e-3, "an identity")).verdict == "differs"
    assert (
        PAPER("c", "s", Expected(value=math.inf), Certain(math.inf, "no zero")).verdict == "holds"
    )


def test_a_number_that_is_none_decides_nothing():
    for found in (Certain(math.nan, "an identity"), Estimate(math.nan, 0.0, 1.0, 5)):
        claim = PAPER("c", "s", Expected(min=-9.0, max=9.0), found)
        assert (claim.verdict, claim.reason) == ("undecided", "the measurement is not a number")


@pytest.mark.parametrize(
    ("judge", "measured", "message"),
    [
        (PAPER, 0.5, "claim c: 0.5 has neither an interval nor a reason"),
        (PAPER, Certain(0.5, ""), "claim c: Certain needs its reason"),
        (PAPER, Estimate(0.5, 0.4, 0.6), "claim c: the estimate 0.5 has no number of samples"),
        (
            PAPER.but(source="rumour"),
            Certain(0.5, "w"),
            "claim c: source 'rumour' is none of formula",
        ),
        (
            PAPER.but(bar="paper"),
            Certain(0.5, "w"),
            "claim c: bar 'paper' is none of paper, derived",
        ),
        (PAPER.but(regime="near: it"), Certain(0.5, "w"), "claim c: regime 'near: it' is none of"),
    ],
)
def test_a_claim_without_its_evidence_or_origin_is_refused_by_name(judge, measured, message):
    with pytest.raises(CallError, match=message.replace("(", r"\(")):
        judge("c", "s", Expected(min=0.0), measured)


def test_words_alone_cannot_be_judged():
    with pytest.raises(CallError, match="claim c: words alone"):
        PAPER("c", "s", Expected(text="about one"), Certain(1.0, "w"))
    claim = PAPER.cannot("c", "s", Expected(text="about one"), "no data here")
    assert (claim.verdict, claim.reason, claim.measured) == (
        "not testable here",
        "no data here",
        None,
    )


def test_smoke_decides_only_what_is_exact_at_any_size():
    smoke = Judge("w", "formula", "paper: x", "inside: x", smoke=True)
    claim = smoke("c", "s", Expected(min=1.0), estimate(0.0, 0.1))
    assert (claim.verdict, claim.reason, claim.measured) == (
        "not testable here",
        SMOKE_REASON,
        0.05,
    )
    certain = smoke("c", "s", Expected(min=1.0), Certain(2.0, "an identity"), any_size=True)
    assert certain.verdict == "holds"
    family = smoke.family("f", "s", [Part("a", "a", Expected(min=0.0), estimate(1, 2))])
    assert (family.verdict, family.reason) == ("not testable here", SMOKE_REASON)


def test_a_statement_that_could_not_fail_is_vacuous():
    claim = PAPER("c", "s", Expected(max=3.0), estimate(0.1, 0.2), vacuous="the bound is above 1")
    assert (claim.verdict, claim.reason) == ("vacuous", "the bound is above 1")


def test_a_reason_belongs_to_a_difference():
    low = estimate(0.0, 0.1)
    assert PAPER("c", "s", Expected(min=1.0), low, because="too small").reason == "too small"
    assert PAPER("c", "s", Expected(max=1.0), low, because="too small").reason == ""
    assert "measured 0.05 where ≥ 1 was expected" in PAPER("c", "s", Expected(min=1.0), low).reason


@given(st.floats(0.01, 0.99), st.integers(20, 400), st.floats(-0.2, 0.2))
def test_as_many_samples_as_it_would_take_do_decide(p, n, off):
    """Student's interval of a sample of the same mean and deviation, n as the reason says."""
    bar = p + off
    half = 1.96 * math.sqrt(p * (1 - p) / n)
    claim = PAPER("c", "s", Expected(min=bar), Estimate(p, p - half, p + half, n, "points"))
    if claim.verdict != "undecided" or abs(off) < 1e-3:
        return
    needed = float(claim.reason.split("about ")[1].split(" points")[0].replace(",", ""))
    assert needed > n
    assert 1.96 * math.sqrt(p * (1 - p) / needed) <= abs(off) * (1 + 1e-9)
    assert 1.96 * math.sqrt(p * (1 - p) / (needed / 1.2 - 1)) > abs(off)


def test_a_rare_event_that_was_never_seen_takes_samples_in_proportion():
    found = proportion(0, 1000)
    reason = PAPER("c", "s", Expected(max=1e-6), found).reason
    needed = float(reason.split("about ")[1].split(" points")[0].replace(",", ""))
    assert proportion(0, int(needed)).high <= 1e-6 < proportion(0, int(needed / 1.1)).high
    assert "lies on the bar" in PAPER("c", "s", Expected(min=0.0), estimate(-1, 1)).reason
    assert "1 seeds give no interval" in PAPER("c", "s", Expected(min=0.0), mean_of([1.0])).reason
    odd = PAPER("c", "s", Expected(min=0.0), Estimate(3.0, math.nan, 4.0, 5))
    assert (odd.verdict, "give no interval" in odd.reason) == ("undecided", True)


def test_both_bars_and_what_no_sample_shrinks_count():
    """Of two bars inside the interval both must be left; a fixed part of the width is not shrunk."""
    band = Expected(min=0.9, max=1.05)
    wide = Estimate(1.0, 0.8, 1.06, 5, "seeds")
    assert "about 20 seeds, not 5" in PAPER("c", "s", band, wide).reason
    coarse = Estimate(2.04, 2.008, 2.072, 5, "seeds", fixed=0.03)
    near = Expected(value=2.0, tolerance=0.05)
    told = "no number of seeds decides it: the method is not exact enough"
    assert told in PAPER("c", "s", near, coarse).reason
    half = Estimate(2.02, 1.97, 2.08, 5, "seeds", fixed=0.01)
    assert "about 32 seeds" in PAPER("c", "s", near, half).reason


def test_a_family_has_one_verdict_from_all_its_members():
    def family(*ends):
        parts = [
            Part(f"m{i}", f"member {i}", Expected(value=0.5, tolerance=0.1), estimate(*end))
            for i, end in enumerate(ends)
        ]
        return PAPER.family("f", "all of them", parts)

    inside, across, outside = (0.45, 0.55), (0.45, 0.65), (0.7, 0.8)
    assert family(inside, inside).verdict == "holds"
    open_one = family(inside, across)
    assert (open_one.verdict, open_one.reason) == ("undecided", "not decided: m1")
    assert (open_one.measured, open_one.interval) == (2.0, (1.0, 2.0))
    broken = family(inside, across, outside)
    assert (broken.verdict, broken.reason) == ("differs", "outside the band: m2")
    assert broken.interval == (1.0, 2.0)
    assert [member.id for member in broken.members] == ["m0", "m1", "m2"]
    assert not hasattr(broken.members[0], "verdict")


def test_the_level_of_a_family_is_kept():
    """Of 400 families of 10 true shares, at most 5% (and chance) have a member outside its band."""
    draws = np.random.default_rng(5).binomial(50, 0.3, size=(400, 10))
    parts = [[proportion(int(k), 50, of=10) for k in row] for row in draws]
    missed = sum(not all(e.low <= 0.3 <= e.high for e in row) for row in parts)
    assert missed <= proportion(20, 400).high * 400
    alone = sum(
        not all(e.low <= 0.3 <= e.high for e in (proportion(int(k), 50) for k in row))
        for row in draws
    )
    assert alone > 3 * max(missed, 1)


@pytest.mark.parametrize("measured", [0.25, math.inf, math.nan])
def test_the_record_is_valid_json_and_comes_back(measured):
    parts = [Part("m", "member", Expected(min=0.0), Estimate(measured, -math.inf, 1.0, 3))]
    for claim in (
        PAPER("c", "s", Expected(value=0.25, tolerance=1), Estimate(measured, 0.0, math.inf, 3)),
        PAPER("c", "s", Expected(min=0), Certain(measured, "w"), same_as="min2024.thm1:radius"),
        PAPER.family("f", "s", parts),
    ):
        text = json.dumps(claim.as_json(), allow_nan=False)
        back = Claim.from_json(json.loads(text))
        assert back.as_json() == claim.as_json()
        assert back.interval == claim.interval
        assert (back.source, back.bar, back.regime) == (
            "formula",
            "paper: eq. (1)",
            "inside: all of it",
        )


def test_a_record_from_before_claims_had_a_source_is_read():
    old = {"id": "c", "statement": "s", "where": "w", "expected": {"min": 1}, "measured": 2.0}
    claim = Claim.from_json({**old, "spread": None, "n": 1, "verdict": "holds", "reason": ""})
    assert (claim.source, claim.verdict) == ("ours", "as predicted")


# ---- estimates


@given(st.lists(st.tuples(number, st.floats(0, 5), st.floats(0, 5)), min_size=1, max_size=6))
def test_the_worst_of_several_is_within_its_interval(ends):
    parts = [Estimate(v, v - a, v + b, 5) for v, a, b in ends]
    truths = [[e.low, e.value, e.high] for e in parts]
    for pick, summary in ((max, most(parts)), (min, least(parts))):
        assert summary.value == pick(e.value for e in parts)
        for k in range(3):
            assert summary.low <= pick(t[k] for t in truths) <= summary.high
    gap = farthest(parts, 1.0)
    assert gap.low <= max(abs(t[1] - 1) for t in truths) <= gap.high


def test_through_and_away():
    e = Estimate(2.0, 1.0, 4.0, 9, "seeds")
    assert e.through(lambda v: 1 / v) == Estimate(0.5, 0.25, 1.0, 9, "seeds")
    assert e.away_from(3.0) == Estimate(1.0, 0.0, 2.0, 9, "seeds")
    assert e.away_from(0.0) == Estimate(2.0, 1.0, 4.0, 9, "seeds")


def test_the_mean_covers_its_truth_as_often_as_it_says():
    rng = np.random.default_rng(3)
    found = [mean_of(rng.normal(2.0, 3.0, 4)) for _ in range(2000)]
    hits = proportion(sum(e.low <= 2.0 <= e.high for e in found), 2000)
    assert hits.low <= 0.95 <= hits.high
