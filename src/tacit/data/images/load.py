"""Loading a data set by its name."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt8

from tacit.data.images.catalogue import find_dataset, known_part
from tacit.data.images.cifar import read_cifar
from tacit.data.images.digits import WHITE, read_digits
from tacit.data.images.fetch import gather
from tacit.data.images.idx import read_idx
from tacit.data.images.images import Images
from tacit.errors import CallError, RunError

BYTE = 255  # white, where a pixel is a whole byte


def load_images(name: str, part: str = "train") -> Images:
    """The training or test images of "digits", "mnist", "fashion-mnist" or "cifar10".

    Files are looked for in $TACIT_DATA and in the user's cache, and downloaded into the cache if they are in
    neither; their SHA-256 is checked. "digits" come with scikit-learn and need no file.
    """
    dataset, known = find_dataset(name), known_part(part)
    if not dataset.files:
        return Images(*read_digits(known), dataset.classes, WHITE, name)
    paths = gather(dataset, known)
    x, y = read_cifar(paths) if dataset.archive else _read_idx_pair(paths)
    try:
        return Images(x, y, dataset.classes, BYTE, name)
    except CallError as error:  # here the files are wrong, not the call
        raise RunError(f"{error}; replace {' and '.join(map(str, paths))}") from None


def _read_idx_pair(
    paths: Sequence[Path],
) -> tuple[UInt8[np.ndarray, "n H W 1"], Int64[np.ndarray, " m"]]:
    """Images and labels from their two files."""
    images, labels = map(read_idx, paths)
    if images.ndim != 3 or labels.ndim != 1:
        raise RunError(
            f"{paths[0]} has shape {images.shape} and {paths[1]} {labels.shape}: images (n, H, W) and labels "
            "(n,) are needed; replace them"
        )
    return images[..., None], labels.astype(np.int64)
