"""What the pages show, as texts: rows of the ledger, entries of exhibits, chapters of papers."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tacit.lab.claims import SMOKE_REASON, Claim
from tacit.lab.exhibit import Exhibit, Paper
from tacit.lab.record import RunRecord
from tacit.report import words

WIDE = 2.2  # a figure of more than two panels wants the whole width of the page


@dataclass(frozen=True)
class Row:
    """A claim as the ledger shows it."""

    id: str
    statement: str
    where: str
    expected: str
    measured: str
    n: str
    verdict: str
    symbol: str
    tone: str
    reason: str
    origin: str
    regime: str
    note: str
    members: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, claim: Claim) -> Row:
        """The texts of a claim."""
        return cls(
            id=claim.id,
            statement=claim.statement,
            where=claim.where,
            expected=words.expected(claim),
            measured=words.measured(claim),
            n=words.sample_size(claim),
            verdict=claim.verdict,
            symbol=words.LOOKS[claim.verdict][0],
            tone=words.LOOKS[claim.verdict][1],
            # at smoke scale the page says so once, for all
            reason="" if claim.reason == SMOKE_REASON else claim.reason,
            origin=words.origin(claim),
            regime=claim.regime,
            note=words.note(claim),
            members=tuple(words.member(member) for member in claim.members),
        )


@dataclass(frozen=True)
class Entry:
    """An exhibit's run on the page over all runs."""

    exhibit: Exhibit
    link: str
    duration: str
    figure: str
    wide: bool
    rows: tuple[Row, ...]
    checks: tuple[Row, ...]

    @classmethod
    def of(cls, exhibit: Exhibit, run: RunRecord) -> Entry:
        """The texts of a run. Its figure is an image of its own: inline SVGs would share names."""
        svg = (run.folder / "figure.svg").read_text(encoding="utf-8")
        return cls(
            exhibit=exhibit,
            link=f"{run.folder.name}/report.html",
            duration=words.duration(run.seconds),
            figure=f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}",
            wide=_aspect(svg) > WIDE,
            rows=rows(run.claims, checks=False),
            checks=rows(run.claims, checks=True),
        )


def rows(claims: Iterable[Claim], *, checks: bool) -> tuple[Row, ...]:
    """The claims about the papers, or the checks of our own accuracy."""
    return tuple(Row.of(claim) for claim in claims if (claim.source == "check") == checks)


@dataclass(frozen=True)
class Chapter:
    """A paper with the runs of its exhibits."""

    paper: Paper
    sentence: str
    entries: tuple[Entry, ...]

    @classmethod
    def of(
        cls, paper: Paper, exhibits: Mapping[str, Exhibit], runs: Sequence[RunRecord]
    ) -> Chapter:
        """The runs of this paper, of all that there are."""
        own = [run for run in runs if exhibits[run.id].paper == paper.key]
        return cls(
            paper=paper,
            sentence=words.totals(claim for run in own for claim in run.claims),
            entries=tuple(Entry.of(exhibits[run.id], run) for run in own),
        )


def _aspect(svg: str) -> float:
    """Width over height of a drawing."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    return float(found[1]) / float(found[2]) if found else 1.0
