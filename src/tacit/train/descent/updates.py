"""How a parameter moves, given its gradient: plain descent, and Adam (Kingma & Ba 2015, Algorithm 1)."""

from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.optim.adam import adam

Optimizer = Literal["sgd", "adam"]

BETAS, EPSILON = (0.9, 0.999), 1e-8  # Adam's own


@runtime_checkable
class Update(Protocol):
    """Moves the parameters of a net in place, given its name and their gradients."""

    def __call__(self, name: str, parameters: list[Tensor], gradients: list[Tensor]) -> None:
        """One step."""

    def state(self) -> dict[str, Tensor]:
        """What it remembers of its steps, by names that `restore` knows."""

    def restore(self, state: dict[str, Tensor], device: torch.device) -> None:
        """Go on from there; other names in `state` are left alone."""


@dataclass
class Sgd:
    """Against the gradient."""

    step: float

    def __call__(self, name: str, parameters: list[Tensor], gradients: list[Tensor]) -> None:  # noqa: ARG002
        """One step."""
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.sub_(gradient, alpha=self.step)

    def state(self) -> dict[str, Tensor]:
        """Nothing."""
        return {}

    def restore(self, state: dict[str, Tensor], device: torch.device) -> None:
        """Nothing."""


@dataclass
class Adam:
    """Against the running mean of the gradient over the root of that of its square; it counts its own steps.

    torch's fused kernel reads and writes everything once, where seven operations wait for the memory.
    """

    step: float
    means: dict[str, tuple[list[Tensor], list[Tensor], list[Tensor]]] = field(default_factory=dict)

    def __call__(self, name: str, parameters: list[Tensor], gradients: list[Tensor]) -> None:
        """One step."""
        if name not in self.means:
            first, second = ([torch.zeros_like(t) for t in parameters] for _ in range(2))
            # float32, whatever the user's default: the kernel reads them so
            counts = [torch.zeros((), dtype=torch.float32, device=t.device) for t in parameters]
            self.means[name] = first, second, counts
        first, second, counts = self.means[name]
        pairs = zip(parameters, gradients, strict=True)
        # the kernel goes through memory as it lies: autograd gives expanded and transposed gradients too
        laid = [g if g.stride() == t.stride() else torch.empty_like(t).copy_(g) for t, g in pairs]
        adam(
            parameters, laid, first, second, [], counts,
            fused=True, amsgrad=False, maximize=False, weight_decay=0.0,
            beta1=BETAS[0], beta2=BETAS[1], eps=EPSILON, lr=self.step,
        )  # fmt: skip

    def state(self) -> dict[str, Tensor]:
        """Both means and the count of steps, of every parameter: `adam/NET/WHICH/PARAMETER`."""
        return {
            f"adam/{name}/{which}/{i}": t
            for name, held in self.means.items()
            for which, parts in enumerate(held)
            for i, t in enumerate(parts)
        }

    def restore(self, state: dict[str, Tensor], device: torch.device) -> None:
        """Go on from there."""
        self.means = {}
        keys = [key.split("/") for key in state if key.startswith("adam/")]
        for _, name, which, i in sorted(keys, key=lambda key: int(key[3])):
            held = self.means.setdefault(name, ([], [], []))
            held[int(which)].append(state[f"adam/{name}/{which}/{i}"].to(device, copy=True))


def updater(optimizer: Optimizer, step: float) -> Update:
    """A fresh one, by name."""
    return Sgd(step) if optimizer == "sgd" else Adam(step)
