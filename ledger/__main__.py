"""The commands of the ledger; see the package's own words."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ledger
from ledger.pages import write_pages
from ledger.records import (
    DECIDED,
    LARGEST,
    Entry,
    collect,
    flips,
    keep,
    runs_in,
    seeds_of,
    unbacked,
)
from tacit import exhibits
from tacit.report import words

DOCUMENT = Path("docs/ledger.json")


def frozen() -> str:
    """The commit that last changed the code."""
    told = subprocess.run(
        ["git", "log", "-1", "--format=%H", "--", "src/tacit"],
        check=True,
        capture_output=True,
        text=True,
    )
    return told.stdout.strip()


def seeds(*commit: str) -> None:
    """Print the two seeds of the commit, by default of the one that last changed src/tacit."""
    print(*seeds_of(commit[0] if commit else frozen()))


def take(*folders: str) -> None:
    """Keep larger runs: their claims, figures and data."""
    for folder in folders:
        made = keep(Path(folder))
        print(*made, sep="\n")
        left = {"run.json", "figure.png", "result.nc"} - {path.name for path in made}
        for name in sorted(left):
            print(f"{name} of {folder} is over {LARGEST:,} bytes and is left out")


def write(*folders: str) -> None:
    """The ledger of two seeds, or a first one of one seed; exhibits that were not run keep what they had."""
    if len(folders) not in (1, 2):
        raise SystemExit("python -m ledger write RUNS [RUNS]: the run folders of one seed or two")
    order = [exhibit.id for exhibit in exhibits()]
    found = collect(map(Path, folders), order)
    made = {entry.exhibit for entry in found}
    kept = [entry for entry in stored() if entry.exhibit in order and entry.exhibit not in made]
    entries = sorted(found + kept, key=lambda entry: order.index(entry.exhibit))
    one = "" if len(folders) == 2 else "One seed alone: what changes with the seed is not known. "
    save(entries, f"{one}No third seed has judged this ledger yet.")
    changed = [entry for entry in entries if len(set(entry.verdicts)) > 1]
    print(
        f"{len(changed)} verdicts change between the two seeds:",
        *(e.key for e in changed),
        sep="\n  ",
    )
    missing = unbacked(entries)
    print(
        f"{len(missing)} differences inside a paper's regime have no erratum or finding:",
        *(e.key for e in missing),
        sep="\n  ",
    )


def judge(*folders: str) -> None:
    """A third seed beside the ledger: how many decided verdicts it does not repeat, each with its interval.

    Papers that were frozen at different times have a third seed each, in folders of their own.
    """
    entries = stored()
    runs = {id: run for folder in folders for id, run in runs_in(Path(folder)).items()}
    laptop = [
        entry
        for entry in entries
        if entry.exhibit in runs
        and entry.made.scale == runs[entry.exhibit].scale
        and words.in_ledger(entry.claim)
    ]
    decided = sum(entry.claim.verdict in DECIDED for entry in laptop)
    found = flips(laptop, runs)
    third = " or ".join(sorted({str(run.seed) for run in runs.values()}))
    turned = sum(claim.verdict in DECIDED for _, claim in found)
    lost, share = len(found) - turned, 100 * len(found) / max(decided, 1)
    told = [
        f"Judged by a third seed, {third}: of {decided} decided verdicts (without checks and repeats) {turned} "
        f"are turned, and {lost} are undecided there; {share:.2f}% are not repeated.\n"
    ]
    for entry, claim in found:
        told.append(
            f"- `{entry.key}`: {entry.claim.verdict} ({words.measured(entry.claim)}), at the third seed "
            f"{claim.verdict} ({words.measured(claim)}), expected {words.expected(claim)}"
        )
    save(entries, "\n".join(told))


def stored() -> list[Entry]:
    """The ledger as it is."""
    if not DOCUMENT.exists():
        return []
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    return [Entry.from_json(record) for record in document["claims"]]


def save(entries: list[Entry], judged: str) -> None:
    """The document and the pages."""
    # a claim a line: a change of one is a change of one line
    claims = ",\n".join(json.dumps(entry.as_json()) for entry in entries)
    document = f'{{"judged": {json.dumps(judged)}, "claims": [\n{claims}\n]}}\n'
    DOCUMENT.write_text(document, encoding="utf-8")
    print(write_pages(entries, judged))
    print(judged)


COMMANDS: dict[str, Callable[..., None]] = {
    "seeds": seeds,
    "take": take,
    "write": write,
    "judge": judge,
}

if __name__ == "__main__":
    command = COMMANDS.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if command is None:
        raise SystemExit(ledger.__doc__)
    command(*sys.argv[2:])
