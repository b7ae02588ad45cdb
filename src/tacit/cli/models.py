"""`tacit models`: which trained nets are kept, how much room they take, and clearing them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.lines import NONE, Json, print_json

if TYPE_CHECKING:
    from tacit.lab.models.shelf import Entry

models_app = typer.Typer(
    help="Trained nets, which exhibits share: which are kept, and clearing them.",
    rich_markup_mode=None,
)

DIGEST = 64  # characters of a sha256, which says nothing to people


@models_app.command("list")
def list_models(as_json: Json = False) -> None:
    """List the trained nets: what each is, when it was made, how many bytes it takes."""
    from tacit.lab.models.shelf import entries, models_folder

    found = entries()
    if as_json:
        described = [_described(one) for one in found]
        print_json({"folder": str(models_folder()), "models": described})
    else:
        _print_table(found, f"{_total(found)} in {models_folder()}")


@models_app.command("clear")
def clear_models(
    addresses: Annotated[
        list[str],
        typer.Argument(metavar="ADDRESS", help="First digits of addresses; all nets if none."),
    ] = NONE,
) -> None:
    """Remove trained nets; what needs them trains them again."""
    from tacit.lab.models.shelf import clear, models_folder

    print(f"removed {_total(clear(addresses))} from {models_folder()}")


def _total(found: list[Entry]) -> str:
    """How many there are of what, and their bytes."""
    count = Counter(one.kind for one in found)
    nets = f"{count['net']} trained {'net' if count['net'] == 1 else 'nets'}"
    begun = f" and {count['unfinished']} unfinished" if count["unfinished"] else ""
    return f"{nets}{begun}, {_size(sum(one.bytes for one in found))}"


def _described(entry: Entry) -> dict[str, Any]:
    """The entry as the JSON document has it."""
    names = ("address", "kind", "recipe", "made", "seconds", "bytes")
    files = {"files": [str(path) for path in entry.files]}
    return {name: getattr(entry, name) for name in names} | files


def _words(entry: Entry) -> str:
    """What the net is, without digests; versions are in the JSON document."""
    if entry.recipe is None:
        return entry.kind
    shown = {
        name: value
        for name, value in entry.recipe.items()
        if name not in ("training", "data", "torch", "numpy")
        and value not in ("", [], None)
        and len(str(value)) < DIGEST
    }
    settings = ", ".join(f"{name} {_short(value)}" for name, value in shown.items())
    return f"{entry.recipe.get('data', '')}: {settings}"


def _short(value: object) -> str:
    """A setting as people write it: 4, and not 4.0."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"


def _print_table(found: list[Entry], total: str) -> None:
    """A net a row."""
    from rich.table import Table
    from rich.text import Text

    from tacit.cli.tables import make_console
    from tacit.lab.models.shelf import SHORT

    console = make_console()
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for fixed in (True, False, True, True):
        table.add_column(no_wrap=fixed, justify="left")
    for one in found:
        made = (one.made or "")[:16].replace("T", " ")
        table.add_row(
            Text(one.address[:SHORT], "cyan"), Text(_words(one)), Text(made), _size(one.bytes)
        )
    if found:
        console.print(table)
    console.print(Text(total, "bold"), soft_wrap=True)  # a path stays in one piece
