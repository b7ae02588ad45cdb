"""Robust accuracy as an interval, and the flags that say when an attack is not to be believed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import CallError, RunError
from tacit.measure import proportion
from tacit.measure.flags import KINDS, raised_flags
from tacit.measure.robustness import consistent, not_monotone, robust_curve, shortest_broken

ROOT = Path(__file__).resolve().parents[2]
INF = torch.inf


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_a_point_counts_as_robust_up_to_its_radius_and_not_at_it() -> None:
    lower, upper = tensor(0, 1, 2, 3), tensor(0, 1, 4, INF)
    at = robust_curve(lower, upper, (0.0, 1.0, 2.0, 3.5))
    assert [one.certified.value for one in at] == [0.75, 0.5, 0.25, 0.0]
    assert [one.attacked.value for one in at] == [0.75, 0.5, 0.5, 0.5]
    assert at[1].certified == proportion(2, 4)


def test_radius_zero_needs_no_certificate() -> None:
    (at,) = robust_curve(tensor(0, 0, 0), tensor(0, INF, 2), (0.0,))
    assert at.certified.value == at.attacked.value == 2 / 3


def test_a_curve_needs_points() -> None:
    with pytest.raises(CallError, match="at least one point"):
        robust_curve(tensor(), tensor(), (1.0,))


@given(
    st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5)), min_size=1, max_size=30),
    st.lists(st.floats(0, 6), min_size=1, max_size=5),
)
def test_a_curve_is_an_interval_that_falls(
    pairs: list[tuple[float, float]], radii: list[float]
) -> None:
    lower, upper = (tensor(*ends) for ends in zip(*(sorted(pair) for pair in pairs), strict=True))
    curve = robust_curve(lower, upper, sorted(radii))
    for at in curve:
        counts = [sum(low > at.radius for low in lower), sum(u > at.radius for u in upper)]
        assert at.certified.value <= at.attacked.value
        assert at.attacked.value == pytest.approx(float(counts[1]) / len(pairs))
        assert at.certified.low <= at.certified.value <= at.certified.high
        if at.radius > 0:
            assert at.certified.value == pytest.approx(float(counts[0]) / len(pairs))
    for ends in ("certified", "attacked"):
        values = [getattr(at, ends).value for at in curve if at.radius > 0]
        assert values == sorted(values, reverse=True)


def test_the_shortest_perturbation_that_broke_counts() -> None:
    broken = torch.tensor([[False, True, False], [True, True, False]])
    size = tensor(0.5, 0.4, 0.5, 1.0 + 1e-8, 0.9, 1.0).view(2, 3)
    assert shortest_broken(broken, size, (0.5, 1.0)).tolist() == [1.0, 0.4, INF]


def test_success_that_is_lost_at_a_larger_radius_is_seen() -> None:
    broken = torch.tensor([[False, True, True], [True, False, True], [True, True, True]])
    assert not_monotone(broken).tolist() == [False, True, False]


def test_a_certificate_beyond_an_attack_is_raised_loudly() -> None:
    lower, upper = tensor(1, 2, 3), tensor(1, 1.5, INF)
    with pytest.raises(
        RunError, match=r"certified-above-attacked: points 1 \(1 of 3\).*up to 2.*at 1.5"
    ):
        consistent(lower, upper, tensor(0, 0, 0))
    with pytest.raises(RunError, match="points 0, 1, 2, 3, 4, "):
        consistent(torch.ones(9).double(), torch.zeros(9).double(), torch.zeros(9).double())
    with pytest.raises(RunError, match="up to inf"):
        consistent(tensor(INF), tensor(7), tensor(0.1))


def test_rounding_is_forgiven_and_the_interval_stays_one() -> None:
    lower = consistent(tensor(1 + 1e-9, 0.5), tensor(1, INF), tensor(1e-6, 1e-6))
    assert lower.tolist() == [1.0, 0.5]


@pytest.mark.parametrize("name", KINDS)
def test_a_flag_is_raised_above_its_limit_and_says_its_number(name: str) -> None:
    limit = KINDS[name].limit
    assert raised_flags({name: limit}) == ()
    (flag,) = raised_flags({name: limit + 0.25})
    assert (flag.name, flag.value, flag.means) == (name, limit + 0.25, KINDS[name].means)
    assert flag.raised == f"{KINDS[name].when}: {100 * limit + 25:.1f}%"
    assert f"more than {limit:.0%}" in KINDS[name].when, "the text states the limit"


def test_the_page_lists_exactly_the_flags_that_exist() -> None:
    page = (ROOT / "docs/guide/flags.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:4] for line in page.splitlines() if line.startswith("| `")]
    listed = {name.strip(" `"): (when.strip(), means.strip()) for name, when, means in rows}
    loud = listed.pop("certified-above-attacked")
    assert "exit status 1" in loud[1]
    assert listed == {name: (kind.when, kind.means) for name, kind in KINDS.items()}
