"""Finished pieces of an interrupted run, kept on disk until the run is complete."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tacit.base.files import digest
from tacit.lab.store import read_dataset, write_dataset

if TYPE_CHECKING:
    import xarray as xr


class DiskParts:
    """`Parts` in a folder, one NetCDF file each, named `name@digest.nc`.

    The digest in the name makes a damaged part known, whatever the damage: it is then as if the
    part had never been finished, and it is computed again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str) -> xr.Dataset | None:
        """The part, if it was finished and is still what was written."""
        for path in self._files(name):
            if path.stem.rpartition("@")[2] == digest(path)[:16]:
                return read_dataset(path)
        return None

    def put(self, name: str, data: xr.Dataset) -> None:
        """Keep the part; it is on disk, whole, when this returns."""
        for damaged in self._files(name):
            damaged.unlink()
        loose = self._folder / f"{_file_name(name)}.nc"
        write_dataset(loose, data)
        # until it has its digest, the part does not count
        loose.rename(loose.with_name(f"{loose.stem}@{digest(loose)[:16]}.nc"))

    def _files(self, name: str) -> list[Path]:
        return sorted(self._folder.glob(f"{_file_name(name)}@*.nc"))


def _file_name(name: str) -> str:
    """A file name for any part name; `@` is quoted too, so that it can set the digest apart."""
    return quote(name, safe="")
