"""Images with their labels, as bytes in memory; pixels in [0, 1] when they are asked for."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from tacit.errors import CallError


@dataclass(frozen=True, eq=False)
class Images:
    """x (n, H, W, C) bytes from 0 to `top` (white), labels y (n,) from 0 on, the names of the classes."""

    x: UInt8[np.ndarray, "n H W C"]
    y: Int64[np.ndarray, " m"]  # m = n, or it is told in words
    classes: tuple[str, ...]
    top: int
    name: str

    def __post_init__(self) -> None:
        """Refuse labels that do not fit the images or the classes."""
        if len(self.x) != len(self.y):
            raise CallError(
                f"{self.name}: {len(self.x)} images and {len(self.y)} labels: they must be equally many"
            )
        bad = np.flatnonzero((self.y < 0) | (self.y >= len(self.classes)))
        if len(bad):
            raise CallError(
                f"{self.name}: image {bad[0]} has the label {self.y[bad[0]]}: labels of {len(self.classes)} "
                f"classes are 0..{len(self.classes) - 1}"
            )

    def __len__(self) -> int:
        return len(self.y)

    def pixels(
        self, rows: slice | Sequence[int] | np.ndarray | Tensor | None = None
    ) -> Float[Tensor, "m D"]:
        """x / top of these rows (of all), float32 in [0, 1], one image a row of D = H W C numbers."""
        if rows is None:
            rows = slice(None)
        chosen = self.x[rows if isinstance(rows, slice) else np.asarray(rows)]
        return torch.from_numpy(
            np.divide(chosen, np.float32(self.top), dtype=np.float32).reshape(len(chosen), -1)
        )

    def batches(
        self, size: int
    ) -> Iterator[tuple[UInt8[np.ndarray, "b H W C"], Int64[np.ndarray, " b"]]]:
        """The images in order, `size` at a time; the last batch may be smaller."""
        known_size(size)
        for start in range(0, len(self), size):
            yield self.x[start : start + size], self.y[start : start + size]

    def fingerprint(self) -> str:
        """The SHA-256 of the content: shape, bytes, labels, classes and white; the name does not matter."""
        return content_hash(
            (self.x.shape, self.classes, self.top),
            np.ascontiguousarray(self.x).data,
            np.ascontiguousarray(self.y.astype("<i8")).data,
        )


def known_size(size: int) -> int:
    """A batch of at least one image; otherwise a `CallError`."""
    if size < 1:
        raise CallError(f"batches of size {size}: take at least 1 image at a time")
    return size


def content_hash(about: object, *parts: bytes | memoryview) -> str:
    """The SHA-256 of a description and of the bytes that follow it."""
    hashed = hashlib.sha256(repr(about).encode())
    for part in parts:
        hashed.update(part)
    return hashed.hexdigest()
