"""Reports as single HTML files: style, figures and numbers inside, nothing fetched."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.lab.claims import Claim
from tacit.lab.exhibit import Exhibit, Paper
from tacit.lab.record import RunRecord
from tacit.lab.runner import Sheet
from tacit.lab.settings import as_text
from tacit.lab.store import plain
from tacit.report import words
from tacit.report.cite import bibliography
from tacit.report.typeset import typeset
from tacit.report.view import Chapter, rows
from tacit.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

HOME = Path(__file__).parent
_PLAIN_FACTS = ("started", "device", "accelerator", "threads", "version", "commit")
FINDINGS = {"differs": "What differs", "not as predicted": "What came out other than we predicted"}
_LIBRARIES = ("python", "torch", "numpy", "xarray")


def run_page(sheet: Sheet, paper: Paper, svg: str, gif: bytes | None = None) -> str:
    """The report of one run, with its animation where there is one."""
    from markupsafe import Markup

    order = sheet.order
    # as claims.json has them, so that this page and every later reading of the folder agree
    claims = [Claim.from_json(claim.as_json()) for claim in sheet.claims]
    return _render(
        "run",
        claims,
        exhibit=order.exhibit,
        paper=paper,
        scale=order.scale,
        seed=order.seed,
        figure=Markup(svg[svg.index("<svg") :]),  # the XML prologue does not belong in HTML
        animation=gif and base64.b64encode(gif).decode(),
        rows=rows(claims, checks=False),
        checks=rows(claims, checks=True),
        command=order.command,
        python=f"import tacit\n\nresult = {order.python}\nresult.claims  # the table above\n"
        "result.data    # the numbers behind the figure, an xarray Dataset",
        config=_config_facts(order.config),
        provenance=_provenance_facts(sheet.provenance),
        bibtex=bibliography([paper]),
    )


def summary_page(
    exhibits: Mapping[str, Exhibit],
    papers: Mapping[str, Paper],
    runs: Sequence[RunRecord],
    failures: Sequence[str],
) -> str:
    """The report over all runs of one call, grouped by paper; `failures` are one line each."""
    keys = dict.fromkeys(exhibits[run.id].paper for run in runs)
    chapters = [Chapter.of(papers[key], exhibits, runs) for key in keys]
    entries = [entry for chapter in chapters for entry in chapter.entries]
    scales = sorted({f"{run.scale} scale, seed {run.seed}" for run in runs})
    return _render(
        "summary",
        [claim for run in runs for claim in run.claims],
        chapters=chapters,
        findings={
            title: [
                (entry, row) for entry in entries for row in entry.rows if row.verdict == verdict
            ]
            for verdict, title in FINDINGS.items()
        },
        failures=failures,
        scales="; ".join(scales),
        smoke=any(run.scale == "smoke" for run in runs),
        commands="\n".join(run.provenance["command"] for run in runs),
        bibtex=bibliography(papers[key] for key in keys),
    )


def _render(template: str, claims: Sequence[Claim], **context: Any) -> str:
    verdicts = [
        {
            "name": words.COUNTED[name],
            "number": n,
            "symbol": words.LOOKS[name][0],
            "tone": words.LOOKS[name][1],
        }
        for name, n in words.count(claims).items()
    ]
    page = _environment().get_template(f"{template}.html.jinja")
    return page.render(verdicts=verdicts, sentence=words.totals(claims), **context)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(HOME),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["typeset"] = typeset
    environment.globals["css"] = Markup((HOME / "report.css").read_text(encoding="utf-8"))
    environment.globals["version"] = __version__
    return environment


def _config_facts(config: Any) -> list[tuple[str, str]]:
    return [(name, as_text(getattr(config, name)).replace(",", ", ")) for name in plain(config)]


def _provenance_facts(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [(name, str(provenance[name])) for name in _PLAIN_FACTS if provenance[name] is not None]
    libraries = ", ".join(f"{name} {provenance[name]}" for name in _LIBRARIES)
    resumed = " (resumed)" if provenance["resumed"] else ""
    return [
        *facts,
        ("libraries", libraries),
        ("wall time", words.duration(provenance["seconds"]) + resumed),
    ]
