"""Settings are read by the field's type, and every refusal says what would be right."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.toy import Toy
from tacit.errors import CallError
from tacit.lab.settings import as_text, parse_assignments, with_settings


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("K=10", 10),
        ("K=1e5", 100_000),
        (f"K={2**60 + 1}", 2**60 + 1),
        ("alpha=.1,.2", (0.1, 0.2)),
        ("alpha=3", (3.0,)),
        ("sizes=1, 2,3", (1, 2, 3)),
        ("rate=1e-3", 0.001),
        ("rate=2", 2.0),
        ("bias=true", True),
        ("bias=No", False),
        ("loss=logistic", "logistic"),
        ("name=a=b", "a=b"),
        ("cap=7", 7),
        ("cap=none", None),
        ("radius=inf", math.inf),
    ],
)
def test_text(text: str, value: object) -> None:
    key = text.partition("=")[0]
    read = getattr(with_settings(Toy(), parse_assignments([text])), key)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("K", np.int64(10), 10),
        ("K", 10.0, 10),
        ("K", 2**60 + 1, 2**60 + 1),
        ("alpha", [0.1, 1], (0.1, 1.0)),
        ("alpha", np.array([0.1, 0.2]), (0.1, 0.2)),
        ("alpha", 0.1, (0.1,)),
        ("rate", 1, 1.0),
        ("bias", True, True),
        ("cap", None, None),
        ("loss", "exp", "exp"),
    ],
)
def test_python_value(key: str, value: object, read: object) -> None:
    assert getattr(with_settings(Toy(), {key: value}), key) == read


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("K=ten", "K takes a whole number, as in --set K=4; got 'ten'"),
        ("K=4.5", "K takes a whole number, as in --set K=4; got '4.5'"),
        ("K=inf", "K takes a whole number"),
        ("K=", "K takes a whole number"),
        ("alpha=a,b", "alpha takes numbers, as in --set alpha=0.1,0.2,0.3; got 'a,b'"),
        ("alpha=.1,", "alpha takes numbers"),
        ("alpha=.1,nan", "alpha takes finite numbers"),
        ("sizes=1,2.5", "sizes takes whole numbers"),
        ("rate=inf", "rate takes a finite number, as in --set rate=0.5; got 'inf'"),
        ("bias=maybe", "bias takes true or false, as in --set bias=false; got 'maybe'"),
        ("loss=mse", "loss takes exp or logistic, as in --set loss=exp; got 'mse'"),
        ("name=", "name takes a word"),
        ("cap=few", "cap takes a whole number or none, as in --set cap=none; got 'few'"),
        ("k=4", "there is no setting 'k'; near: K, K1; settings: K, K1, alpha"),
        ("alhpa=1", "there is no setting 'alhpa'; near: alpha; settings"),
        ("K1=9", "K1=9 must be between 1 and K=4"),
    ],
)
def test_refused_text(text: str, answer: str) -> None:
    with pytest.raises(CallError) as told:
        with_settings(Toy(), parse_assignments([text]), "--set ")
    assert answer in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [("K", True), ("K", [1]), ("K", None), ("rate", math.nan), ("alpha", ()), ("bias", 1)],
)
def test_refused_value(key: str, value: object) -> None:
    with pytest.raises(CallError, match=f"{key} takes .*, as in {key}="):
        with_settings(Toy(), {key: value})


@pytest.mark.parametrize(
    ("assignments", "answer"),
    [
        (["K"], "--set takes key=value, as in --set K=4; got 'K'"),
        (["=4"], "--set takes key=value"),
        (["K=4", "K=5"], "--set K is given twice: '4' and '5'"),
    ],
)
def test_refused_assignment(assignments: list[str], answer: str) -> None:
    with pytest.raises(CallError) as told:
        parse_assignments(assignments)
    assert answer in str(told.value)


def test_a_type_without_a_text_form() -> None:
    @dataclass(frozen=True)
    class Strange:
        table: dict[str, int]

    with pytest.raises(CallError, match=r"a setting of type dict\[str, int\] cannot be given"):
        with_settings(Strange({}), {"table": "a"})


@given(
    st.builds(
        Toy,
        K=st.integers(2, 10**9),
        alpha=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1).map(tuple),
        rate=st.floats(allow_nan=False, allow_infinity=False),
        bias=st.booleans(),
        cap=st.none() | st.integers(),
    )
)
def test_what_is_written_reads_back(config: Toy) -> None:
    texts = {key: as_text(value) for key, value in vars(config).items()}
    assert with_settings(Toy(), texts) == config
