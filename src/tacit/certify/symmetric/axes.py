r"""Axes along which a net is nearly a sum of functions of one coordinate each.

A purified neuron is nearly parallel to one feature (allenzhu2020, Theorem 5.3), and features are nearly
orthogonal. With orthonormal axes u_j and each neuron given to one of them,

    w_i = a_i u_j(i) + rest_i,    rest_i orthogonal to u_j(i).

Any orthonormal axes are sound; good ones leave short rests. Neurons are clustered by their cosine, heaviest
first; then each goes to the axis where it is longest, and the axes turn to where sum_i <w_i, a_i u_j(i)> is
largest (the polar factor), in turns.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.attack.norms import Norm
from tacit.base.linalg import unit_rows

ALIKE = 0.5  # cosine of two neurons of one cluster
ROUNDS = 4  # of assigning and turning
LIGHT = 1e-3  # of the heaviest neuron: lighter ones found no cluster
BLOCK = 64  # neurons that are compared with all others at once


@dataclass(frozen=True)
class Axes:
    """u (D, D), orthonormal rows; of each neuron its axis, a and rest; `*_dual` and `reach` are dual norms."""

    u: Float[Tensor, "D D"]
    reach: Float[Tensor, " D"]
    group: Int[Tensor, " h"]
    along: Float[Tensor, " h"]
    rest: Float[Tensor, "h D"]
    rest_dual: Float[Tensor, " h"]
    w_dual: Float[Tensor, " h"]


def axes_of(w: Float[Tensor, "h D"], u: Float[Tensor, "D D"], norm: Norm) -> Axes:
    """Each neuron with the axis where it is longest."""
    group, along = longest(w, u)
    rest = w - along.unsqueeze(1) * u[group]
    return Axes(u, norm.dual(u), group, along, rest, norm.dual(rest), norm.dual(w))


def found_axes(w: Float[Tensor, "h D"]) -> Float[Tensor, "D D"]:
    """Orthonormal axes near the directions of the neurons."""
    sums = clusters(w)
    u = orthonormal(sums)
    for _ in range(ROUNDS):
        group, along = longest(w, u[: len(sums)])
        u = orthonormal(torch.zeros_like(sums).index_add_(0, group, along.unsqueeze(1) * w))
    return u


def longest(
    w: Float[Tensor, "h D"], u: Float[Tensor, "q D"]
) -> tuple[Int[Tensor, " h"], Float[Tensor, " h"]]:
    """Of each neuron the axis where |<w_i, u_j>| is largest, and <w_i, u_j>."""
    inner = w @ u.T
    group = inner.abs().argmax(1)
    return group, inner.gather(1, group.unsqueeze(1)).squeeze(1)


def clusters(w: Float[Tensor, "h D"]) -> Float[Tensor, "q D"]:
    """Sums of neurons alike up to sign; at least one and at most D of them."""
    size = w.norm(dim=1)
    heavy = (size >= LIGHT * size.max()).nonzero().squeeze(1)
    heavy = heavy[size[heavy].argsort(descending=True, stable=True)]
    held = w[heavy]
    unit = unit_rows(held)[0]
    free, sums = torch.ones_like(heavy, dtype=torch.bool), list[Tensor]()
    while bool(free.any()) and len(sums) < w.shape[1]:
        block = free.nonzero().squeeze(1)[:BLOCK]
        for first, cosine in zip(block.tolist(), unit[block] @ unit.T, strict=True):
            if not free[first] or len(sums) == w.shape[1]:
                continue
            mine = free & (cosine.abs() >= ALIKE)
            mine[first] = True
            sums.append(cosine[mine].sign() @ held[mine])
            free &= ~mine
    return torch.stack(sums)


def orthonormal(rows: Float[Tensor, "q D"]) -> Float[Tensor, "D D"]:
    """The orthonormal rows nearest to q <= D directions (the polar factor), completed to a basis."""
    left, _, right = torch.linalg.svd(rows, full_matrices=True)
    return torch.cat([left @ right[: len(rows)], right[len(rows) :]])
