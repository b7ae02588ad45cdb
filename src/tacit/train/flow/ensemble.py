"""Records of tensors whose first dimension is the members of an ensemble."""

from dataclasses import fields
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Record = TypeVar("Record")
Members = Float[Tensor, " E"]  # one number a member


class Ensemble:
    """A frozen dataclass of tensors and of such dataclasses that can be cut down to some of its members."""

    def members(self: Record, index: Tensor) -> Record:
        """Some of the members: a mask, or their numbers."""
        names: Any = fields(self)  # type: ignore[arg-type]
        parts = (getattr(self, name.name) for name in names)
        return type(self)(
            *(p.members(index) if isinstance(p, Ensemble) else p[index] for p in parts)
        )


def chosen(take: Bool[Tensor, " E"], one: Record, other: Record) -> Record:
    """Member by member: the one where `take`, the other elsewhere."""
    if bool(take.all()):
        return one
    parts: Any = fields(one)  # type: ignore[arg-type]
    mixed = []
    for part in parts:
        mine, theirs = getattr(one, part.name), getattr(other, part.name)
        mixed.append(torch.where(take.reshape(-1, *(1,) * (mine.dim() - 1)), mine, theirs))
    return type(one)(*mixed)
