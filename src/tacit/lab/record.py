"""A complete run, read back from its folder."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.base.files import digest, json_text, read_plain, write_text
from tacit.errors import RunError
from tacit.lab.claims import Claim
from tacit.lab.exhibit import SCALES, Scale
from tacit.lab.store import read_dataset

if TYPE_CHECKING:
    import xarray as xr

MARK = "provenance.json"  # written last: a folder that has it is complete
FILES = ("config.json", "claims.json", "result.nc", "figure.svg", "figure.png", "report.html")
READ = ("config.json", "claims.json")
ANIMATION = "animation.gif"  # of exhibits that have one


@dataclass(frozen=True)
class RunRecord:
    """What a run found and where it lies; `data` is read from the folder when it is asked for."""

    id: str
    scale: Scale
    seed: int
    folder: Path
    seconds: float
    claims: tuple[Claim, ...]
    config: Mapping[str, Any]
    provenance: Mapping[str, Any]

    @property
    def data(self) -> xr.Dataset:
        """The labelled arrays of `result.nc`."""
        return read_dataset(self.folder / "result.nc")

    def as_json(self) -> dict[str, Any]:
        """One entry of the contract's `{runs: [...]}`."""
        return {
            "id": self.id,
            "scale": self.scale,
            "seed": self.seed,
            "folder": str(self.folder),
            "seconds": self.seconds,
            "claims": [claim.as_json() for claim in self.claims],
        }


def read_record(folder: Path, *, whole: bool = False) -> RunRecord:
    """The complete run in `folder`; `RunError` names the file that is missing or was changed.

    What is read here is compared with its checksum, of other files the size; `whole` compares them all, which is
    asked where a run is about to stand in for one that was to be made, nets and figures included.
    """
    provenance = read_provenance(folder)
    sizes = provenance.get("sizes", {})
    for name, known in provenance["files"].items():
        _check_file(folder, name, known if whole or name in READ else "", sizes.get(name))
    try:
        claims = tuple(Claim.from_json(record) for record in _read_json(folder, "claims.json"))
    except (TypeError, KeyError):
        raise _damaged(folder, "claims.json cannot be read") from None
    return RunRecord(
        id=provenance["id"],
        scale=provenance["scale"],
        seed=provenance["seed"],
        folder=folder,
        seconds=provenance["seconds"],
        claims=claims,
        config=_read_json(folder, "config.json"),
        provenance=provenance,
    )


def read_provenance(folder: Path) -> dict[str, Any]:
    """The completeness mark of a run folder, checked as far as it is relied on."""
    if not folder.is_dir():
        raise RunError(f"{folder} is not a run folder: move it away or choose another --out")
    provenance = _read_json(folder, MARK)
    if not _is_provenance(provenance, folder.name) or not _is_as_sealed(folder, provenance):
        raise _damaged(folder, f"{MARK} cannot be read")
    return provenance


def seal(folder: Path, provenance: dict[str, Any]) -> None:
    """Write the mark: what is said of the run, the digest and size of each file, and a checksum of all this.

    The checksum is of the mark's own bytes, with the checksum left out.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in files}
    told = {
        **provenance,
        "files": {name: digest(path) for name, path in names.items()},
        "sizes": {name: path.stat().st_size for name, path in names.items()},
    }
    blank = json_text({**told, "checksum": ""})
    write_text(folder / MARK, json_text({**told, "checksum": _sha256(blank)}))


def _is_as_sealed(folder: Path, provenance: dict[str, Any]) -> bool:
    """Whether the mark is, bit for bit, what `seal` wrote; marks from before it had a checksum have no sizes."""
    known = provenance.get("checksum")
    if not isinstance(known, str) or not known:
        return "sizes" not in provenance
    text = read_plain(folder / MARK).decode()
    return _sha256(text.replace(known, "", 1)) == known


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def foreign_files(folder: Path) -> Iterator[Path]:
    """What lies in a run folder and no run wrote; where the mark cannot tell, names have to."""
    try:
        own = {MARK, *read_provenance(folder)["files"]}
    except RunError:
        nets = (path.relative_to(folder).as_posix() for path in folder.glob("nets/*.safetensors"))
        own = {MARK, *FILES, ANIMATION, *nets}
    for path in sorted(folder.rglob("*")):
        is_file = path.is_symlink() or not path.is_dir()
        if is_file and path.relative_to(folder).as_posix() not in own:
            yield path


def _is_provenance(document: Any, id: str) -> bool:
    """Whether the document is what `describe` and `seal` write for that id, as far as it is used."""
    if not isinstance(document, dict):
        return False
    seed, seconds, files = (document.get(key) for key in ("seed", "seconds", "files"))
    return (
        document.get("id") == id
        and document.get("scale") in SCALES
        and type(seed) is int
        and isinstance(seconds, (int, float))
        and 0 <= seconds < math.inf
        and isinstance(document.get("order"), str)
        and isinstance(document.get("command"), str)
        and isinstance(files, dict)
        and isinstance(document.get("sizes", {}), dict)
        and all(isinstance(known, str) for known in files.values())
        and set(FILES) <= files.keys()
    )


def _check_file(folder: Path, name: str, known: str, size: int | None) -> None:
    """Compare a file with its size and digest, where they are known."""
    path = folder / name
    try:
        if not path.is_file():
            raise _damaged(folder, f"{name} is missing")
        if size not in (None, path.stat().st_size) or (known and digest(path) != known):
            raise _damaged(folder, f"{name} is not the file that was written")
    except OSError:
        raise _damaged(folder, f"{name} cannot be read") from None


def _read_json(folder: Path, name: str) -> Any:
    try:
        return json.loads(read_plain(folder / name).decode())
    except FileNotFoundError:
        raise _damaged(folder, f"{name} is missing") from None
    except (OSError, ValueError, RecursionError):
        raise _damaged(folder, f"{name} cannot be read") from None


def _damaged(folder: Path, what: str) -> RunError:
    return RunError(f"run folder {folder} is damaged: {what}; --fresh runs it anew")
