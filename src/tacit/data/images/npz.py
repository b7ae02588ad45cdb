"""Features and labels from numpy files: an .npz with x and y, or a folder with x.npy and y.npy."""

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from tacit.errors import CallError

# broken zips, unknown compression, encryption (RuntimeError), headers that lie about sizes
UNREADABLE = (
    *(OSError, EOFError, ValueError, RuntimeError, MemoryError, SyntaxError, KeyError),
    *(zipfile.BadZipFile, zlib.error),
)
ROWS = 4096  # looked at together, so that a file larger than the memory can be checked
T = TypeVar("T")
FORM = "features are an .npz file with x (n, d) and y (n,), or a folder with x.npy and y.npy"


@dataclass(frozen=True, eq=False)
class Features:
    """x (n, d) float32, one point a row; y (n,) the numbers of the classes; the classes' names in order."""

    x: Float32[Tensor, "n d"]
    y: Int64[Tensor, " n"]
    classes: tuple[str, ...]


def load_features(path: str | Path) -> Features:
    """Features and labels from a file, or from a folder whose x.npy may be larger than the memory.

    Labels may be whole numbers or strings: the classes are the labels that occur, sorted, and y numbers them. Two
    files with different labels have different numbers. What is wrong with the data is a `CallError`.
    """
    path = Path(path)
    arrays = _read_folder(path) if path.is_dir() else _read_npz(path)
    x, labels = arrays["x"], arrays["y"]
    _check_x(x)
    _check_y(labels)
    if len(x) != len(labels):
        raise CallError(
            f"x has {len(x)} rows and y {len(labels)} labels: they must be equally many"
        )
    known, y = np.unique(labels, return_inverse=True)
    classes = tuple(_name(label) for label in known)
    if len(classes) < 2:
        raise CallError(f"y holds one class only ({classes[0]}): a classifier needs at least two")
    floats = torch.from_numpy(x.astype(np.float32, copy=False))
    return Features(floats, torch.from_numpy(y.reshape(-1).astype(np.int64)), classes)


@contextmanager
def opened_npz(path: Path) -> Iterator[Mapping[str, np.ndarray]]:
    """The arrays of an .npz file by name, each read when it is asked for; a `CallError` if it is none."""
    with path.open("rb") as stream:
        # an .npz file is a zip (of nothing, in the second case); numpy takes anything else for a pickle
        if stream.read(4) not in (b"PK\x03\x04", b"PK\x05\x06"):
            raise CallError(f"{path} is no .npz file: write numpy.savez(path, x=x, y=y)")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as found:
            yield found


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays x and y of the file; objects would be unpickled, and are refused."""
    if not path.is_file():
        raise CallError(f"there is no file {path}: {FORM}")
    try:
        with opened_npz(path) as found:
            return _both(found, path)
    except CallError:
        raise
    except UNREADABLE as error:
        raise _unreadable(path, error) from None


def _read_folder(path: Path) -> dict[str, np.ndarray]:
    """The arrays of x.npy, which stays on disk where it can, and of y.npy."""
    found = {file.stem: file for file in sorted(path.glob("*.npy"))}
    files = _both(found, path)
    try:
        # copy-on-write: torch takes no memory that may not be written
        return {
            name: np.load(file, mmap_mode="c", allow_pickle=False) for name, file in files.items()
        }
    except UNREADABLE as error:
        raise _unreadable(path, error) from None


def _both(found: Mapping[str, T], path: Path) -> dict[str, T]:
    """What is found under x and y; both are needed."""
    for key in ("x", "y"):
        if key not in found:
            there = ", ".join(found) or "nothing"
            raise CallError(f"{path} has no array {key!r}, only {there}: {FORM}")
    return {key: found[key] for key in ("x", "y")}


def _unreadable(path: Path, error: Exception) -> CallError:
    """Why the file was not read, in the user's words."""
    if "allow_pickle" in str(error) or "Python objects" in str(error):
        return CallError(
            f"{path} holds pickled objects, and is not opened: unpickling can run any code; write numbers and "
            "strings, with numpy.savez(path, x=x.astype('float32'), y=y.astype(str))"
        )
    told = (str(error) or type(error).__name__).splitlines()[0]
    return CallError(f"{path} is not readable: {told}; {FORM}")


def _check_x(x: np.ndarray) -> None:
    """Rows of finite numbers that are not all equal."""
    if x.ndim != 2 or 0 in x.shape:
        remedy = "; write x.reshape(len(x), -1)" if x.ndim > 2 and x.size else ""
        raise CallError(f"x has shape {x.shape}: one row a point is needed, (n, d){remedy}")
    if x.dtype.kind not in "buif":
        raise CallError(f"x holds {x.dtype}: numbers are needed, x.astype('float32')")
    bad: list[int] = []
    varied = False
    with np.errstate(over="ignore"):  # beyond float32 is inf, and told as such
        first = x[0].astype(np.float32)
        for start in range(0, len(x), ROWS):
            block = x[start : start + ROWS].astype(np.float32)
            bad += (start + np.flatnonzero(~np.isfinite(block).all(1))).tolist()
            varied = varied or bool((block != first).any())
    if bad:
        raise CallError(
            f"x holds NaN or inf (or more than float32 can) in {len(bad)} of {len(x)} rows, the first is row "
            f"{bad[0]}: drop or impute them first"
        )
    if not varied:
        raise CallError(
            f"x is constant, its {len(x)} rows are all equal: such features tell no classes apart"
        )


def _check_y(y: np.ndarray) -> None:
    """One label a row: whole numbers or strings."""
    if y.ndim != 1:
        column = y.ndim == 2 and y.shape[1] == 1
        remedy = "of a column take y.ravel()" if column else "of one-hot rows take y.argmax(1)"
        raise CallError(f"y has shape {y.shape}: one label a row is needed, (n,); {remedy}")
    if y.dtype.kind not in "buifUS":
        raise CallError(f"y holds {y.dtype}: labels are whole numbers or strings, y.astype(str)")
    if y.dtype.kind == "f":
        bad = np.flatnonzero(~(np.isfinite(y) & (y == np.round(y))))
        if len(bad):
            raise CallError(
                f"y holds {y[bad[0]]} in row {bad[0]}: labels are whole numbers or strings"
            )


def _name(label: np.generic) -> str:
    """The label as text: 3 for 3.0, too."""
    if isinstance(label, np.floating):
        return str(int(label))
    return label.decode() if isinstance(label, bytes) else str(label)
