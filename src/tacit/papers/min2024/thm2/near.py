"""Neighbours of a direction at one cosine, and how fast they come closer: the slice that Theorem 2 is about.

The rates and their units are those of `thm2.py` (min2024, Appendix D.4).
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base.linalg import span_axes
from tacit.data import orthogonal_centres
from tacit.measure import alignment_field

ASCENT_STEPS = 100

About = Literal["average", "centre"]
Space = Literal["span", "all"]
ABOUT: tuple[About, ...] = ("average", "centre")
SPACES: tuple[Space, ...] = ("span", "all")


@dataclass(frozen=True)
class Near:
    """Neighbours of the unit `target`; own centres have label +1.

    `within`: orthonormal rows that span where w may lie, those in the centres' span first.
    """

    centres: Float[Tensor, "K D"]
    labels: Float[Tensor, " K"]
    target: Float[Tensor, " D"]
    within: Float[Tensor, "r D"]

    @property
    def own(self) -> int:
        """How many centres the neuron's own class has."""
        return int((self.labels > 0).sum())

    def neighbour(
        self, lean: Float[Tensor, "*m D"], delta: float | Float[Tensor, "*m 1"]
    ) -> Float[Tensor, "*m D"]:
        """The unit w at cosine 1 - delta that leans from the target towards the unit `lean`."""
        c = 1 - delta
        return c * self.target + (delta * (1 + c)) ** 0.5 * lean

    def leans(self, n: int, generator: torch.Generator) -> Float[Tensor, "n D"]:
        """n unit directions, uniform among those of `within` orthogonal to the target."""
        drawn = torch.randn(n, len(self.within), generator=generator, dtype=torch.float64)
        lean = drawn @ self.within
        lean = lean - (lean @ self.target).unsqueeze(1) * self.target
        return lean / lean.norm(dim=1, keepdim=True)

    def rate(self, w: Float[Tensor, "m D"], p: float, delta: float) -> Float[Tensor, " m"]:
        """d/dt cos(w, target) for unit w at cosine 1 - delta, in the unit of this module."""
        field = alignment_field(w, self.centres, self.labels, p)
        moved = field @ self.target - (1 - delta) * (field * w).sum(1)
        return moved / self.unit(p, torch.tensor(delta, dtype=torch.float64))

    def unit(self, p: float, delta: Float[Tensor, "*m"]) -> Float[Tensor, "*m"]:
        """p zeta sum_k <x_k, t> (c <x_k, t>)^(p-1) over the centres that the target sees."""
        seen = self.centres @ self.target
        seen = seen[seen > 1e-12]
        return p * delta * (2 - delta) * (1 - delta) ** (p - 1) * (seen**p).sum()


def near(K: int, own: int, D: int, about: About, space: Space) -> Near:
    """The first `own` of K centres are the neuron's class; w in their span, or anywhere."""
    centres = orthogonal_centres(K, D)
    labels = torch.where(torch.arange(K) < own, 1.0, -1.0).double()
    target = centres[:own].sum(0) / math.sqrt(own) if about == "average" else centres[0]
    within = centres[:own] if space == "span" else torch.eye(D, dtype=torch.float64)
    return Near(centres, labels, target, within)


def extremes(
    where: Near, p: float, delta: Float[Tensor, " m"], starts: int, generator: torch.Generator
) -> tuple[Float[Tensor, "m D"], Float[Tensor, "m D"]]:
    """The neighbours with the lowest and the highest rate found, for each delta.

    Ascent on the sphere of leans along the rate's own gradient, from `starts` random leans and from those
    towards and away from every centre; a step that does not improve is undone and shortened.
    """
    # the rate sees w through the centres alone: their span and one direction more are enough
    few = where.within[: len(where.centres) + 1]
    axes = span_axes(few - (few @ where.target).unsqueeze(1) * where.target)
    first = torch.cat([where.leans(starts, generator) @ axes, *signed_centres(where, axes)])
    first = first / first.norm(dim=1, keepdim=True)
    sees, seen = where.centres @ axes, where.centres @ where.target
    c = (1 - delta)[None, :, None, None]
    tilt = ((1 - c) * (1 + c)).sqrt()
    side = torch.tensor([-1.0, 1.0], dtype=torch.float64)[:, None, None, None]
    lean = first.expand(2, len(delta), *first.shape).clone()
    angle = torch.full((*lean.shape[:-1], 1), 0.3, dtype=torch.float64)

    def value(lean: Tensor) -> tuple[Tensor, Tensor]:
        """The rate to be raised and its gradient, as functions of the lean."""
        z = c * seen + tilt * (lean @ sees.T)
        power = (z >= 0) * z.clamp_min(0) ** (p - 1)
        rate = (side * where.labels * (seen - c * z) * power).sum(-1, keepdim=True)
        # the floor keeps z^(p-2) finite for p < 2; only its direction matters
        slope = (p - 1) * seen * z.clamp_min(1e-12) ** (p - 2) - c * p * power
        return rate, (side * where.labels * (z > 0) * slope) @ sees

    best, slope = value(lean)
    for _ in range(ASCENT_STEPS):
        along = slope - (slope * lean).sum(-1, keepdim=True) * lean
        along = along / along.norm(dim=-1, keepdim=True).clamp_min(1e-300)
        tried = angle.cos() * lean + angle.sin() * along
        tried = tried / tried.norm(dim=-1, keepdim=True).clamp_min(1e-300)
        found, turned = value(tried)
        better = found > best
        lean, best = torch.where(better, tried, lean), torch.where(better, found, best)
        slope = torch.where(better, turned, slope)
        angle = torch.where(better, 1.5 * angle, 0.4 * angle).clamp(1e-12, 1.0)
    chosen = best.squeeze(-1).argmax(-1)
    low, high = (
        where.neighbour(lean[s, torch.arange(len(delta)), chosen[s]] @ axes.T, delta.unsqueeze(1))
        for s in (0, 1)
    )
    return low, high


def signed_centres(
    where: Near, axes: Float[Tensor, "D r"]
) -> tuple[Float[Tensor, "k r"], Float[Tensor, "k r"]]:
    """The leans towards each centre, and away from it, where they have a part across the target."""
    towards = where.centres @ axes
    length = towards.norm(dim=1, keepdim=True)
    towards = (towards / length)[length.squeeze(1) > 1e-9]
    return towards, -towards
