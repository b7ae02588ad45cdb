r"""What a fitted classifier computes, from the user's X to one score a class.

The net reads X itself, as released or as written (`nets.poly_relu`): it holds the centre.

Where a class has several subclasses its score is log sum exp of their logits: softmax of the scores is then the
sum of the subclasses' probabilities (li2025, Section 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tacit.nets import PolyReLUNet


@dataclass(frozen=True)
class Head:
    """A net with K outputs, and the class 0..C-1 of each."""

    net: PolyReLUNet
    owner: Int64[Tensor, " K"]

    @property
    def whole(self) -> bool:
        """Is every class one output?"""
        return len(self.owner) == int(self.owner.max()) + 1

    def scores(self, x: Float[Tensor, "n D"]) -> Float[Tensor, "n C"]:
        """One number a class."""
        return class_scores(self.net(x), self.owner)

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> Head:
        """The same on another device, and in another type where one is given."""
        tensors, _ = self.net.state()
        moved: dict[str, Any] = {name: t.to(device, dtype) for name, t in tensors.items()}
        return Head(replace(self.net, **moved), self.owner.to(device))


def class_scores(logits: Float[Tensor, "n K"], owner: Int64[Tensor, " K"]) -> Float[Tensor, "n C"]:
    """log sum exp over the outputs of each class."""
    C = int(owner.max()) + 1
    if len(owner) == C:
        return logits
    return torch.stack([logits[:, owner == c].logsumexp(1) for c in range(C)], 1)
