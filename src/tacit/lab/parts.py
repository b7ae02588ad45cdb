"""Finished pieces of an interrupted run, kept on disk until the run is complete.

    parts/NAME@CODE@MADE@CONTENT.nc    a part
    parts/CODE.json                    definitions whose text, with the versions of torch and numpy, CODE is of

MADE is the identity of the function that makes the part: its code, and the values that it was given. Who finds
another MADE computes the part again. CODE alone can be asked again without the values: it tells parts that no
run can claim any more. CONTENT makes a damaged part known, whatever the damage.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tacit.base.files import digest, read_plain, write_json, writing
from tacit.lab.store import read_dataset, write_dataset

if TYPE_CHECKING:
    import xarray as xr

    from tacit.base.identity import Code

LENGTH = 12  # of each digest in a name


@dataclass
class DiskParts:
    """The parts in a folder: `own` are those that this session wrote; it `resumed` if it took others too."""

    folder: Path
    own: set[Path] = field(default_factory=set)
    resumed: bool = False

    def made_by(self, compute: Callable[[], xr.Dataset]) -> PartsOf:
        """The parts as this function makes them."""
        from tacit.base.identity import identity_and_code

        made, code = identity_and_code(compute)
        known = _code_digest(code)
        names = self.folder / f"{known}.json"
        if not names.exists():
            write_json(names, {"starts": code.starts, "asked": sorted(code.asked)})
        if not made:  # nobody but this session may take it for the same
            return PartsOf(self, secrets.token_hex(), known, identified=False)
        return PartsOf(self, made, known)


@dataclass(frozen=True)
class PartsOf:
    """Parts that one function makes; not `identified` are those that no later session goes on from."""

    parts: DiskParts
    made: str
    code: str
    identified: bool = True

    def get(self, name: str) -> xr.Dataset | None:
        """The part, if it was finished by this code on these values and is still what was written."""
        for path in self._files(name):
            if path.stem.rpartition("@")[2] == digest(path)[:LENGTH]:
                self.parts.resumed |= path not in self.parts.own
                return read_dataset(path)
        return None

    def put(self, name: str, data: xr.Dataset) -> None:
        """Keep the part; it is on disk, whole, when this returns."""
        with writing(self.parts.folder):
            for damaged in self._files(name):
                damaged.unlink()
        loose = self.parts.folder / f"{self._stem(name)}.nc"
        write_dataset(loose, data)
        # until it has its digest, the part does not count
        kept = loose.with_name(f"{loose.stem}@{digest(loose)[:LENGTH]}.nc")
        with writing(kept):
            loose.rename(kept)
        self.parts.own.add(kept)

    def _files(self, name: str) -> list[Path]:
        found = self.parts.folder.glob(f"{self._stem(name)}@*.nc")
        return sorted(path for path in found if path.is_file() and not path.is_symlink())

    def _stem(self, name: str) -> str:
        """A file name for any part name; `@` is quoted too, so that it can set the digests apart."""
        return f"{quote(name, safe='')}@{self.code}@{self.made[:LENGTH]}"


def of_earlier_code(folder: Path) -> Iterator[Path]:
    """Parts in a folder of parts whose code is no longer what it was: no run can claim them."""
    current: dict[str, bool] = {}
    for path in sorted(folder.glob("*.nc")):
        code = path.stem.split("@")[1:2]
        known = code[0] if code and path.stem.count("@") == 3 else ""
        if known not in current:
            current[known] = _is_current(folder / f"{known}.json")
        if not current[known]:
            yield path


def _is_current(path: Path) -> bool:
    """Whether the definitions that a CODE.json names still have the text that its name is the digest of."""
    from tacit.base.identity import Code

    try:
        told = json.loads(read_plain(path))
        starts = tuple((str(module), str(name)) for module, name in told["starts"])
        code = Code(starts, frozenset(map(str, told["asked"])))
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return _code_digest(code) == path.stem


def _code_digest(code: Code) -> str:
    """The text of all that is reached, and the libraries that numbers depend on."""
    import numpy
    import torch

    versions = (code.digest, torch.__version__, numpy.__version__)
    return hashlib.sha256(" ".join(versions).encode()).hexdigest()[:LENGTH]
