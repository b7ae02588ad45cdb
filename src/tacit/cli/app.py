"""The commands: list, show, run, verify, audit, data, models, cite. Nothing heavy is imported before a run."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.data import data_app
from tacit.cli.lines import NONE, Json, complain, print_json
from tacit.cli.models import models_app
from tacit.errors import CallError, RunError
from tacit.lab.exhibit import SCALES, Exhibit
from tacit.lab.folder import settle
from tacit.lab.order import known_out
from tacit.lab.record import RunRecord, read_record
from tacit.lab.registry import Catalogue, catalogue
from tacit.lab.store import plain
from tacit.version import __version__

app = typer.Typer(
    help="Run the claims of papers on implicit bias and robustness, and see which hold.",
    rich_markup_mode=None,  # help without rich is there in half the time
)
app.add_typer(data_app, name="data")
app.add_typer(models_app, name="models")


def _complete_ids(incomplete: str) -> list[tuple[str, str]]:
    found = catalogue().exhibits.values()
    return [(one.id, one.title) for one in found if one.id.startswith(incomplete)]


def _complete_papers(incomplete: str) -> list[tuple[str, str]]:
    found = catalogue().papers.values()
    return [(one.key, one.title) for one in found if one.key.startswith(incomplete)]


def _complete_either(incomplete: str) -> list[tuple[str, str]]:
    return _complete_papers(incomplete) + _complete_ids(incomplete)


Ids = Annotated[
    list[str], typer.Argument(metavar="ID", help="Exhibits.", autocompletion=_complete_ids)
]
Papers = Annotated[
    list[str],
    typer.Argument(metavar="PAPER", help="Papers.", autocompletion=_complete_papers),
]
Names = Annotated[
    list[str],
    typer.Argument(metavar="ID|PAPER", help="What to cite.", autocompletion=_complete_either),
]
ScaleName = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="|".join(SCALES),
        help="smoke tests the code in seconds; laptop shows the claim in minutes; paper has the "
        "paper's own sizes.",
        autocompletion=lambda: list(SCALES),
    ),
]
Settings = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting; repeat for more. alpha=.1,.2 is a list.",
    ),
]
Seed = Annotated[str, typer.Option(metavar="N", help="The repeats use seed N, N+1, ...")]
Device = Annotated[
    str,
    typer.Option(
        metavar="auto|cpu|cuda",
        help="auto is a GPU where there is one.",
        autocompletion=lambda: ["auto", "cpu", "cuda"],
    ),
]
Out = Annotated[str, typer.Option(metavar="DIR", help="Where the run folders are, one per id.")]
Fresh = Annotated[
    bool,
    typer.Option(
        "--fresh",
        help="Run anew, even if a complete run is there (trained nets that are kept are used).",
    ),
]


def _print_version(asked: bool) -> bool:
    if asked:
        print(__version__)
        raise typer.Exit
    return asked


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


@app.command("list")
def list_exhibits(as_json: Json = False) -> None:
    """List all papers and their exhibits."""
    found = catalogue()
    for broken in found.broken:
        complain(f"warning: {broken}")
    if as_json:
        print_json(
            {
                "papers": [plain(paper) for paper in found.papers.values()],
                "exhibits": [_described(exhibit) for exhibit in found.exhibits.values()],
            }
        )
        return
    from tacit.cli.tables import print_list

    print_list(found)


@app.command()
def show(
    id: Annotated[
        str, typer.Argument(metavar="ID", help="An exhibit.", autocompletion=_complete_ids)
    ],
    out: Out = "runs",
    as_json: Json = False,
) -> None:
    """Show an exhibit: its claim, its configs at the three scales, and its run if there is one."""
    found = catalogue()
    if id in found.papers:
        raise CallError(f"{id} is a paper: `tacit list` shows its exhibits")
    exhibit = found.find(id)
    settle(known_out(out), id)
    run = _known_run(known_out(out) / id)
    if as_json:
        configs = {scale: plain(exhibit.scales[scale]) for scale in SCALES}
        known = run.as_json() if run else None
        print_json({**_described(exhibit), "scales": configs, "run": known})
        return
    from tacit.cli.tables import print_exhibit, print_ledger

    print_exhibit(exhibit, found.papers[exhibit.paper])
    if run:
        print_ledger(found, [run])


@app.command()
def run(
    ids: Ids,
    scale: ScaleName = "laptop",
    settings: Settings = NONE,
    seed: Seed = "0",
    device: Device = "auto",
    out: Out = "runs",
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Run exhibits; a complete run of the same config is reported again."""
    from tacit.cli.session import run_all

    found = catalogue()
    folder = known_out(out)
    exhibits = [found.find(id) for id in dict.fromkeys(ids)]
    runs, failures = run_all(
        exhibits,
        scale=scale,
        settings=settings,
        seed=seed,
        device=device,
        out=folder,
        fresh=fresh,
    )
    _tell(found, runs, [run.folder / "report.html" for run in runs], as_json)
    if failures:
        raise typer.Exit(RunError.exit_status)


