"""A complete run, read back from its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import RunError
from tacit.lab.claim import Claim
from tacit.lab.exhibit import Scale
from tacit.lab.store import digest, read_dataset

if TYPE_CHECKING:
    import xarray as xr

MARK = "provenance.json"  # written last: a folder that has it is complete


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


def read_record(folder: Path) -> RunRecord:
    """The complete run in `folder`; `RunError` names the file that is missing or was changed."""
    provenance = read_provenance(folder)
    for name, known in provenance["files"].items():
        path = folder / name
        if not path.is_file():
            raise _damaged(folder, f"{name} is missing")
        if digest(path) != known:
            raise _damaged(folder, f"{name} is not the file that was written")
    claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    return RunRecord(
        id=provenance["id"],
        scale=provenance["scale"],
        seed=provenance["seed"],
        folder=folder,
        seconds=provenance["seconds"],
        claims=tuple(Claim.from_json(record) for record in claims),
        config=json.loads((folder / "config.json").read_text(encoding="utf-8")),
        provenance=provenance,
    )


def read_provenance(folder: Path) -> dict[str, Any]:
    """The completeness mark of a run folder, checked as far as it is relied on."""
    if not folder.is_dir():
        raise RunError(f"{folder} is not a run folder: move it away or choose another --out")
    try:
        provenance = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _damaged(folder, f"{MARK} is missing") from None
    except (OSError, ValueError):
        raise _damaged(folder, f"{MARK} cannot be read") from None
    needed = {"id", "scale", "seed", "seconds", "order", "files"}
    if not isinstance(provenance, dict) or not needed <= provenance.keys():
        raise _damaged(folder, f"{MARK} cannot be read")
    return provenance


def _damaged(folder: Path, what: str) -> RunError:
    return RunError(f"run folder {folder} is damaged: {what}; --fresh runs it anew")
