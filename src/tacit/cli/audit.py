"""`tacit audit`: what the command line says becomes a call, and the record becomes a report."""

import sys
from contextlib import redirect_stdout
from typing import Any

from rich import box as boxes
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tacit.auditing import AuditRecord, Averaging, audit
from tacit.base.progress import on_stderr
from tacit.cli.tables import make_console
from tacit.errors import CallError
from tacit.measure import Estimate

QUIET = "bright_black"
VERDICTS = {
    "averages": "yes: neurons point at class means",
    "subclasses": "no: neurons point at subclass means",
    "neither": "no: neurons point at neither",
    "unknown": "not known",
}


def run_audit(model: str, data: str, **options: Any) -> AuditRecord:
    """The audit with these options, its progress on stderr."""
    # a model that prints must not get into the JSON document
    with on_stderr("audit") as progress, redirect_stdout(sys.stderr):
        return audit(model, data, progress=progress, **options)


def numbers(option: str, text: str | None, example: str) -> list[float] | None:
    """Numbers between commas, where the option is given."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",") if text.strip()]
    except ValueError:
        raise CallError(
            f"--{option} takes numbers, as in --{option} {example}; got {text!r}"
        ) from None


def whole(option: str, text: str | None) -> int | None:
    """A whole number, where the option is given."""
    try:
        return None if text is None else int(text)
    except ValueError:
        raise CallError(
            f"--{option} takes a whole number, as in --{option} 500; got {text!r}"
        ) from None


def print_audit(record: AuditRecord) -> None:
    """The report of an audit, for people."""
    console = make_console()
    where = "" if record.box is None else f", inside [{record.box[0]:g}, {record.box[1]:g}]"
    count = f"{record.n:,}".replace(",", "\u2009")
    console.print(
        Text.assemble((record.model, "bold cyan"), f"  {count} points, l{record.norm}{where}")
    )
    console.print(Text(f"clean accuracy {_share(record.clean)}\n"))
    if record.clean.value == 0:
        told = "no point is right, so nothing was attacked: do the labels and the model belong together?\n"
        console.print(Text(told, "yellow"))
    _print_curve(console, record)
    _print_flags(console, record)
    _print_universal(console, record)
    _print_averaging(console, record.averaging)


def _print_curve(console: Console, record: AuditRecord) -> None:
    console.print(Text("robust accuracy: at least certified, at most attacked", "bold"))
    table = Table(box=boxes.SIMPLE_HEAD, pad_edge=False)
    for name in ("radius", "certified", "attacked"):
        table.add_column(name, justify="right")
    unproved = record.certificate.startswith("none: ")
    for at in record.curve:
        certified = "–" if unproved and at.radius > 0 else _share(at.certified)
        table.add_row(f"{at.radius:g}", certified, _share(at.attacked))
    console.print(table)
    told = (
        f"certificate: {record.certificate}\nattack: {record.attack}\n"
        "in brackets: 95% intervals over the choice of points\n"
    )
    console.print(Text(told, QUIET))


def _print_flags(console: Console, record: AuditRecord) -> None:
    number = len(record.flags)
    told = {0: "no flags", 1: "1 flag"}.get(number, f"{number} flags")
    console.print(Text(told, "bold"))
    for flag in record.flags:
        console.print(Text.assemble((f"! {flag.name}", "yellow"), f"  raised: {flag.raised}"))
        console.print(Text(f"  means: {flag.means}"))
    console.print()


def _print_universal(console: Console, record: AuditRecord) -> None:
    console.print(Text("one perturbation for all points: the share that it breaks", "bold"))
    if not record.universal:
        console.print(Text("not looked for: it needs gradients and a radius above 0\n"))
        return
    forms = sorted({at.signed for at in record.universal}, reverse=True)
    table = Table(box=boxes.SIMPLE_HEAD, pad_edge=False)
    table.add_column("radius", justify="right")
    for signed in forms:
        table.add_column("x - y delta" if signed else "x + delta", justify="right")
    for radius in dict.fromkeys(at.radius for at in record.universal):
        found = {at.signed: at.broken for at in record.universal if at.radius == radius}
        table.add_row(f"{radius:g}", *(f"{found[signed]:.1%}" for signed in forms))
    console.print(table)


def _print_averaging(console: Console, found: Averaging) -> None:
    told = VERDICTS[found.verdict]
    console.print(Text.assemble(("does it average features?  ", "bold"), told))
    if found.class_cosine is not None and found.subclass_cosine is not None:
        groups = " + ".join(map(str, found.subclasses))
        console.print(
            Text(
                f"mean cosine of {found.neurons} neurons ({found.of}) with the nearest class mean "
                f"{found.class_cosine:.3f}, with the nearest subclass mean {found.subclass_cosine:.3f}; "
                f"subclasses a class, {found.found_by}: {groups}"
            )
        )
    if found.verdict in ("neither", "unknown"):
        console.print(Text(found.reason, QUIET))


def _share(estimate: Estimate) -> str:
    """A share in percent, with the ends of its interval."""
    return f"{estimate.value:.1%} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
