r"""Class means or subclass means: what neurons point at, and what features keep apart.

A neuron at the mean of m orthogonal subclasses of one length has cosine 1 with it and 1/sqrt(m) with the mean of
each subclass; one at a subclass mean the other way round (min2024, Section 3; li2025, Section 4).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tacit.base.linalg import unit_rows
from tacit.base.shapes import Index, Labels, Rows


@dataclass(frozen=True)
class Near:
    """Each neuron's largest cosine with a class mean, and with a subclass mean, averaged by mass; and how many
    subclasses each class has."""

    to_class: float
    to_subclass: float
    subclasses: tuple[int, ...]


def nearness(
    w: Float[Tensor, "h D"],
    mass: Float[Tensor, " h"],
    features: Rows,
    y: Labels,
    groups: Index,
) -> Near:
    """Of rows w with masses (shares, which sum to 1), among features with classes y and subclasses `groups`."""
    own, member = subclasses_of(y, groups)
    counts = tuple(int((own == label).sum()) for label in y.long().unique())
    class_means = means(features, y.long().unique(return_inverse=True)[1])
    to_class, to_subclass = (
        float(mass @ cosines(w, centres).amax(1))
        for centres in (class_means, means(features, member))
    )
    return Near(to_class, to_subclass, counts)


def subclass_share(features: Rows, y: Labels, groups: Index) -> float:
    """The part of the features' variance within classes that lies between subclasses, from 0 to 1.

    sum_i ||mean of i's subclass - mean of its class||^2 / sum_i ||x_i - mean of its class||^2. 0: a class is one
    cloud, its subclasses are averaged away; 1: a class is its subclasses and nothing else. nan for no variance.
    """
    classes = y.long().unique(return_inverse=True)[1]
    middle = means(features, classes)[classes]
    member = subclasses_of(y, groups)[1]
    between = (means(features, member)[member] - middle).square().sum()
    return float(between / (features - middle).square().sum())


def subclasses_of(y: Labels, groups: Index) -> tuple[Int64[Tensor, " g"], Index]:
    """The class of each subclass, and each point's subclass by its number among all."""
    pairs, member = torch.stack([y.long(), groups], 1).unique(dim=0, return_inverse=True)
    return pairs[:, 0], member


def means(features: Rows, member: Index) -> Float[Tensor, "g D"]:
    """The mean of each group."""
    count = int(member.max()) + 1
    sums = torch.zeros(count, features.shape[1], dtype=features.dtype).index_add(
        0, member, features
    )
    return sums / member.bincount(minlength=count).unsqueeze(1)


def cosines(w: Float[Tensor, "h D"], centres: Float[Tensor, "g D"]) -> Float[Tensor, "h g"]:
    """cos(w_j, c_k); 0 where either is zero."""
    return unit_rows(w)[0] @ unit_rows(centres)[0].T
