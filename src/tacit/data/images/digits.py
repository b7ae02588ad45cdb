"""scikit-learn's 8x8 digits: the images that every installation has."""

import numpy as np
from jaxtyping import Int64, UInt8

from tacit.data.images.catalogue import Part

WHITE = 16  # a pixel counts the dark dots among the 4 x 4 that it stands for


def read_digits(part: Part) -> tuple[UInt8[np.ndarray, "n 8 8 1"], Int64[np.ndarray, " n"]]:
    """Images and labels; the copy has no split of its own: index 2 mod 3 is the test set, the rest trains."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    chosen = (np.arange(len(bunch.target)) % 3 == 2) == (part == "test")
    return bunch.images[chosen, ..., None].astype(np.uint8), bunch.target[chosen].astype(np.int64)
