r"""The symmetric net with pre-activation noise (allenzhu2020, Section 4, with a_i = 1 as the paper fixes it).

    f(x; rho) = sum_i [ relu(<w_i, x> - b_i + rho_i) - relu(-<w_i, x> - b_i + rho_i) ],    rho_i ~ N(0, sigma^2)

A net is the expectation over rho, in closed form; `sampled` draws rho as the paper's algorithms do. It is odd.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.errors import CallError
from tacit.nets.kinds import register
from tacit.nets.smoothed import pair_slope, pair_value
from tacit.nets.tensors import TensorNet
from tacit.nets.two_layer import TwoLayerNet


@dataclass(frozen=True)
class SymmetricNet(TensorNet):
    """w (..., h, D), biases b (..., h) >= 0, noise sigma >= 0 before the activation."""

    w: Float[Tensor, "*e h D"]
    b: Float[Tensor, "*e h"]
    sigma: float = 0.0

    def __post_init__(self) -> None:
        if not (self.sigma >= 0 and math.isfinite(self.sigma)):
            raise CallError(f"sigma={self.sigma:g}: the noise has a finite standard deviation >= 0")

    def __call__(self, x: Float[Tensor, "*x n D"]) -> Float[Tensor, "*e n"]:
        """E f over the noise; x without ensemble dimensions is shown to every member."""
        return self.hidden(x).sum(-1)

    def before(self, x: Float[Tensor, "*x n D"]) -> Float[Tensor, "*e n h"]:
        """<w_i, x>."""
        return x @ self.w.mT

    def hidden(self, x: Float[Tensor, "*x n D"]) -> Float[Tensor, "*e n h"]:
        """What each neuron adds, in expectation."""
        return pair_value(self.before(x), self.b.unsqueeze(-2), self.sigma)

    def slopes(self, x: Float[Tensor, "*x n D"]) -> Float[Tensor, "*e n h"]:
        """The derivative of what each neuron adds in <w_i, x>: df/dx = sum_i slope_i w_i, df/dw_i = slope_i x."""
        return pair_slope(self.before(x), self.b.unsqueeze(-2), self.sigma)

    def sampled(
        self, x: Float[Tensor, "*x n D"], generator: torch.Generator
    ) -> Float[Tensor, "*e n"]:
        """f(x; rho) with fresh noise for each point and neuron, the same in both of its halves."""
        z = self.before(x)
        rho = torch.randn(z.shape, generator=generator, dtype=z.dtype, device=generator.device)
        shift = self.sigma * rho.to(z.device) - self.b.unsqueeze(-2)
        return ((z + shift).clamp_min(0) - (shift - z).clamp_min(0)).sum(-1)

    def two_layer(self) -> TwoLayerNet:
        """The net without its noise as a ReLU net: neurons w_i and -w_i, outer weights +1 and -1."""
        w = torch.cat([self.w, -self.w], -2)
        v = torch.cat([torch.ones_like(self.b), -torch.ones_like(self.b)], -1)
        return TwoLayerNet(w, v, -torch.cat([self.b, self.b], -1))


def symmetric_start(
    d: int,
    width: int,
    sd: float,
    bias: float,
    generator: torch.Generator,
    *,
    sigma: float = 0.0,
    dtype: torch.dtype = torch.float64,
) -> SymmetricNet:
    """w_i ~ N(0, sd^2 I) and one bias for all (Section 4.1: bias = Theta(sd sqrt(log d)))."""
    if not (sd > 0 and bias >= 0 and math.isfinite(sd + bias)):
        raise CallError(f"sd={sd:g}, bias={bias:g}: the first is positive, the second >= 0")
    w = torch.randn(width, d, generator=generator, dtype=torch.float64, device=generator.device)
    w = (sd * w).to(dtype)
    return SymmetricNet(w, w.new_full((width,), bias), sigma)


def relu_structure(net: SymmetricNet) -> TwoLayerNet | None:
    """Where there is no noise the net is a ReLU net, and is certified as one."""
    return net.two_layer() if net.sigma == 0 else None


register(
    SymmetricNet,
    name="symmetric",
    target="tacit.attack.symmetric:SymmetricTarget",
    landmarks="tacit.attack.symmetric:both_signs",
    certificate="tacit.certify.radius:smoothed_radius",
    structure=relu_structure,
    trainee="tacit.train.descent.checks:tensor_trainee",
    trained=("w",),
)
