"""The data of an audit: points, labels and perhaps subclasses, from a file, from arrays, or from batches.

Whatever is wrong with them is said here, in one line, before any model sees them. Points stay in the memory of
the host; a device is shown one batch after the other.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64, Shaped
from torch import Tensor

from tacit.errors import CallError

SEED = 0  # of the choice that `limit` makes


@dataclass(frozen=True)
class Points:
    """x (n, *shape), labels y (n,) as they were given, subclass numbers (n,) or None."""

    x: Float[Tensor, "n ..."]
    y: Shaped[Tensor, " n"]
    subclass: Int64[Tensor, " n"] | None = None


def read_points(data: Any, *, subclass: str | None = None, limit: int | None = None) -> Points:
    """Points from a path to .npz, a mapping, a tuple (x, y[, subclass]), or an iterable of such tuples.

    Files and mappings have the keys x and y, and `subclass` names the key of the subclasses. Of more than `limit`
    points a random choice is taken (the same in every call); a stream is read until it has given that many.
    """
    if limit is not None and limit < 1:
        raise CallError(f"limit {limit}: audit at least 1 point")
    arrays = _arrays(data, subclass, limit)
    x, y = _known_x(arrays["x"]), _known_y(arrays["y"])
    if len(x) != len(y):
        raise CallError(f"x has {len(x)} points and y {len(y)} labels: they must be equally many")
    if len(x) == 0:
        raise CallError("x is empty: an audit needs at least one point")
    groups = arrays.get("subclass")
    if groups is not None and np.shape(groups) != (len(x),):
        raise CallError(
            f"subclass labels have shape {np.shape(groups)}: one a point is needed, ({len(x)},)"
        )
    numbers = None if groups is None else np.unique(groups, return_inverse=True)[1].reshape(-1)
    chosen = np.arange(len(x))
    if limit is not None and limit < len(x):
        chosen = np.sort(np.random.default_rng(SEED).permutation(chosen)[:limit])
    return Points(
        torch.from_numpy(np.ascontiguousarray(x[chosen])),
        torch.from_numpy(np.ascontiguousarray(y[chosen])),
        None if numbers is None else torch.from_numpy(numbers[chosen].astype(np.int64)),
    )


def _arrays(data: Any, subclass: str | None, limit: int | None) -> dict[str, np.ndarray]:
    """The arrays x, y and perhaps subclass, wherever they come from."""
    if isinstance(data, str | Path):
        return _of_mapping(_read_npz(Path(data)), subclass, str(data))
    if isinstance(data, Mapping):
        return _of_mapping(data, subclass, "data")
    if isinstance(data, tuple) and all(isinstance(part, np.ndarray | Tensor) for part in data):
        return _of_tuple(data, subclass)
    if isinstance(data, Iterable) and not isinstance(data, np.ndarray | Tensor):
        return _of_batches(data, subclass, limit)
    raise CallError(
        f"data is {type(data).__name__}: give a path to .npz, a dict with x and y, (x, y), or batches of (x, y)"
    )


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    """All arrays of the file; objects would be unpickled, and are refused."""
    if not path.is_file():
        raise CallError(f"there is no file {path}: DATA is an .npz file with arrays x and y")
    try:
        with path.open("rb") as stream:
            if (
                stream.read(2) != b"PK"
            ):  # an .npz file is a zip; numpy takes anything else for a pickle
                raise CallError(f"{path} is no .npz file: write numpy.savez(path, x=x, y=y)")
            stream.seek(0)
            file = np.load(stream, allow_pickle=False)
            return {name: file[name] for name in file.files}
    except CallError:
        raise
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        if "allow_pickle" in str(error):
            raise CallError(
                f"{path} holds pickled objects, and is not opened: unpickling can run any code; write numbers, "
                "with numpy.savez(path, x=x.astype('float32'), y=y)"
            ) from None
        raise CallError(f"{path} is no readable .npz file: {error}") from None


def _of_mapping(given: Mapping[str, Any], subclass: str | None, name: str) -> dict[str, np.ndarray]:
    wanted = {"x": "x", "y": "y"} | ({} if subclass is None else {"subclass": subclass})
    for key in wanted.values():
        if key not in given:
            there = ", ".join(map(str, given)) or "nothing"
            remedy = (
                "choose one of these with --subclass" if key == subclass else "x and y are needed"
            )
            raise CallError(f"{name} has no array {key!r}, only {there}: {remedy}")
    return {ours: _numpy(given[theirs]) for ours, theirs in wanted.items()}


def _of_tuple(parts: tuple[Any, ...], subclass: str | None) -> dict[str, np.ndarray]:
    if len(parts) not in (2, 3):
        raise CallError(f"data is a tuple of {len(parts)}: give (x, y) or (x, y, subclass)")
    if subclass is not None:
        raise CallError(f"subclass={subclass!r} names a key: of a tuple, give (x, y, subclass)")
    return dict(zip(("x", "y", "subclass"), map(_numpy, parts), strict=False))


def _of_batches(
    batches: Iterable[Any], subclass: str | None, limit: int | None
) -> dict[str, np.ndarray]:
    """The batches one after the other, no more than are needed."""
    read: list[dict[str, np.ndarray]] = []
    count = 0
    for batch in batches:
        if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
            raise CallError("each batch must be (x, y) or (x, y, subclass)")
        read.append(_of_tuple(tuple(batch), subclass))
        count += len(read[-1]["x"])
        if limit is not None and count >= limit:
            break
    if not read:
        raise CallError("data gave no batch: an audit needs at least one point")
    whole = {name: np.concatenate([batch[name] for batch in read]) for name in read[0]}
    return whole if limit is None else {name: array[:limit] for name, array in whole.items()}


def _numpy(array: Any) -> np.ndarray:
    return array.detach().cpu().numpy() if isinstance(array, Tensor) else np.asarray(array)


def _known_x(x: np.ndarray) -> np.ndarray:
    if x.ndim < 2:
        raise CallError(f"x has shape {x.shape}: points are rows, (n, ...)")
    if x.dtype.kind in "bui":
        raise CallError(
            f"x holds integers ({x.dtype}): radii depend on its scale, so convert it as the model wants it, "
            "x.astype('float32') or x.astype('float32') / 255"
        )
    if x.dtype.kind != "f":
        raise CallError(f"x holds {x.dtype}: numbers of a floating type are needed")
    bad = np.flatnonzero(~np.isfinite(x).reshape(len(x), math.prod(x.shape[1:])).all(1))
    if len(bad):
        raise CallError(
            f"x holds NaN or inf in {len(bad)} points, the first is point {bad[0]}: drop or impute them first"
        )
    return x


def _known_y(y: np.ndarray) -> np.ndarray:
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise CallError(f"y has shape {y.shape}: one label a point is needed, (n,)")
    if y.dtype.kind not in "buif" or not np.array_equal(y, np.round(y)):
        raise CallError("y: labels are whole numbers, 0..C-1 or -1 and +1")
    return y.astype(np.int64)


def labels_for(y: Shaped[Tensor, " n"], outputs: int) -> Shaped[Tensor, " n"]:
    """Labels as the attacks want them: +-1 for one output, the class's number for logits.

    One output takes -1/+1 or 0/1; two logits take 0/1 or -1/+1.
    """
    found = sorted(set(y.tolist()))
    if outputs <= 2 and set(found) <= {-1, 1}:
        return y.double() if outputs == 1 else (y > 0).long()
    if outputs == 1:
        if set(found) <= {0, 1}:
            return 2.0 * y.double() - 1
        raise CallError(
            f"y holds the labels {_some(found)}: a model of one output takes -1/+1 or 0/1"
        )
    if found[0] < 0 or found[-1] >= outputs:
        raise CallError(
            f"y holds the labels {_some(found)}: the model has {outputs} outputs, so labels are 0..{outputs - 1}"
        )
    return y


def _some(labels: list[int]) -> str:
    return ", ".join(map(str, labels if len(labels) <= 6 else [*labels[:3], "...", *labels[-2:]]))
