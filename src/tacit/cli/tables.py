"""Tables for people: readable in a file and on any terminal; a narrow one gets lists instead."""

import os
import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tacit.lab.claims import SMOKE_REASON, Claim
from tacit.lab.exhibit import SCALES, Exhibit, Paper
from tacit.lab.record import RunRecord
from tacit.lab.registry import Catalogue
from tacit.lab.settings import as_text
from tacit.lab.store import plain
from tacit.report import words

PIPED_WIDTH = 110
NARROW = 70  # columns: below that, a table's column of sentences is a word wide


def print_list(found: Catalogue) -> None:
    """All exhibits, under their papers."""
    console = make_console()
    for paper in found.papers.values():
        console.print(_heading(paper))
        exhibits = found.of_paper(paper.key)
        if console.width < NARROW:
            for exhibit in exhibits:
                console.print(Text(exhibit.id, "cyan"))
                console.print(_indented(Text(f"{exhibit.where}: {exhibit.title}")))
        else:
            console.print(_listed(exhibits))
        console.print()


def _listed(exhibits: Sequence[Exhibit]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)  # an id is typed as it stands
    for exhibit in exhibits:
        table.add_row(
            Text(exhibit.id, "cyan"), Text(exhibit.where), Text(exhibit.title), end_section=True
        )
    return table


def print_exhibit(exhibit: Exhibit, paper: Paper) -> None:
    """One exhibit: what it claims, its settings at the three scales, and how to run it."""
    console = make_console()
    console.print(Text.assemble((exhibit.id, "bold cyan"), "  ", (exhibit.title, "bold")))
    console.print(Text(f"{paper.authors} ({paper.year}), {exhibit.where}", "bright_black"))
    console.print(Text(f"\n{exhibit.claim}\n"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("setting", no_wrap=True)
    for scale in SCALES:
        table.add_column(scale, overflow="fold")
    for name in plain(exhibit.scales["laptop"]):
        values = (as_text(getattr(exhibit.scales[scale], name)) for scale in SCALES)
        table.add_row(Text(name, "cyan"), *(Text(value.replace(",", ", ")) for value in values))
    console.print(table)
    console.print(Text(f"tacit run {exhibit.id}", "bold"))


def print_ledger(found: Catalogue, runs: Sequence[RunRecord]) -> None:
    """The claims of the runs, under their papers, and how many there are of each verdict."""
    console = make_console()
    for key in dict.fromkeys(found.exhibits[run.id].paper for run in runs):
        console.print()
        console.print(_heading(found.papers[key]))
        own = [run for run in runs if found.exhibits[run.id].paper == key]
        if console.width < NARROW:
            for run in own:
                _print_stacked(console, run)
        else:
            console.print(_ledger(own))
    claims = [claim for run in runs for claim in run.claims]
    if any(claim.reason == SMOKE_REASON for claim in claims):
        console.print(Text(f"not testable here: {SMOKE_REASON}", "bright_black"))
    console.print(Text(words.totals(claims), "bold"))


def _ledger(runs: Sequence[RunRecord]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("verdict", min_width=9, max_width=14)
    table.add_column("claim", ratio=1)
    table.add_column("expected", justify="right", max_width=20)
    table.add_column("measured", justify="right", min_width=9)
    table.add_column("n", justify="right")
    for run in runs:
        _add_run(table, run)
    return table


def _print_stacked(console: Console, run: RunRecord) -> None:
    """The claims of a run one under the other, each with its numbers on a line of their own."""
    console.print()
    console.print(_run_line(run))
    for claim in _shown(run):
        numbers = (
            f"expected {words.expected(claim)}, measured {words.measured(claim)}, "
            f"n {words.sample_size(claim)}"
        )
        console.print()
        console.print(_verdict(claim))
        console.print(_indented(_claim_cell(claim)))
        console.print(_indented(Text(numbers)))


def _add_run(table: Table, run: RunRecord) -> None:
    table.add_row("", _run_line(run))
    for claim in _shown(run):
        table.add_row(
            _verdict(claim),
            _claim_cell(claim),
            words.expected(claim),
            words.measured(claim),
            words.sample_size(claim),
        )
    table.add_section()


def _shown(run: RunRecord) -> list[Claim]:
    """The claims, and of the checks of our own accuracy those that are not met: the report has them all."""
    return [claim for claim in run.claims if claim.source != "check" or claim.verdict != "holds"]


def _run_line(run: RunRecord) -> Text:
    told = f"  {run.scale}, seed {run.seed}, {words.duration(run.seconds)}"
    return Text.assemble((run.id, "bold cyan"), (told, "bright_black"))


def _verdict(claim: Claim) -> Text:
    symbol, _, colour = words.LOOKS[claim.verdict]
    return Text(f"{symbol} {claim.verdict}", colour)


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 2))


def _claim_cell(claim: Claim) -> Text:
    about = f"{claim.id} · {claim.where} · {claim.source}, {claim.regime.partition(':')[0]}"
    cell = Text.assemble(claim.statement, "\n", (about, "bright_black"))
    if claim.reason and claim.reason != SMOKE_REASON:  # that one is told once, for all
        cell.append(f"\n{claim.reason}", words.LOOKS[claim.verdict][2])
    return cell


def _heading(paper: Paper) -> Text:
    about = f"  {paper.title} ({paper.authors}, {paper.year})"
    return Text.assemble((paper.key, "bold"), (about, "bright_black"))


def make_console() -> Console:
    """stdout; a file has no width of its own, and gets a readable one."""
    wide = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(file=sys.stdout, width=None if wide else PIPED_WIDTH, highlight=False)
