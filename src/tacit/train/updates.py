"""How a parameter moves, given its gradient: plain descent, and Adam (Kingma & Ba 2015, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

Optimizer = Literal["sgd", "adam"]

BETAS, EPSILON = (0.9, 0.999), 1e-8  # Adam's own


@runtime_checkable
class Update(Protocol):
    """Moves a parameter in place, given its name, its gradient and the step k = 1, 2, ..."""

    def __call__(self, name: str, parameter: Tensor, gradient: Tensor, k: int) -> None:
        """One step."""


@dataclass
class Sgd:
    """Against the gradient."""

    step: float

    def __call__(self, name: str, parameter: Tensor, gradient: Tensor, k: int) -> None:  # noqa: ARG002
        """One step."""
        parameter.sub_(gradient, alpha=self.step)


@dataclass
class Adam:
    """Against the running mean of the gradient over the root of that of its square."""

    step: float
    means: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def __call__(self, name: str, parameter: Tensor, gradient: Tensor, k: int) -> None:
        """One step."""
        if name not in self.means:
            self.means[name] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        first, second = self.means[name]
        first.lerp_(gradient, 1 - BETAS[0])
        second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        size = (second / (1 - BETAS[1] ** k)).sqrt_().add_(EPSILON)
        parameter.addcdiv_(first, size, value=-self.step / (1 - BETAS[0] ** k))


def updater(optimizer: Optimizer, step: float) -> Update:
    """A fresh one, by name."""
    return Sgd(step) if optimizer == "sgd" else Adam(step)
