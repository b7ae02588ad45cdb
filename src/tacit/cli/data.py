"""`tacit data`: which image data sets there are, where their files are, and fetching those that are not here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.lines import Json, complain, print_json
from tacit.errors import RunError

if TYPE_CHECKING:
    from tacit.data.images import Dataset

data_app = typer.Typer(
    help="Image data sets: which there are, where they are, and downloading them.",
    rich_markup_mode=None,
)


def _complete_names(incomplete: str) -> list[str]:
    from tacit.data.images import DATASETS

    return [name for name in DATASETS if name.startswith(incomplete)]


@data_app.command("list")
def list_data(as_json: Json = False) -> None:
    """List the data sets: how many images, where they were found, who published them."""
    from tacit.data.images import DATASETS

    described = [_described(dataset) for dataset in DATASETS.values()]
    if as_json:
        print_json({"datasets": described})
    else:
        _print_table(described)


@data_app.command("fetch")
def fetch_data(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME", help="Data sets.", autocompletion=_complete_names),
    ],
) -> None:
    """Download data sets into the user's cache, unless they are here already."""
    from tacit.data.images import fetch, find_dataset

    failed = False
    for dataset in [find_dataset(name) for name in dict.fromkeys(names)]:
        try:
            downloaded = fetch(dataset)
        except RunError as error:  # the others may still be had
            complain(str(error))
            failed = True
            continue
        where = " and ".join(_described(dataset)["found"])
        print(f"{dataset.name}: {'downloaded into' if downloaded else 'here already,'} {where}")
    if failed:
        raise typer.Exit(RunError.exit_status)


def _described(dataset: Dataset) -> dict[str, Any]:
    """The set as the JSON document has it; `found` and `damaged` are paths, `missing` names of files."""
    from tacit.data.images.places import is_whole, look

    paths = {file: look(dataset, file) for file in dataset.all_files}
    found = {str(path.parent): None for path in paths.values() if path}  # in order, each once
    return {
        "name": dataset.name,
        "train": dataset.counts["train"],
        "test": dataset.counts["test"],
        "shape": list(dataset.shape),
        "classes": len(dataset.classes),
        "found": list(found) if dataset.files else ["bundled with scikit-learn"],
        "missing": [file.name for file, path in paths.items() if path is None],
        "damaged": [str(path) for file, path in paths.items() if path and not is_whole(path, file)],
        "download_bytes": dataset.download_size,
        "publisher": dataset.publisher,
        "licence": dataset.licence,
        "citation": dataset.citation,
        "addresses": list(dataset.sources),
    }


def _where(described: dict[str, Any]) -> str:
    """Where the set was found, or how to get it."""
    fetch = f"tacit data fetch {described['name']}"
    size = f"{described['download_bytes'] / 1e6:.1f} MB"
    if described["damaged"]:
        return f"damaged: {', '.join(described['damaged'])}; {fetch}, {size}"
    if described["missing"]:
        return f"not here: {fetch}, {size}"
    return ", ".join(described["found"])


def _print_table(described: list[dict[str, Any]]) -> None:
    """A set a row; what is long stands under it."""
    from rich.padding import Padding
    from rich.text import Text

    from tacit.cli.tables import make_console

    console = make_console()
    for one in described:
        side = " x ".join(map(str, one["shape"]))
        counts = f"  {one['train']:,} + {one['test']:,} images of {side}, {one['classes']} classes"
        console.print(Text.assemble((one["name"], "bold cyan"), counts))
        console.print(Padding(Text(_where(one)), (0, 0, 0, 2), expand=False))
        about = f"{one['publisher']}; licence: {one['licence']}\n{one['citation']}"
        console.print(Padding(Text(about, "bright_black"), (0, 0, 0, 2), expand=False))
