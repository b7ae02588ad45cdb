"""The stable rank of a matrix (min2024, Section 5: of the hidden features of all training points)."""

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.errors import CallError

BLOCK = 8192  # rows turned to float64 at once


def stable_rank(matrix: Float[Tensor, "*e n d"]) -> Float[Tensor, "*e"]:
    """||A||_F^2 / ||A||_2^2, between 1 and the rank.

    The squared singular values are the eigenvalues of the smaller of A'A and AA', so that 50,000 features of 500
    neurons cost one 500 x 500 eigenproblem. In float64; entries are divided by the largest first, so that no
    square underflows.
    """
    if matrix.shape[-2] > matrix.shape[-1]:
        matrix = matrix.mT
    largest = matrix.abs().amax((-2, -1), keepdim=True) if matrix.numel() else matrix.new_zeros(())
    if not bool(largest.isfinite().all()):
        raise CallError("the matrix holds NaN or inf: it has no stable rank")
    if bool((largest == 0).any()):
        raise CallError("the matrix is zero (or empty): it has no stable rank")
    scale = largest.to(torch.float64)
    gram = torch.zeros((), dtype=torch.float64, device=matrix.device)
    for part in matrix.split(BLOCK, -1):
        part = part.to(torch.float64) / scale
        gram = gram + part @ part.mT
    return stable_rank_of_gram(gram)


def stable_rank_of_gram(gram: Float[Tensor, "*e d d"]) -> Float[Tensor, "*e"]:
    """The same from A'A: its trace over its largest eigenvalue, in float64."""
    gram = gram.to(torch.float64)
    return gram.diagonal(dim1=-2, dim2=-1).sum(-1) / torch.linalg.eigvalsh(gram)[..., -1]
