"""The registry finds what works, remembers what does not, and answers slips of the pen."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import fakes
from fakes import toy
from fakes.papers import home2019
from tacit.errors import CallError, RunError
from tacit.lab.registry import catalogue


def test_own_papers_come_first_and_hidden_modules_are_not_imported(only_fakes: Path) -> None:
    found = catalogue()
    assert list(found.papers) == ["home2019", "toy2020", "odd2021"]
    assert next(iter(found.exhibits)) == "home2019.only"
    assert found.broken == []
    assert [exhibit.id for exhibit in found.of_paper("toy2020")] == ["toy2020.mean"]


def test_a_broken_package_is_remembered_and_disturbs_nothing(only_fakes: Path) -> None:
    fakes.install(only_fakes, broken1999="fakes.broken", absent1998="fakes.nowhere")
    found = catalogue()
    assert found.find("toy2020.mean").title == "The mean of noise"
    assert {broken.name for broken in found.broken} == {"broken1999", "absent1998"}
    with pytest.raises(
        RunError, match=r"broken1999.fig1 cannot be had.*RuntimeError: this package"
    ):
        found.find("broken1999.fig1")
    with pytest.raises(RunError, match=r"absent1998 cannot be had.*ModuleNotFoundError"):
        found.paper("absent1998")


def test_a_package_that_exits_is_broken_like_any_other(only_fakes: Path) -> None:
    (only_fakes / "exits1997.py").write_text("raise SystemExit(0)")
    fakes.install(only_fakes, exits1997="exits1997")
    found = catalogue()
    assert "toy2020.mean" in found.exhibits
    with pytest.raises(RunError, match=r"SystemExit: 0; mend or uninstall that package$"):
        found.find("exits1997.fig1")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (SimpleNamespace(PAPER=toy.PAPER, EXHIBITS=home2019.EXHIBITS), "not of the paper toy2020"),
        (SimpleNamespace(PAPER="toy2020", EXHIBITS=()), "must be a tacit.lab.exhibit.Paper"),
        (SimpleNamespace(PAPER=toy.PAPER, EXHIBITS=("thm1",)), "EXHIBITS hold Exhibits"),
        (SimpleNamespace(PAPER=toy.PAPER), "no attribute 'EXHIBITS'"),
        (SimpleNamespace(PAPER=toy.PAPER, EXHIBITS=toy.EXHIBITS * 2), "is defined already"),
        (home2019, "home2019.only is defined already"),
    ],
)
def test_what_is_not_a_paper_is_left_out_whole(
    source: object, reason: str, only_fakes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (only_fakes / "toy2020_odd2021-1.0.dist-info" / "entry_points.txt").unlink()
    monkeypatch.setitem(sys.modules, "intruder", source)
    fakes.install(only_fakes, intruder="intruder")
    found = catalogue()
    assert list(found.exhibits) == ["home2019.only"]
    (broken,) = found.broken
    assert reason in broken.reason


def test_one_entry_point_may_bring_several_papers(
    only_fakes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = [
        SimpleNamespace(PAPER=toy.PAPER.__class__(key, key, "N. N.", 1990, ""), EXHIBITS=())
        for key in ("one1990", "two1990")
    ]
    monkeypatch.setitem(sys.modules, "several", SimpleNamespace(ALL=papers))
    fakes.install(only_fakes, several="several:ALL")
    assert {"one1990", "two1990"} <= set(catalogue().papers)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("toy2020.men", "there is no exhibit 'toy2020.men'; near: toy2020.mean"),
        ("mean", "near: toy2020.mean"),
        ("zzz", "there is no exhibit 'zzz'; `tacit list` shows all"),
        ("toy2020", "toy2020 is a paper: `tacit verify toy2020` runs all of it"),
    ],
)
def test_a_wrong_id_is_answered(asked: str, answer: str, only_fakes: Path) -> None:
    with pytest.raises(CallError) as told:
        catalogue().find(asked)
    assert answer in str(told.value)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("toy2021", "there is no paper 'toy2021'; near: toy2020"),
        ("toy2020.mean", "toy2020.mean is an exhibit: `tacit run toy2020.mean` runs it"),
    ],
)
def test_a_wrong_paper_is_answered(asked: str, answer: str, only_fakes: Path) -> None:
    with pytest.raises(CallError) as told:
        catalogue().paper(asked)
    assert answer in str(told.value)
