r"""Learners that are linear in what they train: the tangent kernel's features, and low-degree polynomials.

    tangent     p(x) = sum_i <x, v_i> E_rho( 1[<w_i, x> + rho_i >= b_i] + 1[-<w_i, x> + rho_i >= b_i] )
    polynomial  q(x) = sum_{e in degrees} sum_r u_er <a_r, x>^e

The first is Definition 5.5 of allenzhu2020, printed there with a minus between the indicators. That p would be
even in x, while the labels, and the net whose gradient it is (Fact A.1), are odd: the sign must be plus. The
second is for Corollary 5.7: a polynomial is a sum of powers of linear forms; with a_r the axes it is separable.
In both v or u is trained and the rest fixed, by `descend` with the logistic loss, clean or on moved points. The
linear learner is `Linear`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base.linalg import power
from tacit.errors import CallError
from tacit.nets.kinds import register
from tacit.nets.smoothed import pair_slope
from tacit.nets.tensors import TensorNet


@dataclass(frozen=True)
class TangentNet(TensorNet):
    """Fixed w (..., h, D), b (..., h) and noise sigma; trained v (..., h, D)."""

    w: Float[Tensor, "*e h D"]
    v: Float[Tensor, "*e h D"]
    b: Float[Tensor, "*e h"]
    sigma: float = 0.0

    def __post_init__(self) -> None:
        if not (self.sigma >= 0 and math.isfinite(self.sigma)):
            raise CallError(f"sigma={self.sigma:g}: the noise has a finite standard deviation >= 0")

    def __call__(self, x: Float[Tensor, "*x n D"]) -> Float[Tensor, "*e n"]:
        """p(x): odd."""
        gate = pair_slope(x @ self.w.mT, self.b.unsqueeze(-2), self.sigma)
        return ((x @ self.v.mT) * gate).sum(-1)


@dataclass(frozen=True)
class PolynomialNet(TensorNet):
    """Fixed directions a (r, D); trained u (..., degrees, r): the e-th row belongs to the power first + e * step.

    first = step = 1 has all degrees from 1, first = 1 and step = 2 the odd ones alone.
    """

    a: Float[Tensor, "r D"]
    u: Float[Tensor, "*e E r"]
    first: int = 1
    step: int = 1

    def __post_init__(self) -> None:
        if self.first < 0 or self.step < 1:
            raise CallError(f"first={self.first}, step={self.step}: degrees begin at 0 and ascend")

    @property
    def degrees(self) -> tuple[int, ...]:
        """The powers, ascending."""
        return tuple(self.first + self.step * e for e in range(self.u.shape[-2]))

    def __call__(self, x: Float[Tensor, "*x n D"]) -> Float[Tensor, "*e n"]:
        """q(x)."""
        along = x @ self.a.mT
        terms = (
            # a whole power of a number of any sign
            (torch.ones_like(along) if e == 0 else power(along, e))
            @ self.u[..., k, :].unsqueeze(-1)
            for k, e in enumerate(self.degrees)
        )
        return sum(terms, torch.zeros((), dtype=x.dtype, device=x.device)).squeeze(-1)


def tangent_start(
    d: int,
    width: int,
    bias: float,
    sigma: float,
    generator: torch.Generator,
    *,
    dtype: torch.dtype = torch.float64,
) -> TangentNet:
    """v = 0 and w_i ~ N(0, I) (Definition 5.5)."""
    w = torch.randn(width, d, generator=generator, dtype=torch.float64, device=generator.device)
    w = w.to(dtype)
    return TangentNet(w, torch.zeros_like(w), w.new_full((width,), bias), sigma)


def polynomial_start(
    d: int,
    degrees: int,
    *,
    odd: bool = True,
    forms: int = 0,
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.float64,
) -> PolynomialNet:
    """u = 0 on the axes and `forms` random directions of length 1; so many `degrees`, odd ones or all from 1."""
    a = torch.eye(d, dtype=dtype)
    if forms:
        if generator is None:
            raise CallError(f"forms={forms}: directions are drawn; give a generator")
        drawn = torch.randn(
            forms, d, generator=generator, dtype=torch.float64, device=generator.device
        )
        a = torch.cat([a.to(drawn.device), (drawn / drawn.norm(dim=1, keepdim=True)).to(dtype)])
    if degrees < 1:
        raise CallError(f"degrees={degrees}: at least one power is needed")
    return PolynomialNet(a, a.new_zeros(degrees, len(a)), 1, 2 if odd else 1)


register(
    TangentNet,
    name="tangent",
    trainee="tacit.train.descent.checks:tensor_trainee",
    trained=("v",),
)
register(
    PolynomialNet,
    name="polynomial",
    trainee="tacit.train.descent.checks:tensor_trainee",
    trained=("u",),
)
