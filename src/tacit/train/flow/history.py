"""What is remembered of a flow: a bounded number of moments, each with all h neurons.

Directions are kept as cosines with the directions that are watched; watching the axes keeps the directions
themselves. Merged neurons show the direction of their group and their share of its mass.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class History:
    """Moments of one member, oldest first. Time and masses as natural logarithms: they reach e^1000, e^-300."""

    log_time: Float[Tensor, " frames"]
    log_loss: Float[Tensor, " frames"]
    margin: Float[Tensor, " frames"]
    residual: Float[Tensor, " frames"]
    log_mass: Float[Tensor, "frames h"]
    sign: Float[Tensor, "frames h"]
    cosines: Float[Tensor, "frames h m"]


class Recorder:
    """Collects moments; where a number of them is asked for, every second one goes when it is twice exceeded."""

    def __init__(self, frames: int | None) -> None:
        self.frames = frames
        self.stride = 1
        self.seen = 0
        self.held: list[tuple[Tensor, ...]] = []

    def due(self) -> bool:
        """Whether this moment is one to keep; asked once a moment."""
        self.seen += 1
        return self.frames is None or (self.seen - 1) % self.stride == 0

    def add(self, *moment: Tensor) -> None:
        """Keep a moment."""
        self.held.append(tuple(part.detach().double().cpu().clone() for part in moment))
        if self.frames is not None and len(self.held) >= 2 * self.frames:
            self.held = self.held[::2]
            self.stride *= 2

    def end(self, *moment: Tensor) -> None:
        """Keep the last moment, due or not, once."""
        if not self.held or float(self.held[-1][0]) != float(moment[0]):
            self.held.append(tuple(part.detach().double().cpu().clone() for part in moment))

    def history(self) -> History:
        """All that was kept."""
        return History(*(torch.stack(parts) for parts in zip(*self.held, strict=True)))
