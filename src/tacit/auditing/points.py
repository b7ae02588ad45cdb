"""The data of an audit: points, labels and perhaps subclasses, from a file, from arrays, or from batches.

Whatever is wrong with them is said here, in one line, before any model sees them. Points stay in the memory of
the host; a device is shown one batch after the other.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64, Shaped
from torch import Tensor

from tacit.auditing.choices import known_count
from tacit.data.images.npz import UNREADABLE, opened_npz
from tacit.errors import CallError

SEED = 0  # of the choice that `limit` makes


@dataclass(frozen=True)
class Points:
    """x (n, *shape), labels y (n,) as they were given, subclass numbers (n,) or None."""

    x: Float[Tensor, "n ..."]
    y: Shaped[Tensor, " n"]
    subclass: Int64[Tensor, " n"] | None = None


def read_points(data: Any, *, subclass: Any = None, limit: Any = None) -> Points:
    """Points from a path to .npz, a mapping, a tuple (x, y[, subclass]), or an iterable of such tuples.

    Files and mappings have the keys x and y, and `subclass` names the key of the subclasses. Of more than `limit`
    points a random choice is taken (the same in every call); a stream is read until it has given that many.
    """
    if limit is not None:
        limit = known_count("limit", limit, "audit at least 1 point")
    if subclass is not None and not isinstance(subclass, str):
        raise CallError(
            f"subclass is {type(subclass).__name__}: it names a key; give labels as (x, y, subclass)"
        )
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
        return _read_npz(Path(data), subclass)
    if isinstance(data, Mapping):
        return _of_mapping(data, subclass, "data")
    if isinstance(data, tuple) and all(map(_is_array, data)):
        return _of_tuple(data, subclass)
    if isinstance(data, Iterable) and not isinstance(data, np.ndarray | Tensor):
        return _of_batches(data, subclass, limit)
    raise CallError(
        f"data is {type(data).__name__}: give a path to .npz, a dict with x and y, (x, y), or batches of (x, y)"
    )


def _is_array(part: Any) -> bool:
    """An array, a tensor, or (nested) lists of numbers; a list of arrays is a batch."""
    if isinstance(part, list):
        return len(part) == 0 or not isinstance(part[0], np.ndarray | Tensor)
    return isinstance(part, np.ndarray | Tensor)


def _read_npz(path: Path, subclass: str | None) -> dict[str, np.ndarray]:
    """The arrays of the file that are asked for; objects would be unpickled, and are refused."""
    if not path.is_file():
        raise CallError(f"there is no file {path}: DATA is an .npz file with arrays x and y")
    try:
        with opened_npz(path) as found:
            return _of_mapping(found, subclass, str(path))
    except CallError:
        raise
    except UNREADABLE as error:
        if "allow_pickle" in str(error):
            raise CallError(
                f"{path} holds pickled objects, and is not opened: unpickling can run any code; write numbers, "
                "with numpy.savez(path, x=x.astype('float32'), y=y)"
            ) from None
        told = (str(error) or type(error).__name__).splitlines()[0]
        raise CallError(f"{path} is no readable .npz file: {told}") from None


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
        if read[-1].keys() != read[0].keys():
            raise CallError(
                "subclass labels come with some batches only: give them with all, or none"
            )
        for name, array in read[-1].items():
            if array.shape[1:] != read[0][name].shape[1:] or array.ndim == 0:
                raise CallError(
                    f"batches differ: {name} of one has shape {read[0][name].shape}, of another {array.shape}"
                )
        count += len(read[-1]["x"])
        if limit is not None and count >= limit:
            break
    if not read:
        raise CallError("data gave no batch: an audit needs at least one point")
    whole = {name: np.concatenate([batch[name] for batch in read]) for name in read[0]}
    return whole if limit is None else {name: array[:limit] for name, array in whole.items()}


def _numpy(array: Any) -> np.ndarray:
    """The numbers as numpy has them; bfloat16, which it has not, as float32."""
    if isinstance(array, Tensor):
        array = array.detach().cpu()
        return np.asarray((array.float() if array.dtype == torch.bfloat16 else array).numpy())
    try:
        return np.asarray(array)
    except ValueError as error:  # lists of different lengths
        raise CallError(f"data holds no array: {str(error).splitlines()[0]}") from None


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
    if math.prod(x.shape[1:]) == 0:
        raise CallError(f"x has shape {x.shape}: a point needs at least one coordinate")
    # torch knows the byte order of the machine only, and nothing wider than float64
    x = x.astype(np.float64 if x.dtype.itemsize > 8 else x.dtype.newbyteorder("="), copy=False)
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
        remedy = "; of one-hot rows take y.argmax(1)" if y.ndim == 2 else ""
        raise CallError(f"y has shape {y.shape}: one label a point is needed, (n,){remedy}")
    if y.dtype.kind not in "buif":
        raise CallError(
            f"y holds {y.dtype}: labels are whole numbers, 0..C-1 or -1 and +1; number the classes, with "
            "numpy.unique(y, return_inverse=True)[1]"
        )
    bad = np.flatnonzero(~(np.isfinite(y) & (y == np.round(y)) & (np.abs(y * 1.0) < 2**53)))
    if len(bad):
        raise CallError(
            f"y holds {y[bad[0]]} at point {bad[0]}: labels are whole numbers, 0..C-1 or -1 and +1; drop such "
            "points or number the classes"
        )
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
            f"y holds the labels {_some(found)}: a model of one output takes -1/+1 or 0/1; relabel y, for "
            f"instance as y == {found[-1]}, or give a model with an output for each class"
        )
    if found[0] < 0 or found[-1] >= outputs:
        raise CallError(
            f"y holds the labels {_some(found)}: the model has {outputs} outputs, so labels are 0..{outputs - 1}"
            f"; {found[0] if found[0] < 0 else found[-1]} is none of them: relabel y{_shift(found, outputs)}"
        )
    return y


def _shift(found: list[int], outputs: int) -> str:
    """The remedy where labels begin elsewhere than at 0."""
    fits = found[-1] - found[0] < outputs
    return f", for instance as y - {found[0]}" if fits and found[0] > 0 else ""


def _some(labels: list[int]) -> str:
    return ", ".join(map(str, labels if len(labels) <= 6 else [*labels[:3], "...", *labels[-2:]]))
