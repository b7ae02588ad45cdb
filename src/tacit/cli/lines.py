"""What the command says besides its tables: one line on stderr, one JSON document on stdout."""

import json
import sys
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
NONE: list[str] = []  # a default that typer reads and never writes to


def complain(message: str) -> None:
    """One line on stderr, whatever the message holds."""
    print("tacit:", " ".join(message.split()), file=sys.stderr)


def print_json(document: Any) -> None:
    """The one document of a `--json` call; ASCII, so that no terminal's encoding can spoil it."""
    print(json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False))
