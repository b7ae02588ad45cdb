"""CIFAR-10's binary version: records of a label byte and three planes (red, green, blue) of 32 x 32 bytes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt8

from tacit.errors import RunError

SIDE, PLANES = 32, 3
RECORD = 1 + PLANES * SIDE * SIDE


def read_cifar(
    paths: Sequence[Path],
) -> tuple[UInt8[np.ndarray, "n 32 32 3"], Int64[np.ndarray, " n"]]:
    """The images and labels of the batches, in order; a `RunError` where a batch ends inside a record."""
    counts = []
    for path in paths:
        count, rest = divmod(path.stat().st_size, RECORD)
        if rest or not count:
            raise RunError(
                f"{path} is damaged or truncated: {path.stat().st_size:,} bytes are no whole number of records "
                f"of {RECORD:,} (a label and its image): put a good copy there"
            )
        counts.append(count)
    x = np.empty((sum(counts), SIDE, SIDE, PLANES), np.uint8)
    y = np.empty(sum(counts), np.int64)
    start = 0
    for path, count in zip(paths, counts, strict=True):  # one batch at a time in memory, besides x
        records = np.fromfile(path, np.uint8).reshape(count, RECORD)
        planes = records[:, 1:].reshape(count, PLANES, SIDE, SIDE)
        x[start : start + count] = planes.transpose(0, 2, 3, 1)
        y[start : start + count] = records[:, 0]
        start += count
    return x, y
