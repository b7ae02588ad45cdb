"""Files that are whole or absent: written under a temporary name, synced, then put in place."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tacit.errors import RunError

if TYPE_CHECKING:
    import xarray as xr


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Whatever the system refuses while `path` is written is told in one line."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise RunError(f"{path} cannot be written ({why}): choose another --out") from error


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file, then put it in the place of `path`.

    A kill at any moment leaves the old `path` or the new one, never a part of it.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(temporary)
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json(path: Path, document: Any) -> None:
    """Write JSON that people read too: indented, and strict (no NaN)."""
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def plain(value: Any) -> Any:
    """A config's value as JSON has it: dataclasses become objects, tuples lists, inf a string."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def write_dataset(path: Path, data: xr.Dataset) -> None:
    """Write NetCDF that reads back bit for bit.

    Fill values are switched off: a NaN in the data is a NaN in the file. Without h5py the file is
    NetCDF3, where 64-bit integers are kept in 32 bits (xarray refuses those that do not fit).
    """
    bare = data.drop_encoding()
    encoding = {name: {"_FillValue": None} for name in bare.variables}
    write_whole(
        path, lambda temporary: bare.to_netcdf(temporary, engine=_engine(), encoding=encoding)
    )


def read_dataset(path: Path) -> xr.Dataset:
    """The dataset, in memory, with the file closed."""
    import xarray as xr

    with path.open("rb") as stream:
        hdf5 = stream.read(4) == b"\x89HDF"
    return xr.load_dataset(path, engine="h5netcdf" if hdf5 else "scipy").drop_encoding()


def digest(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _engine() -> Literal["h5netcdf", "scipy"]:
    modern = all(importlib.util.find_spec(name) for name in ("h5py", "h5netcdf"))
    return "h5netcdf" if modern else "scipy"
