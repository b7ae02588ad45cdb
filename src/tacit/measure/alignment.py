"""The field that turns neurons in the early phase of training (min2024, eq. (5))."""

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base.shapes import Numbers, Rows
from tacit.errors import CallError


def alignment_field(w: Float[Tensor, "m D"], x: Rows, y: Numbers, p: float) -> Float[Tensor, "m D"]:
    """x^(p)(w) = sum_k gamma_k y_k x_k p cos(x_k, w)^(p-1), gamma_k = 1 where <x_k, w> >= 0, else 0.

    While weights are small, a neuron's direction moves along the part of this vector orthogonal to it
    (times the sign of its outer weight; halved for the logistic loss).
    """
    if not p >= 1:
        raise CallError(f"p={p}: PolyReLU needs p >= 1")
    cosine = (w @ x.T) / (w.norm(dim=1, keepdim=True) * x.norm(dim=1))
    gate = torch.where(cosine >= 0, p * cosine.clamp_min(0) ** (p - 1), 0.0)
    return (gate * y) @ x
