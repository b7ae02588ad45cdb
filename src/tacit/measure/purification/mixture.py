r"""A neuron as a pure feature and a mixture of all others (allenzhu2020, Theorem 5.2, equations (5.1) and (6.1)).

    w_i = alpha_i w*_j M_j + sum_{j' != j} beta_ij' w*_j' M_j' + rest,      j the feature of neuron i

The coordinates of w_i in the dictionary are those of least squares, M^+ w_i: inner products where M is unitary.
The rest lies outside the span of M (0 where D >= d). The theorem says that beta is of order k/d on average.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.errors import CallError

HAIR = 1e-12  # inner products of columns that count as orthonormal


@dataclass(frozen=True)
class Mixture:
    """feature (h,), alpha (h,), beta (h, D) with 0 in the place of the feature, the length of the rest (h,).

    `dense` (h,) is the mean of beta over the other features, `along` (h,) the sum of w*_j'^2 beta_ij', which for
    unitary M is <mixture, M w*>: what a perturbation along M w* meets.
    """

    feature: Int[Tensor, " h"]
    alpha: Float[Tensor, " h"]
    beta: Float[Tensor, "h D"]
    dense: Float[Tensor, " h"]
    along: Float[Tensor, " h"]
    rest: Float[Tensor, " h"]


def coordinates(rows: Float[Tensor, "n e"], M: Float[Tensor, "d D"]) -> Float[Tensor, "n D"]:
    """M^+ row, of each row: the shortest coefficients whose combination of features is nearest to it. float64."""
    if rows.shape[-1] != M.shape[0]:
        raise CallError(
            f"rows of dimension {rows.shape[-1]} for a dictionary of dimension {M.shape[0]}: they must agree"
        )
    M = M.to(rows.device, torch.float64)
    return rows.to(torch.float64) @ (M if orthonormal_columns(M) else torch.linalg.pinv(M).T)


def orthonormal_columns(M: Float[Tensor, "d D"]) -> bool:
    """Whether M^T M = I up to rounding: M^+ is M^T then, and no singular values are needed."""
    gram = M.T @ M
    return bool((gram.diagonal_scatter(gram.diagonal() - 1).abs() <= HAIR).all())


def mixture(
    w: Float[Tensor, "h d"],
    M: Float[Tensor, "d D"],
    w_star: Float[Tensor, " D"],
    feature: Int[Tensor, " h"] | None = None,
) -> Mixture:
    """The decomposition; `feature` is each neuron's largest coordinate unless it is given."""
    found = coordinates(w, M)
    star = w_star.to(found)
    if not bool((star != 0).all()):
        raise CallError("w* has a 0: alpha and beta are multiples of w*_j M_j")
    rest = (w.to(torch.float64) - found @ M.to(found).T).norm(dim=1)
    own = found.abs().argmax(1) if feature is None else feature
    scaled = found / star
    alpha = scaled.gather(1, own.unsqueeze(1)).squeeze(1)
    beta = scaled.scatter(1, own.unsqueeze(1), 0.0)
    others = max(found.shape[1] - 1, 1)
    return Mixture(own, alpha, beta, beta.sum(1) / others, beta @ star.square(), rest)
