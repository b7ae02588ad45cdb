"""Configs as JSON and datasets as NetCDF, as a run folder holds them."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tacit.base.files import write_bytes

if TYPE_CHECKING:
    import xarray as xr


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
    """Write NetCDF that reads back bit for bit, packed: shares of many points are mostly 0s and 1s.

    Fill values are switched off: a NaN in the data is a NaN in the file. Without h5py the file is
    NetCDF3, which is not packed, and where 64-bit integers are kept in 32 bits (xarray refuses those
    that do not fit).
    """
    bare, engine = data.drop_encoding(), _engine()
    encoding: dict[Any, dict[str, Any]] = {name: {"_FillValue": None} for name in bare.variables}
    for name, variable in bare.variables.items():
        if engine == "h5netcdf" and variable.dtype.kind in "iufb" and variable.size > 1:
            encoding[name] |= {"zlib": True, "complevel": 1, "shuffle": True}
    # made in memory: HDF5 that meets a full disk while it writes ends in a segmentation fault
    write_bytes(path, bytes(bare.to_netcdf(None, engine=engine, encoding=encoding)))


def read_dataset(path: Path) -> xr.Dataset:
    """The dataset, in memory, with the file closed."""
    import xarray as xr

    with path.open("rb") as stream:
        hdf5 = stream.read(4) == b"\x89HDF"
    return xr.load_dataset(path, engine="h5netcdf" if hdf5 else "scipy").drop_encoding()


def _engine() -> Literal["h5netcdf", "scipy"]:
    modern = all(importlib.util.find_spec(name) for name in ("h5py", "h5netcdf"))
    return "h5netcdf" if modern else "scipy"
