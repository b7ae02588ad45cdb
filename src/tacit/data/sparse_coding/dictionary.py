"""Dictionaries M (d, D) of allenzhu2020, Section 2: unitary, block-diagonal, the identity, or incoherent.

The columns M_j are the features. D = d in the paper; D < d keeps the first D columns of a unitary matrix, and an
incoherent M may have D > d columns of length 1.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.data.centres import frame, sphere_centres
from tacit.errors import CallError

Dictionary = Float[Tensor, "d D"]


def unitary_dictionary(d: int, D: int, generator: torch.Generator) -> Dictionary:
    """D <= d orthonormal columns, uniform among all of them."""
    check_fits(d, D, "orthonormal")
    return frame(D, d, generator).T.contiguous()


def identity_dictionary(d: int, D: int) -> Dictionary:
    """The first D axes: M = I where D = d, the case of Theorem 5.6."""
    check_fits(d, D, "orthonormal")
    return torch.eye(d, D, dtype=torch.float64)


def block_dictionary(d: int, block: int, generator: torch.Generator) -> Dictionary:
    """Unitary, with uniform blocks on the diagonal: ||M||_inf and ||M||_1 are at most sqrt(block).

    Theorem 5.4 needs both to be d^o(1); a uniform unitary M has about sqrt(2d/pi).
    """
    if not (1 <= block <= d and d % block == 0):
        raise CallError(f"block={block} with d={d}: it must divide d")
    blocks = [frame(block, block, generator) for _ in range(d // block)]
    return torch.block_diag(*blocks)


def incoherent_dictionary(d: int, D: int, generator: torch.Generator) -> Dictionary:
    """D columns drawn independently from the unit sphere: coherence about sqrt(2 log(D^2) / d)."""
    return sphere_centres(D, d, 1.0, generator).T.contiguous()


def coherence(M: Dictionary) -> float:
    """max_{i != j} |<M_i, M_j>| / (||M_i|| ||M_j||): 0 where the columns are orthogonal."""
    unit = M / M.norm(dim=0)
    gram = (unit.T @ unit).abs()
    return float(gram.fill_diagonal_(0).max())


def matrix_norms(M: Dictionary) -> tuple[float, float]:
    """||M||_inf and ||M||_1, the largest absolute row and column sums.

    Section 2 prints the sums without absolute values; Theorem 5.4 needs them with.
    """
    return float(M.abs().sum(1).max()), float(M.abs().sum(0).max())


def check_fits(d: int, D: int, what: str) -> None:
    """No more columns than there are dimensions."""
    if not 1 <= D <= d:
        raise CallError(
            f"D={D} with d={d}: {what} columns number 1 to {d}; take incoherent_dictionary for more"
        )
