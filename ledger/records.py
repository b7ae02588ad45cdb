"""From run folders to the ledger's records: two seeds side by side, larger runs in the place of smaller ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit.lab.claims import Claim, Verdict
from tacit.lab.record import RunRecord, read_record
from tacit.lab.store import read_dataset, write_dataset
from tacit.report.words import plural

RESULTS = Path(__file__).parents[1] / "results"
LARGEST = 2**20  # bytes of a file that is kept
ERRATA = Path("docs/errata.md")
FINDINGS = Path("docs/findings.md")
BACKS = re.compile(r"<!-- backs: (.*?) -->")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
PAPER_SOURCES = ("formula", "number", "order", "words")
DECIDED: tuple[Verdict, ...] = ("holds", "differs", "as predicted", "not as predicted")


@dataclass(frozen=True)
class Made:
    """How the runs of an exhibit were made: their scale, seeds, machine and commit."""

    scale: str
    seeds: tuple[int, ...]
    machine: str
    commit: str


@dataclass(frozen=True)
class Entry:
    """A claim of an exhibit in the ledger, the verdict that each seed gave, and what backs a difference."""

    exhibit: str
    claim: Claim
    verdicts: tuple[Verdict, ...]
    backing: str
    made: Made

    @property
    def key(self) -> str:
        """`exhibit:claim`, as `same_as` names it."""
        return f"{self.exhibit}:{self.claim.id}"

    def as_json(self) -> dict[str, Any]:
        """One record of ledger.json."""
        made = {"scale": self.made.scale, "seeds": self.made.seeds, "machine": self.made.machine}
        return {
            "exhibit": self.exhibit,
            "paper": self.exhibit.partition(".")[0],
            **self.claim.as_json(),
            "verdicts": self.verdicts,
            "backing": self.backing,
            **made,
            "commit": self.made.commit,
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Entry:
        """The entry that `as_json` wrote."""
        rest = dict(record)
        rest.pop("paper")
        exhibit, verdicts, backing = (rest.pop(key) for key in ("exhibit", "verdicts", "backing"))
        scale, seeds, machine, commit = (
            rest.pop(key) for key in ("scale", "seeds", "machine", "commit")
        )
        made = Made(scale, tuple(seeds), machine, commit)
        return cls(exhibit, Claim.from_json(rest), tuple(verdicts), backing, made)


def seeds_of(commit: str) -> tuple[int, int]:
    """Two seeds from a commit's hash: its first six hexadecimal digits, and the next six."""
    return int(commit[:6], 16), int(commit[6:12], 16)


def runs_in(folder: Path) -> dict[str, RunRecord]:
    """The complete runs below a folder, by exhibit."""
    return {
        path.parent.name: read_record(path.parent)
        for path in sorted(folder.glob("*/provenance.json"))
    }


def machine_of(provenance: dict[str, Any]) -> str:
    """What the run was made on, in words that name no host."""
    accelerator = provenance.get("accelerator")
    return str(accelerator or f"CPU, {plural(provenance['threads'], 'thread')}")


def entries_of(runs: Iterable[RunRecord]) -> list[Entry]:
    """The claims of one exhibit's runs, first seed first: what it measured, judged by all of them.

    A verdict that is not the same at every seed is undecided, whatever the first one's interval says.
    """
    first, *others = runs
    seeds = (first.seed, *(run.seed for run in others))
    commit = str(first.provenance.get("commit") or "")[:12]
    made = Made(first.scale, seeds, machine_of(dict(first.provenance)), commit)
    found = [{claim.id: claim.verdict for claim in run.claims} for run in others]
    entries = []
    for claim in first.claims:
        verdicts = (claim.verdict, *(by_id[claim.id] for by_id in found if claim.id in by_id))
        if len(set(verdicts)) > 1:
            told = ", ".join(f"{v} at {s}" for v, s in zip(verdicts, seeds, strict=False))
            claim = replace(
                claim, verdict="undecided", reason=f"the verdict changes with the seed: {told}"
            )
        entries.append(Entry(first.id, claim, verdicts, "", made))
    return entries


def keep(folder: Path) -> list[Path]:
    """Keep a run in results/ID: run.json (its claims, config, and where it was made), figure and data, packed.

    A figure or data set over LARGEST bytes is left out, and what an earlier run left there goes with it.
    """
    run = read_record(folder)
    path = RESULTS / run.id / "run.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {
        key: run.provenance.get(key)
        for key in ("commit", "device", "accelerator", "threads", "torch", "started")
    }
    document = {**run.as_json(), "folder": "", "config": dict(run.config), "provenance": told}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    figure, data = (path.with_name(name) for name in ("figure.png", "result.nc"))
    figure.write_bytes((folder / figure.name).read_bytes())
    # the machine that made it may have had no packing
    write_dataset(data, read_dataset(folder / data.name))
    for copy in (figure, data):
        if copy.stat().st_size > LARGEST:
            copy.unlink()
    return [each for each in (path, figure, data) if each.exists()]


def kept() -> dict[str, RunRecord]:
    """The larger runs that were kept, by exhibit."""
    found = {}
    for path in sorted(RESULTS.glob("*/run.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        claims = tuple(Claim.from_json(claim) for claim in told["claims"])
        found[told["id"]] = RunRecord(
            told["id"],
            told["scale"],
            told["seed"],
            path,
            told["seconds"],
            claims,
            told["config"],
            told["provenance"],
        )
    return found


def backings(pages: Iterable[Path] = (ERRATA, FINDINGS)) -> dict[str, str]:
    """Which section of the pages backs which claim: a `<!-- backs: exhibit:claim, ... -->` there says so."""
    found = {}
    for page in pages:
        heading = ""
        for line in page.read_text(encoding="utf-8").splitlines() if page.exists() else ():
            if matched := HEADING.match(line):
                heading = matched[1]
            for listed in BACKS.findall(line):
                anchor = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
                found.update({key.strip(): f"{page.name}#{anchor}" for key in listed.split(",")})
    return found


def collect(folders: Iterable[Path], order: Iterable[str]) -> list[Entry]:
    """Every claim of every exhibit: from the larger run where one was kept, else from the seeds' runs."""
    by_seed, larger, backed = [runs_in(folder) for folder in folders], kept(), backings()
    entries = []
    for id in order:
        runs = [larger[id]] if id in larger else [runs[id] for runs in by_seed if id in runs]
        for entry in entries_of(runs) if runs else ():
            entries.append(replace(entry, backing=backed.get(entry.key, "")))
    return entries


def unbacked(entries: Iterable[Entry]) -> list[Entry]:
    """What differs from a paper inside its own regime, and no erratum or finding speaks of."""
    return [
        entry
        for entry in entries
        if entry.claim.verdict == "differs"
        and entry.claim.source in PAPER_SOURCES
        and entry.claim.regime.startswith("inside")
        and not entry.claim.same_as
        and not entry.backing
    ]


def flips(entries: Iterable[Entry], runs: dict[str, RunRecord]) -> list[tuple[Entry, Claim]]:
    """The ledger's decided verdicts that a third seed does not repeat, with that seed's claim."""
    third = {f"{id}:{claim.id}": claim for id, run in runs.items() for claim in run.claims}
    decided = [entry for entry in entries if entry.claim.verdict in DECIDED and entry.key in third]
    return [(e, third[e.key]) for e in decided if third[e.key].verdict != e.claim.verdict]
