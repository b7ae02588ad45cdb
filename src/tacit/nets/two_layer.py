"""Two-layer nets as plain tensors, with any leading ensemble dimensions.

    f(x) = sum_j v_j relu(<w_j, x> + b_j)^p / ||w_j||^(p-1)          (min2024, Section 2)

p = 1 is a ReLU net, p > 1 a PolyReLU net (the papers' pReLU; torch.nn.PReLU is something else).
A neuron with w_j = 0 contributes nothing where p > 1 (the limit), and v_j relu(b_j) where p = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.errors import CallError
from tacit.nets.kinds import register
from tacit.nets.tensors import TensorNet


@dataclass(frozen=True)
class TwoLayerNet(TensorNet):
    """w (..., h, D), v (..., h), b (..., h) or None, p >= 1.

    `fixed_v`: the second layer is not trained (li2025: fixed at +-1/m).
    """

    w: Float[Tensor, "*e h D"]
    v: Float[Tensor, "*e h"]
    b: Float[Tensor, "*e h"] | None = None
    p: float = 1.0
    fixed_v: bool = False

    def __post_init__(self) -> None:
        if not self.p >= 1:
            raise CallError(f"p={self.p}: PolyReLU needs p >= 1 (p = 1 is ReLU)")

    def __call__(self, x: Float[Tensor, "*x n D"]) -> Float[Tensor, "*e n"]:
        """f at each point; x without ensemble dimensions is shown to every member."""
        return torch.einsum("...nh,...h->...n", self.hidden(x), self.v)

    def hidden(self, x: Float[Tensor, "*x n D"]) -> Float[Tensor, "*e n h"]:
        """What each neuron passes on: relu(<w_j, x> + b_j)^p / ||w_j||^(p-1)."""
        z = x @ self.w.mT
        if self.b is not None:
            z = z + self.b.unsqueeze(-2)
        active = z.clamp_min(0)
        if self.p == 1:
            return active
        norm = self.w.norm(dim=-1).unsqueeze(-2)
        # ||w|| (z/||w||)^p: powers of weights of 1e-100 would underflow
        along = active / torch.where(norm > 0, norm, torch.ones_like(norm))
        return torch.where(norm > 0, norm * along**self.p, 0.0)


register(
    TwoLayerNet,
    name="two_layer",
    target="tacit.attack.target:TwoLayerTarget",
    landmarks="tacit.attack.ball.starts:heaviest_neurons",
    shortest="tacit.attack.shortest.minimal:by_structure",
    certificate="tacit.certify.radius:two_layer_radius",
    ties=True,
    relaxed="tacit.certify.crown.chain:sequential_of",
    trainee="tacit.train.descent.checks:two_layer_trainee",
    hidden_weights="tacit.auditing.averaging:two_layer_neurons",
)
