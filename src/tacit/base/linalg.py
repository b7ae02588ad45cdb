"""Rows and powers: the linear algebra that several rooms use."""

import torch
from jaxtyping import Float
from torch import Tensor

MOST_PRODUCTS = 32  # the largest exponent that is reached by products


def span_axes(rows: Float[Tensor, "K D"]) -> Float[Tensor, "D rank"]:
    """An orthonormal basis of the span of the rows, as columns: x @ axes are the coordinates there."""
    _, singular, axes = torch.linalg.svd(rows, full_matrices=False)
    return axes[: int((singular > 1e-12 * singular[0]).sum())].T


def unit_rows(
    c: Float[Tensor, "*x n D"],
) -> tuple[Float[Tensor, "*x n D"], Float[Tensor, "*x n 1"]]:
    """Rows of length 1 and their lengths; a row of zeros stays."""
    size = c.norm(dim=-1, keepdim=True)
    return c / torch.where(size > 0, size, 1.0), size


def power(r: Float[Tensor, "*any"], p: float, most: int = MOST_PRODUCTS) -> Float[Tensor, "*any"]:
    """r^p for r >= 0, by products where p is a whole number <= `most`: torch's power of 4 is 20 times slower."""
    whole = int(p)
    if whole != p or not 1 <= whole <= most:
        return r**p
    out = r
    for bit in bin(whole)[3:]:
        out = out.square()
        if bit == "1":
            out = out * r
    return out