@app.command()
def verify(
    papers: Papers = NONE,
    scale: ScaleName = "laptop",
    settings: Settings = NONE,
    seed: Seed = "0",
    device: Device = "auto",
    out: Out = "runs",
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Run all exhibits of the papers (of all papers if none is named) and write one report."""
    from tacit.base.threads import cores
    from tacit.cli.session import run_all
    from tacit.report.publish import publish_summary

    found = catalogue()
    folder = known_out(out)
    keys = [found.paper(key).key for key in dict.fromkeys(papers)] or list(found.papers)
    runs, failures = run_all(
        [exhibit for key in keys for exhibit in found.of_paper(key)],
        scale=scale,
        settings=settings,
        seed=seed,
        device=device,
        out=folder,
        fresh=fresh,
        workers=cores(),
    )
    reports = [publish_summary(folder, runs, failures)] if runs else []
    _tell(found, runs, reports, as_json)
    if failures:
        raise typer.Exit(RunError.exit_status)


@app.command()
def audit(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A .safetensors net, or module:callable.")
    ],
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="An .npz file with x, y, perhaps subclasses.")
    ],
    norm: Annotated[str, typer.Option(metavar="1|2|inf", help="The norm of perturbations.")] = "2",
    radii: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Radii; if not given, chosen by the data's scale."),
    ] = None,
    box: Annotated[
        str | None,
        typer.Option(metavar="LO,HI", help="Where perturbed points must stay, as in 0,1."),
    ] = None,
    subclass: Annotated[
        str | None, typer.Option(metavar="KEY", help="The array of subclass labels in DATA.")
    ] = None,
    limit: Annotated[
        str | None, typer.Option(metavar="N", help="Audit a random choice of N points.")
    ] = None,
    black_box: Annotated[
        bool, typer.Option("--black-box", help="Attack by queries alone: needs no gradients.")
    ] = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """How robust is a classifier? Certified and attacked accuracy, flags, universal directions."""
    from tacit.cli.audit import numbers, print_audit, run_audit, whole

    record = run_audit(
        model,
        data,
        norm=norm,
        radii=numbers("radii", radii, "0.1,0.2"),
        box=numbers("box", box, "0,1"),
        subclass=subclass,
        limit=whole("limit", limit),
        black_box=black_box,
        device=device,
    )
    if as_json:
        print_json(record.as_json())
    else:
        print_audit(record)


@app.command()
def cite(names: Names = NONE) -> None:
    """Print BibTeX of tacit and of the papers (of all papers if none is named)."""
    from tacit.report.cite import bibliography

    found = catalogue()
    keys = dict.fromkeys(
        found.exhibits[name].paper if name in found.exhibits else found.paper(name).key
        for name in names
    )
    print(bibliography(found.papers[key] for key in keys or found.papers))


def _tell(found: Catalogue, runs: list[RunRecord], reports: list[Path], as_json: bool) -> None:
    """What was found, as a document or as a table with the paths of the reports under it."""
    if as_json:
        print_json({"runs": [run.as_json() for run in runs]})
        return
    from tacit.cli.tables import print_ledger

    if runs:
        print_ledger(found, runs)
    for report in reports:
        print(f"report: {report}")


def _known_run(folder: Path) -> RunRecord | None:
    """The complete run in that folder; a damaged one is told and passed over."""
    try:
        return read_record(folder) if folder.exists() else None
    except RunError as error:
        complain(str(error))
    except OSError as error:  # a name that is too long, a folder that may not be entered
        complain(f"{folder} cannot be read ({error.strerror}): choose another --out")
    return None


def _described(exhibit: Exhibit) -> dict[str, str]:
    return {name: getattr(exhibit, name) for name in ("id", "paper", "title", "where", "claim")}
