"""The ledger: how it is made, and that what is stored says no more than its evidence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import xarray as xr
from ledger import __main__ as commands
from ledger import records
from ledger.pages import PAGE, README, facets, row
from ledger.records import Entry, entries_of, flips, seeds_of, unbacked

from contract import check_claim
from tacit import api, exhibits
from tacit.base.estimate import Estimate
from tacit.lab.claims import Expected, Judge
from tacit.lab.record import RunRecord
from tacit.lab.store import read_dataset
from tacit.report import words

JUDGE = Judge("Section 1", "formula", "paper: eq. (1)", "inside: all of it")


def claim(low: float, high: float, id: str = "c", judge: Judge = JUDGE):
    found = Estimate((low + high) / 2, low, high, 5, "seeds")
    return judge(id, "it is positive", Expected(min=0.0), found)


def run_of(*claims, seed: int = 1) -> RunRecord:
    made = {"commit": "a" * 40, "threads": 1, "accelerator": None}
    return RunRecord("toy.thm", "laptop", seed, Path("x"), 1.0, claims, {}, made)


def test_seeds_come_from_the_hash():
    assert seeds_of("0000ff00000a" + "b" * 28) == (255, 10)


def test_a_verdict_that_changes_with_the_seed_is_undecided():
    same, changed = entries_of(
        [run_of(claim(1, 2), claim(1, 2, "d")), run_of(claim(2, 3), claim(-2, -1, "d"), seed=7)]
    )
    assert (same.claim.verdict, same.verdicts) == ("holds", ("holds", "holds"))
    assert (changed.claim.verdict, changed.verdicts) == ("undecided", ("holds", "differs"))
    assert "holds at 1, differs at 7" in changed.claim.reason
    assert same.made.seeds == (1, 7)


def test_an_entry_comes_back_from_json():
    (entry,) = entries_of([run_of(claim(1, 2))])
    back = Entry.from_json(json.loads(json.dumps(entry.as_json())))
    assert back.as_json() == json.loads(json.dumps(entry.as_json())) | {
        "seeds": (1,),
        "verdicts": ("holds",),
    }


def test_a_third_seed_counts_every_verdict_that_it_does_not_repeat():
    entries = entries_of([run_of(claim(1, 2), claim(1, 2, "d"), claim(-1, 1, "e"))])
    third = {"toy.thm": run_of(claim(1, 2), claim(-1, 1, "d"), claim(1, 2, "e"), seed=9)}
    assert [(e.key, c.verdict) for e, c in flips(entries, third)] == [("toy.thm:d", "undecided")]


def test_a_difference_inside_a_papers_regime_needs_its_page(tmp_path):
    page = tmp_path / "errata.md"
    page.write_text(
        "# Errata\n\n## Theorem 2, (61): not so\n\nWhy. <!-- backs: toy.thm:c, toy.thm:d -->\n"
    )
    assert records.backings([page]) == dict.fromkeys(
        ("toy.thm:c", "toy.thm:d"), "errata.md#theorem-2-61-not-so"
    )
    (differs,) = entries_of([run_of(claim(-2, -1))])
    assert unbacked([differs]) == [differs]
    assert unbacked([replace(differs, backing="errata.md#x")]) == []
    outside = JUDGE.but(regime="outside: no assumption holds")
    ours = JUDGE.but(source="ours")
    assert (
        unbacked(entries_of([run_of(claim(-2, -1, judge=outside), claim(-2, -1, "d", ours))])) == []
    )


def test_a_larger_run_is_kept_without_its_folder(only_fakes, tmp_path, monkeypatch):
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    run = api.run("toy2020.mean", scale="laptop")
    made = records.keep(run.folder)
    assert [path.relative_to(tmp_path).as_posix() for path in made] == [
        f"toy2020.mean/{name}" for name in ("run.json", "figure.png", "result.nc")
    ]
    assert str(run.folder.resolve()) not in made[0].read_text(encoding="utf-8")
    xr.testing.assert_identical(*map(read_dataset, (made[2], run.folder / "result.nc")))
    (back,) = records.kept().values()
    assert [c.as_json() for c in back.claims] == [c.as_json() for c in run.claims]
    entries = entries_of([back])
    assert entries[0].made.scale == "laptop"


def test_what_is_too_large_is_left_out(only_fakes, tmp_path, monkeypatch):
    """Also what an earlier, smaller run had left in its place."""
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    run = api.run("toy2020.mean", scale="laptop")
    records.keep(run.folder)
    sizes = {name: (run.folder / name).stat().st_size for name in ("figure.png", "result.nc")}
    monkeypatch.setattr(records, "LARGEST", min(sizes.values()))
    records.keep(run.folder)
    left = {path.name for path in (tmp_path / run.id).iterdir()}
    assert left == {"run.json", min(sizes, key=sizes.__getitem__)}


def test_no_kept_file_is_over_a_mebibyte():
    files = [path for path in records.RESULTS.rglob("*") if path.is_file()]
    assert [path.name for path in files if path.stat().st_size > 2**20] == []
    assert {path.parent.name for path in files if path.name == "run.json"} == set(records.kept())


def test_a_row_carries_what_it_is_filtered_by():
    (entry,) = entries_of([run_of(claim(1, 2))])
    told = facets(entry)
    assert told == {"paper": "toy", "source": "formula", "regime": "inside", "verdict": "holds"}
    assert all(f'data-{name}="{value}"' in row(entry, "A toy") for name, value in told.items())


def test_exhibits_that_were_not_run_keep_what_the_ledger_had(tmp_path, monkeypatch):
    """New exhibits are added without running the others again."""
    old, new = (replace(run_of(claim(1, 2)), id=id) for id in ("min2024.fig1", "min2024.fig2"))
    saved = []
    monkeypatch.setattr(commands, "DOCUMENT", tmp_path / "ledger.json")
    monkeypatch.setattr(commands, "write_pages", lambda entries, _: saved.append(entries))
    for run in (old, new):
        monkeypatch.setattr(commands, "collect", lambda *_, run=run: entries_of([run]))
        commands.write("runs")
    assert [entry.exhibit for entry in saved[-1]] == ["min2024.fig1", "min2024.fig2"]
    assert [entry.exhibit for entry in commands.stored()] == ["min2024.fig1", "min2024.fig2"]


def test_papers_are_judged_by_third_seeds_in_folders_of_their_own(tmp_path, monkeypatch):
    """Runs of every folder count; what is turned in one is told beside what is undecided in another."""
    ids = ("one.thm", "two.thm", "old.thm")
    first = [replace(run_of(claim(1, 2), claim(1, 2, "d"), claim(-1, 1, "e")), id=id) for id in ids]
    held = [entry for run in first for entry in entries_of([run])]
    third = {
        "runs/a": replace(run_of(claim(1, 2), claim(-2, -1, "d"), seed=9), id="one.thm"),
        "runs/b": replace(run_of(claim(-1, 1), claim(1, 2, "d"), seed=7), id="two.thm"),
    }
    monkeypatch.setattr(commands, "DOCUMENT", tmp_path / "ledger.json")
    monkeypatch.setattr(commands, "write_pages", lambda entries, judged: f"{len(entries)} claims")
    monkeypatch.setattr(
        commands, "runs_in", lambda folder: {(run := third[folder.as_posix()]).id: run}
    )
    commands.save(held, "not yet")

    commands.judge("runs/a", "runs/b")
    judged = json.loads((tmp_path / "ledger.json").read_text(encoding="utf-8"))["judged"]
    # four decided verdicts of exhibits that were run: old.thm is not among them, nor is "e"
    assert judged.startswith(
        "Judged by a third seed, 7 or 9: of 4 decided verdicts (without checks and repeats) 1 are turned, and 1 "
        "are undecided there; 50.00% are not repeated."
    )
    told = [line for line in judged.splitlines() if line.startswith("- ")]
    assert [line.partition(":")[0] for line in told] == ["- `one.thm", "- `two.thm"]
    assert "at the third seed differs" in told[0]
    assert "at the third seed undecided" in told[1]
    assert [entry.key for entry in commands.stored()] == [entry.key for entry in held]


# ---- the stored ledger


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    return commands.stored()


def test_no_stored_verdict_says_more_than_its_interval(entries):
    for entry in entries:
        if len(set(entry.verdicts)) == 1:
            check_claim(entry.claim.as_json(), smoke=False)
        else:  # what changes with the seed is undecided whatever its interval
            assert entry.claim.verdict == "undecided"


def test_every_stored_difference_inside_a_regime_is_backed(entries):
    assert unbacked(entries) == []


def test_the_ledger_has_every_exhibit_and_names_what_repeats(entries):
    assert {entry.exhibit for entry in entries} == {exhibit.id for exhibit in exhibits()}
    keys = {entry.key for entry in entries}
    assert len(keys) == len(entries)
    assert {entry.claim.same_as for entry in entries} - {""} <= keys


def test_pages_say_what_the_ledger_says(entries):
    """The README's sentence and the table's rows."""
    assert words.totals([entry.claim for entry in entries]) in README.read_text(encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8").count("<tr data-") == len(entries)
