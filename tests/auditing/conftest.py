"""Audits of tests take few steps: types are checked at every call there, which costs more than the work."""

from __future__ import annotations

from functools import partial

import pytest

from tacit.attack.ball.apgd import apgd
from tacit.attack.ball.black_box import black_box
from tacit.attack.universal import learned_universal
from tacit.auditing import attacks, directions


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """5 steps by gradients, 20 by queries, 10 of these on what gradients left, 2 of universal directions."""
    monkeypatch.setattr(attacks, "apgd", partial(apgd, steps=5))
    monkeypatch.setattr(attacks, "black_box", partial(black_box, steps=20))
    monkeypatch.setattr(attacks, "QUERIES", 10)
    monkeypatch.setattr(directions, "learned_universal", partial(learned_universal, steps=2))
