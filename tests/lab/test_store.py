"""What is stored reads back bit for bit; what was damaged is known to be."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from fakes.toy import Toy
from tacit.lab import store
from tacit.lab.parts import DiskParts


@pytest.fixture
def data() -> xr.Dataset:
    return xr.Dataset(
        {
            "float64": ("x", np.array([1 / 3, -0.0, np.nan, np.inf, 5e-324])),
            "float32": ("x", np.float32([1 / 3, 2, 3, 4, np.nan])),
            "whole": ("x", np.arange(5)),
            "yes": ("x", np.array([True, False, True, True, False])),
            "scalar": 1 / 7,
            "none": ("empty", np.empty(0)),
        },
        coords={"x": list("abcde")},
        attrs={"note": "α ± β"},
    )


@pytest.mark.parametrize("engine", ["h5netcdf", "scipy"])
def test_dataset_reads_back(
    engine: str, data: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_engine", lambda: engine)
    path = tmp_path / "result.nc"
    store.write_dataset(path, data)
    read = store.read_dataset(path)
    xr.testing.assert_identical(read, data)
    for name in ("float64", "float32", "yes", "scalar"):
        assert read[name].dtype == data[name].dtype
        assert read[name].values.tobytes() == data[name].values.tobytes()
    # what was read can be stored again as it is, by either engine
    store.write_dataset(path, read)
    assert [file.name for file in tmp_path.iterdir()] == ["result.nc"]


def test_shares_of_many_points_take_little_room(tmp_path: Path) -> None:
    shares = np.random.default_rng(0).integers(0, 3, 100_000).astype(np.float32) / 2
    path = tmp_path / "result.nc"
    store.write_dataset(path, xr.Dataset({"share": ("point", shares)}))
    assert path.stat().st_size < shares.nbytes / 5
    assert store.read_dataset(path).share.values.tobytes() == shares.tobytes()


def test_plain_values() -> None:
    config = store.plain(Toy(radius=math.inf, cap=None))
    assert config["alpha"] == [0.1, 0.2, 0.3]
    assert config["radius"] == "inf"
    assert config["cap"] is None
    assert store.plain({"a": Path("b")}) == {"a": "b"}


def test_parts(data: xr.Dataset, tmp_path: Path) -> None:
    parts = DiskParts(tmp_path).made_by(xr.Dataset)
    assert parts.get("a") is None
    for name in ("a", "a@b", "../a/alpha=0.1 *?[x]"):
        parts.put(name, data.assign(name=name))
    for name in ("a", "a@b", "../a/alpha=0.1 *?[x]"):
        found = parts.get(name)
        assert found is not None
        assert found["name"].item() == name
    assert all(path.parent == tmp_path for path in tmp_path.rglob("*"))
    assert len(list(tmp_path.glob("*.nc"))) == 3


@pytest.mark.parametrize("damage", [b"", b"\x89HDF\r\n\x1a\n", b"noise"])
def test_a_damaged_part_counts_as_not_finished(
    damage: bytes, data: xr.Dataset, tmp_path: Path
) -> None:
    parts = DiskParts(tmp_path).made_by(xr.Dataset)
    parts.put("a", data)
    (path,) = tmp_path.glob("*.nc")
    path.write_bytes(damage)
    assert parts.get("a") is None
    parts.put("a", data)
    assert parts.get("a") is not None
    assert len(list(tmp_path.glob("*.nc"))) == 1


def test_a_flipped_bit_in_a_part_is_noticed(data: xr.Dataset, tmp_path: Path) -> None:
    parts = DiskParts(tmp_path).made_by(xr.Dataset)
    parts.put("a", data)
    (path,) = tmp_path.glob("*.nc")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert parts.get("a") is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes")
def test_a_pipe_in_the_place_of_a_part_is_not_waited_for(data: xr.Dataset, tmp_path: Path) -> None:
    parts = DiskParts(tmp_path).made_by(xr.Dataset)
    parts.put("a", data)
    (path,) = tmp_path.glob("*.nc")
    path.unlink()
    os.mkfifo(path)
    assert parts.get("a") is None
    parts.put("a", data)
    assert parts.get("a") is not None
