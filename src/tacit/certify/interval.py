"""A radius as an interval: certified from below, attacked from above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.base.shapes import Outputs
from tacit.errors import CallError

ONE_NUMBER = 1e-7  # relative


@dataclass(frozen=True)
class Radii:
    """The radius of each point: 0 where it is broken already, inf where nothing breaks it.

    No perturbation shorter than `lower` breaks the point; some perturbation of length `upper` does: `delta`,
    where the method keeps it (0 where `upper` is 0 or inf).
    """

    lower: Outputs
    upper: Outputs
    delta: Float[Tensor, "*e n D"] | None = None

    @property
    def exact(self) -> Bool[Tensor, "*e n"]:
        """Where the two ends are one number, up to what a proof in floating point takes off."""
        return self.lower >= self.upper * (1 - ONE_NUMBER)

    @property
    def middle(self) -> Outputs:
        """The middle of the interval (the radius itself where it is exact)."""
        return torch.where(self.exact, self.upper, (self.lower + self.upper) / 2)

    @property
    def breaking(self) -> Float[Tensor, "*e n D"]:
        """`delta`, asked of a method that keeps it."""
        if self.delta is None:
            raise CallError("these radii keep no perturbation: tacit.attack.minimal finds one")
        return self.delta

    def unless(self, broken: Bool[Tensor, "*e n"]) -> Radii:
        """0 where the point is broken already."""
        return Radii(*(torch.where(broken, 0.0, end) for end in (self.lower, self.upper)))


def exactly(radius: Outputs) -> Radii:
    """A radius known exactly."""
    return Radii(radius, radius)


def at_least(lower: Outputs) -> Radii:
    """A radius known from below alone."""
    return Radii(lower, torch.full_like(lower, torch.inf))


def between(lower: Outputs, upper: Outputs, delta: Float[Tensor, "*e n D"] | None = None) -> Radii:
    """The interval, its lower end no longer than what was seen to break: a proof may end a rounding above."""
    return Radii(torch.minimum(lower, upper), upper, delta)


def intersect(one: Radii, two: Radii) -> Radii:
    """What two methods say of the same points together; `delta` is the shorter, where both keep theirs."""
    delta = None
    if one.delta is not None and two.delta is not None:
        delta = torch.where((one.upper <= two.upper).unsqueeze(-1), one.delta, two.delta)
    return Radii(torch.maximum(one.lower, two.lower), torch.minimum(one.upper, two.upper), delta)


def stack(members: Sequence[Radii]) -> Radii:
    """The radii under each member of an ensemble, along a new first dimension; `delta` where all keep theirs."""
    deltas = [member.delta for member in members if member.delta is not None]
    return Radii(
        torch.stack([member.lower for member in members]),
        torch.stack([member.upper for member in members]),
        torch.stack(deltas) if len(deltas) == len(members) else None,
    )
