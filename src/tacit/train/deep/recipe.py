"""What a training of a deep net is made of, as data: epochs, steps, schedule, augmentation, attacker."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from tacit.attack.inner import Ball
from tacit.errors import CallError

Schedule = Literal["cosine", "constant", "drops"]


@dataclass(frozen=True)
class Recipe:
    """SGD on the cross-entropy of batches in a fresh order each epoch (a rest smaller than a batch is left out).

    The step size rises linearly over `warmup` epochs, then stays (`constant`), falls to 0 as half a cosine, or
    falls to a tenth after each epoch of `drops`. Images are shifted by up to `crop` pixels (zeros come in) and
    mirrored with chance 1/2 where `flip`. With a `ball` every batch is attacked first; its radius grows linearly
    over `growth` epochs. `decay` (weight decay) is on all parameters, as torch has it.
    """

    epochs: int
    batch: int = 128
    step: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    decay: float = 1e-4
    schedule: Schedule = "cosine"
    warmup: float = 0.0
    drops: tuple[int, ...] = ()
    crop: int = 4
    flip: bool = True
    ball: Ball | None = None
    growth: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch"):
            if getattr(self, name) < 1:
                raise CallError(f"{name}={getattr(self, name)}: it is at least 1")
        if not (math.isfinite(self.step) and self.step > 0):
            raise CallError(f"step={self.step}: it is a finite positive number")
        for name in ("momentum", "decay", "warmup", "crop", "growth"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise CallError(f"{name}={value}: it is a finite number >= 0")
        if self.momentum >= 1 or (self.nesterov and not self.momentum):
            raise CallError(f"momentum={self.momentum}: it is below 1, and above 0 for Nesterov's")
        if self.schedule not in get_args(Schedule):
            raise CallError(f"schedule={self.schedule!r}: one of {', '.join(get_args(Schedule))}")
        if bool(self.drops) != (self.schedule == "drops"):
            raise CallError(f"drops={self.drops}: the schedule 'drops' has some, others have none")

    def step_sizes(self, count: int) -> list[float]:
        """The step size of each of all steps, `count` an epoch."""
        return [
            self.step * self._share((k + 1) / count, k / count) for k in range(self.epochs * count)
        ]

    def _share(self, after: float, before: float) -> float:
        """The part of the full step size, after and before that many epochs."""
        if after < self.warmup:
            return after / self.warmup
        if self.schedule == "drops":
            return 0.1 ** sum(before >= epoch for epoch in self.drops)
        if self.schedule == "constant":
            return 1.0
        done = (before - self.warmup) / max(self.epochs - self.warmup, 1e-9)
        return (1 + math.cos(math.pi * min(max(done, 0.0), 1.0))) / 2

    def radii(self, count: int) -> list[float]:
        """The part of the full radius at each of all steps."""
        grow = self.growth * count
        return [min(1.0, (k + 1) / grow) if grow else 1.0 for k in range(self.epochs * count)]
