"""What makes features of images, and what images come from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Num, UInt8
from torch import Tensor

from tacit.data.features.transform import ImageTransform
from tacit.errors import CallError

WHITE = 255


@runtime_checkable
class Source(Protocol):
    """Labelled images that can be streamed, such as `Images` and `ImageFolder`.

    `fingerprint` changes whenever the images do. A source whose white is not 255 says so by a further
    attribute `top` (the 8x8 digits: 16).
    """

    @property
    def y(self) -> np.ndarray:
        """The labels 0, 1, ..., int64 (n,)."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of their labels."""

    def __len__(self) -> int:
        """The number of images."""

    def batches(self, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Images uint8 (b, H, W, C) and their labels (b,), in order, at most `size` at a time."""

    def fingerprint(self) -> str:
        """A hash of the images."""


@dataclass(frozen=True)
class Extractor:
    """features = module(transform(images)), for images uint8 (b, H, W, C) on the scale 0..255.

    `identity` is a hash of all that the features depend on besides the images: weights, code and
    transform. It enters the key of the cache; an empty one says that nothing may be cached.

    Pixels of a source whose white is not 255 are stretched to the scale 0..255: exactly, as floats, for an
    `ImageTransform`; for any other transform they are rounded to uint8 again.
    """

    name: str
    module: Callable[[Tensor], Tensor]
    transform: Callable[[Tensor], Tensor]
    identity: str

    def __call__(self, images: UInt8[Tensor, "b H W C"], top: int = WHITE) -> Float[Tensor, "b d"]:
        """The features of a batch, float32; `top` is the value of white."""
        out = self.module(self.transform(self._stretched(images, top)))
        if not isinstance(out, Tensor) or out.dim() != 2 or not out.is_floating_point():
            given = (
                f"{out.dtype} {tuple(out.shape)}" if isinstance(out, Tensor) else type(out).__name__
            )
            raise CallError(
                f"extractor {self.name!r} returned {given} for {len(images)} images; features are floating-point "
                "(images, features): pool or flatten the output of the module"
            )
        if len(out) != len(images):
            raise CallError(
                f"extractor {self.name!r} returned {len(out)} rows for {len(images)} images: one row an image"
            )
        return out.float()

    def _stretched(self, images: UInt8[Tensor, "b H W C"], top: int) -> Num[Tensor, "b H W C"]:
        """Pixels on the scale 0..255."""
        if top == WHITE:
            return images
        stretched = images.float() * (WHITE / top)
        if isinstance(self.transform, ImageTransform):
            return stretched
        return stretched.round().clamp(0, WHITE).to(torch.uint8)
