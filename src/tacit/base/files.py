"""Files that are whole or absent: written under a name of their own, synced, then put in place.

No link is followed, here or in what is read: in a folder that others may write to, one could be planted.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tacit.errors import RunError

if TYPE_CHECKING:
    from torch import Tensor

REMEDY = "choose another --out"
DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "bool": "BOOL",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
}  # torch's names and those of safetensors


@contextmanager
def writing(path: Path, remedy: str = REMEDY) -> Iterator[None]:
    """Whatever the system refuses while `path` is written is told in one line, with the caller's remedy."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise RunError(f"{path} cannot be written ({why}): {remedy}") from error


def write_whole(path: Path, write: Callable[[BinaryIO], object], remedy: str = REMEDY) -> None:
    """Let `write` fill a stream of bytes, then put the file in the place of `path`; its folder must be there.

    A kill at any moment leaves the old `path` or the new one, never a part of it; two processes may write at
    once. The mode is the one that the umask gives.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")  # short: `path` may have a long name
    with writing(path, remedy):
        try:
            with temporary.open("xb") as stream:  # x: never through a link, never into another file
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes, remedy: str = REMEDY) -> None:
    """Write a file, whole or not at all."""
    write_whole(path, lambda stream: stream.write(data), remedy)


def write_text(path: Path, text: str, remedy: str = REMEDY) -> None:
    """Write a text file, whole or not at all."""
    write_bytes(path, text.encode(), remedy)


def write_json(path: Path, document: Any, remedy: str = REMEDY) -> None:
    """Write a JSON document, whole or not at all."""
    write_text(path, json_text(document), remedy)


def json_text(document: Any) -> str:
    """JSON that people read too: indented, and strict (no NaN)."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_tensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, str],
    remedy: str = REMEDY,
) -> None:
    """Write a safetensors file, whole or not at all; the same tensors and metadata give the same bytes.

    The format is the length of the header (8 bytes, little-endian), the header (JSON, padded to 8 bytes), and
    the tensors' bytes without gaps, wide types first so that each lies aligned. The library's own writer puts
    the metadata in a random order, gives the file mode 0600, and refuses tensors that share memory.
    """
    import torch

    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))} if metadata else {}
    begin, held = 0, []
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0])):
        held.append(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
        end = begin + len(held[-1])
        kind = DTYPES.get(str(tensor.dtype).removeprefix("torch."))
        if kind is None:
            raise RunError(
                f"{path}: tensor {name!r} is {tensor.dtype}, which such a file cannot hold"
            )
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [begin, end]}
        begin = end
    head = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    head += b" " * (-len(head) % 8)

    def fill(stream: BinaryIO) -> None:
        stream.write(len(head).to_bytes(8, "little") + head)
        for data in held:
            stream.write(data.data)

    write_whole(path, fill, remedy)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a safetensors file; `RunError` if it is none."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise RunError(f"{path} is no readable safetensors file: {error}") from error


def read_plain(path: Path) -> bytes:
    """The bytes of a plain file; an `OSError` for a link, and for a pipe, which might never end."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise OSError(f"{path} is no plain file")
    return path.read_bytes()


def digest(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
