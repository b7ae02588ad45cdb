"""Audits of tests take few steps: types are checked at every call there, which costs more than the work."""

from __future__ import annotations

from functools import partial

import pytest

from tacit.attack.apgd import apgd
from tacit.attack.black_box import black_box
from tacit.attack.universal import learned_universal
from tacit.auditing import attacks, directions


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attacks by gradients take 5 steps, universal directions 2, and by queries 20."""
    monkeypatch.setattr(attacks, "apgd", partial(apgd, steps=5))
    monkeypatch.setattr(attacks, "black_box", partial(black_box, steps=20))
    monkeypatch.setattr(directions, "learned_universal", partial(learned_universal, steps=2))
