"""A radius as an interval: certified from below, attacked from above."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

ONE_NUMBER = 1e-7  # relative


@dataclass(frozen=True)
class Radii:
    """The radius of each point: 0 where it is broken already, inf where nothing breaks it.

    No perturbation shorter than `lower` breaks the point; some perturbation of length `upper` does.
    """

    lower: Float[Tensor, "*e n"]
    upper: Float[Tensor, "*e n"]

    @property
    def exact(self) -> Bool[Tensor, "*e n"]:
        """Where the two ends are one number, up to what a proof in floating point takes off."""
        return self.lower >= self.upper * (1 - ONE_NUMBER)

    @property
    def middle(self) -> Float[Tensor, "*e n"]:
        """The middle of the interval (the radius itself where it is exact)."""
        return torch.where(self.exact, self.upper, (self.lower + self.upper) / 2)


def exactly(radius: Float[Tensor, "*e n"]) -> Radii:
    """A radius known exactly."""
    return Radii(radius, radius)
