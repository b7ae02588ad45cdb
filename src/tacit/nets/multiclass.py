"""The multi-class net of li2025 (Section 4.2) and its reduction to two classes.

f_j(x) = (1/h) sum_r relu(<w_jr, x>)^p / ||w_jr||^(p-1),   P = softmax(f),
binary(x) = sum_{J+} P_j(x) - sum_{J-} P_j(x) = tanh(log_odds(x) / 2)

The paper has p = 1. Other powers are min2024's activation in the paper's net: f is 1-homogeneous in w at every p.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base.linalg import power
from tacit.errors import CallError, RunError
from tacit.nets.kinds import register
from tacit.nets.saved import from_fields
from tacit.nets.tensors import TensorNet


@dataclass(frozen=True)
class MultiClassNet(TensorNet):
    """w (..., k, h, D): h neurons for each of k subclasses; labels (k,) of +-1 say whose they are; p >= 1."""

    w: Float[Tensor, "*e k h D"]
    labels: Float[Tensor, " k"]
    p: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.p < math.inf:
            raise CallError(f"p={self.p}: PolyReLU needs a finite p >= 1 (p = 1 is ReLU)")

    def logits(self, x: Float[Tensor, "*x n D"]) -> Float[Tensor, "*e n k"]:
        """f_j(x), j = 1..k."""
        rows = self.w.flatten(-3, -2)
        hidden = (x @ rows.mT).clamp_min(0)
        if self.p > 1:  # ||w|| (z/||w||)^p: powers of small weights would underflow
            size = rows.norm(dim=-1).unsqueeze(-2)
            hidden = size * power(hidden / torch.where(size > 0, size, 1.0), self.p)
        return hidden.unflatten(-1, self.w.shape[-3:-1]).mean(-1)

    def __call__(self, x: Float[Tensor, "*x n D"]) -> Float[Tensor, "*e n"]:
        """The log-odds of the positive class: the sign of `binary`, and it does not saturate."""
        return log_odds(self.logits(x), self.labels)

    def binary(self, x: Float[Tensor, "*x n D"]) -> Float[Tensor, "*e n"]:
        """F^binary of li2025: P(positive) - P(negative), in [-1, 1]."""
        return torch.tanh(self(x) / 2)


def log_odds(logits: Float[Tensor, "*e n k"], labels: Float[Tensor, " k"]) -> Float[Tensor, "*e n"]:
    """log sum_{J+} exp f_j - log sum_{J-} exp f_j."""
    return torch.logsumexp(logits[..., labels > 0], -1) - torch.logsumexp(
        logits[..., labels < 0], -1
    )


def loaded(cls: type, tensors: dict[str, Tensor], meta: dict[str, str]) -> MultiClassNet:
    """A net of a file, whose labels may be whole numbers."""
    if "labels" in tensors and "w" in tensors and not tensors["labels"].is_complex():
        signs = sorted(set(tensors["labels"].flatten().tolist()))
        tensors = tensors | {"labels": tensors["labels"].to(tensors["w"].dtype)}
        if signs != [-1, 1] and tensors["labels"].shape == tensors["w"].shape[-3:-2]:
            raise RunError(
                f"tensor 'labels' holds {signs[:6]}; the labels of subclasses are -1 and +1, both of them there"
            )
    return from_fields(cls, tensors, meta)


register(
    MultiClassNet,
    name="multi_class",
    load=loaded,
    certificate="tacit.certify.radius:many_class_radius",
    trainee="tacit.train.descent.checks:multi_class_trainee",
    hidden_weights="tacit.auditing.averaging:multi_class_neurons",
)
