"""One style for all figures, whatever the user's own settings, and nothing of it left behind."""

from __future__ import annotations

from itertools import combinations

import matplotlib
import pytest
from matplotlib.colors import to_rgb

from tacit.report.style import CYCLE, house_style


def test_settings_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"lines.linewidth": 17, "axes.facecolor": "black"}):
        with house_style():
            assert matplotlib.rcParams["lines.linewidth"] < 3
            assert matplotlib.rcParams["axes.facecolor"] == "white"
            assert matplotlib.rcParams["axes.prop_cycle"].by_key()["color"] == list(CYCLE)
        assert matplotlib.rcParams["lines.linewidth"] == 17
    assert dict(matplotlib.rcParams) == before


def test_the_first_colours_differ_in_print_too() -> None:
    def grey(colour: str) -> float:
        red, green, blue = to_rgb(colour)
        return 0.299 * red + 0.587 * green + 0.114 * blue

    for one, other in combinations(CYCLE[:2], 2):
        assert abs(grey(one) - grey(other)) > 0.08
