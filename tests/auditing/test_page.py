"""The walk-through of the audit page does what the page says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tacit.cli import status

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/guide/audit.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_walk_through_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mymodels", raising=False)
    data, model, use = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (command,) = re.findall(r"^\$ tacit (audit .*)$", PAGE, flags=re.MULTILINE)
    exec(data, {})
    Path("mymodels.py").write_text(model)
    assert status([*command.split(), "--device", "cpu"]) == 0
    printed = capsys.readouterr().out
    # another machine rounds the training differently: the words are checked, and the numbers roughly
    assert numbers(printed) == pytest.approx(numbers(PAGE), abs=4)
    for told in ("97", "linear relaxation (CROWN)", "no flags", "does it average features?  no"):
        assert told in printed
    exec(use, {})
    assert "more robust" in capsys.readouterr().out


def numbers(text: str) -> list[float]:
    """The percentages of the report's table."""
    return [float(found) for found in re.findall(r"(\d+\.\d)% \[", text)]


def test_every_option_of_the_command_is_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["audit", "--help"]) == 0
    for option in set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help", "--device"}:
        assert option in PAGE, option
