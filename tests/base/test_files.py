"""The one atomic write: whole or absent, the same bytes again, nobody else's file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from tacit.base.files import (
    read_plain,
    read_tensors,
    write_json,
    write_tensors,
    write_text,
    write_whole,
)
from tacit.errors import RunError

TENSORS = {
    "w": torch.arange(12.0).reshape(3, 4).T,
    "labels": torch.tensor([1, -1, 1]),
    "double": torch.tensor(1 / 3, dtype=torch.float64),
    "half": torch.ones(3, dtype=torch.bfloat16),
    "flags": torch.tensor([True, False, True]),
    "none": torch.empty(0, 5),
}


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "claims.json"
    write_json(path, [1])

    def fail(stream: BinaryIO) -> None:
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(RunError, match=r"cannot be written .No space left on device.: take less"):
        write_whole(path, fail, "take less")
    assert path.read_text() == "[\n  1\n]\n"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_in_the_place_of_a_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    theirs, path = tmp_path / "theirs", tmp_path / "mine"
    theirs.write_text("theirs")
    path.symlink_to(theirs)
    write_text(path, "mine")
    assert theirs.read_text() == "theirs"
    assert not path.is_symlink()
    assert path.read_text() == "mine"


def test_links_and_pipes_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    assert read_plain(tmp_path / "file") == b"text"
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match="no plain file"):
            read_plain(tmp_path / name)


def test_tensors_read_back_and_the_bytes_are_the_same_again(tmp_path: Path) -> None:
    first, second = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    metadata = {name: name * 2 for name in "zyxwvutsrq"} | {"note": 'α\n"'}
    write_tensors(first, TENSORS, metadata)
    write_tensors(second, dict(reversed(TENSORS.items())), dict(reversed(metadata.items())))
    assert first.read_bytes() == second.read_bytes()
    for found, told in (read_tensors(first), (load_file(first), metadata)):
        assert told == metadata
        assert found.keys() == TENSORS.keys()
        for name, tensor in TENSORS.items():
            assert found[name].dtype == tensor.dtype
            assert found[name].shape == tensor.shape
            assert torch.equal(found[name], tensor)
    write_tensors(second, {}, {})
    with safe_open(second, framework="pt") as file:
        assert file.metadata() is None


def test_a_file_of_tensors_has_the_mode_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_tensors(tmp_path / "net", TENSORS, {})
    assert (tmp_path / "net").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_what_is_no_file_of_tensors_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "net").write_text("no tensors")
    for name in ("net", "absent"):
        with pytest.raises(RunError, match=f"{name} is no readable safetensors file"):
            read_tensors(tmp_path / name)
