"""Where trained nets are kept, which there are, and how they are cleared (without torch).

    ADDRESS.safetensors              a net; its address is the sha256 of its recipe
    ADDRESS.json                     the recipe, when the net was made, and in how many seconds: for people
    ADDRESS.KEY.safetensors          what was measured on it, epoch by epoch
    ADDRESS.checkpoint.safetensors   the last kept epoch of a training that was cut short, or is under way
    ADDRESS.lock                     held by the run that trains

In the folder that $TACIT_MODELS names, else in `models` of the user's cache.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.base.cache import cache_folder, stated_folder
from tacit.base.files import read_plain
from tacit.errors import CallError, RunError

VARIABLE = "TACIT_MODELS"
FILE = re.compile(r"([0-9a-f]{64})((\.[0-9a-f]{16}|\.checkpoint)?\.safetensors|\.json|\.lock)")
MOST = 1e9  # seconds that a record can mean
SHORT = 12  # digits of an address that people see

Recipe = Mapping[str, Any]
"""What makes a net, as JSON has it: data, start, settings and code of the training, versions, device."""


@dataclass(frozen=True)
class Entry:
    """What lies under one address; `recipe` is None where there is none to read, as beside a checkpoint."""

    address: str
    files: tuple[Path, ...]
    bytes: int
    recipe: dict[str, Any] | None
    made: str | None
    seconds: float | None

    @property
    def kind(self) -> str:
        """`net`, `unfinished` (the checkpoint of a training), or `rest` (a net whose file is gone, a lock)."""
        names = {path.name.removeprefix(self.address) for path in self.files}
        if ".safetensors" in names:
            return "net"
        return "unfinished" if ".checkpoint.safetensors" in names else "rest"


def models_folder() -> Path:
    """The place of the store."""
    return stated_folder(VARIABLE) or cache_folder() / "models"


def address_of(recipe: Recipe) -> str:
    """The sha256 of a recipe, in hexadecimal."""
    text = json.dumps(recipe, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def entries() -> list[Entry]:
    """All that is kept, the oldest first; other files in the folder are left alone."""
    folder, found = models_folder(), dict[str, list[Path]]()
    try:
        paths = sorted(folder.iterdir()) if folder.exists() else []
    except OSError as error:
        why = error.strerror or error
        raise RunError(f"{folder} cannot be read ({why}): set {VARIABLE} to a folder") from None
    for path in paths:
        if match := FILE.fullmatch(path.name):
            found.setdefault(match[1], []).append(path)
    return sorted((_entry(*item) for item in found.items()), key=lambda one: one.made or "")


def clear(addresses: Sequence[str]) -> list[Entry]:
    """Remove what lies under these addresses (their first digits will do), or everything; what was removed."""
    known = entries()
    for begin in addresses:
        count = sum(one.address.startswith(begin) for one in known)
        if count != 1:
            what = "no trained net" if count == 0 else f"{count} trained nets"
            raise CallError(
                f"{what} has an address that begins with {begin!r}: `tacit models list`"
            )
    gone = [one for one in known if not addresses or one.address.startswith(tuple(addresses))]
    # what a kill left in the middle of a write
    loose = [] if addresses else models_folder().glob(f".{'[0-9a-f]' * 16}.tmp")
    for path in (*(path for one in gone for path in one.files), *loose):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise RunError(f"{path} cannot be removed ({error.strerror or error})") from None
    return gone


def _size(path: Path) -> int:
    """Its bytes; 0 where it is gone meanwhile, as a checkpoint is when its training ends."""
    with suppress(OSError):
        return path.lstat().st_size
    return 0


def _entry(address: str, files: list[Path]) -> Entry:
    """One entry; a record that is gone or is no JSON leaves it without words."""
    record: Any = None
    with suppress(OSError, ValueError, RecursionError):
        told = read_plain(files[0].with_name(f"{address}.json"))
        record = json.loads(told, parse_constant=lambda _: None)  # JSON has no NaN
    record = record if isinstance(record, dict) else {}
    recipe, made, seconds = (record.get(name) for name in ("recipe", "made", "seconds"))
    return Entry(
        address,
        tuple(files),
        sum(_size(path) for path in files),
        recipe if isinstance(recipe, dict) else None,
        made if isinstance(made, str) else None,
        float(seconds) if isinstance(seconds, (int, float)) and 0 <= seconds < MOST else None,
    )
