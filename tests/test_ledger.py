"""The ledger: how it is made, and that what is stored says no more than its evidence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from ledger import records
from ledger.pages import facets, row
from ledger.records import Entry, entries_of, flips, seeds_of, unbacked

from tacit import api
from tacit.base.estimate import Estimate
from tacit.lab.claims import Expected, Judge
from tacit.lab.record import RunRecord

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
    text = records.keep(run.folder).read_text(encoding="utf-8")
    assert str(run.folder.resolve()) not in text
    (back,) = records.kept().values()
    assert [c.as_json() for c in back.claims] == [c.as_json() for c in run.claims]
    entries = entries_of([back])
    assert entries[0].made.scale == "laptop"


def test_a_row_carries_what_it_is_filtered_by():
    (entry,) = entries_of([run_of(claim(1, 2))])
    told = facets(entry)
    assert told == {"paper": "toy", "source": "formula", "regime": "inside", "verdict": "holds"}
    assert all(f'data-{name}="{value}"' in row(entry, "A toy") for name, value in told.items())
