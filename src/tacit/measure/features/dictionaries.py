r"""Dictionaries W that reconstruct a target x as W y (allenzhu2020, Section 8.3, footnote 18).

Dense, a matrix (D, k) whose columns are features; or convolutional, "the transpose of the weight of the
convolutional layer": W y is nn.ConvTranspose2d of y (n, k, h, w), and W'x the layer's own convolution of x.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from tacit.base.checks import check_finite
from tacit.base.shapes import Inputs
from tacit.errors import CallError

POWER_STEPS = 200
MARGIN = 1.02  # power iteration ends below the norm that it seeks
CACHED = 2**17  # coefficients of the targets that a CPU solves together: its cache holds them


@dataclass(frozen=True)
class ConvDictionary:
    """A convolution's weight (k, C, kh, kw), its stride and its zero padding, as nn.Conv2d has them."""

    weight: Float[Tensor, "k C kh kw"]
    stride: int = 1
    padding: int = 0


Dictionary: TypeAlias = Float[Tensor, "D k"] | ConvDictionary


@dataclass(frozen=True)
class Maps:
    """y -> W y, x -> W'x, ||W||^2 or a little more, and how many targets are solved together."""

    decode: Callable[[Tensor], Tensor]
    analyse: Callable[[Tensor], Tensor]
    square_norm: float
    together: int


def maps(dictionary: Dictionary, targets: Inputs) -> Maps:
    """W for targets (n, D), or (n, C, H, W) if it convolves, in their dtype and on their device."""
    convolves = isinstance(dictionary, ConvDictionary)
    weight = dictionary.weight if isinstance(dictionary, ConvDictionary) else dictionary.T
    if targets.ndim != weight.ndim or targets.shape[1] != weight.shape[1] or not len(targets):
        kind = "(n, C, H, W) for filters (k, C, kh, kw)" if convolves else "(n, D) for a (D, k)"
        told = (
            f"targets {tuple(targets.shape)} for {len(weight)} features {tuple(weight.shape[1:])}"
        )
        raise CallError(f"{told}: {kind}, n at least 1")
    check_finite("the dictionary", weight, remedy="look at the net's weights")
    check_finite("targets", targets, remedy="leave those targets out")
    weight = weight.detach().to(targets)
    if isinstance(dictionary, ConvDictionary):
        return conv_maps(weight, dictionary.stride, dictionary.padding, targets)
    norm = float(torch.linalg.matrix_norm(weight, 2))
    return Maps(lambda y: y @ weight, lambda x: x @ weight.T, norm**2, len(targets))


def conv_maps(weight: Tensor, stride: int, padding: int, like: Tensor) -> Maps:
    """The convolution and its transpose; what a stride leaves out at the far edge is 0 in W y."""
    room = [like.shape[d] + 2 * padding - weight.shape[d] for d in (2, 3)]
    if min(room) < 0:
        raise CallError(
            f"filters {tuple(weight.shape[2:])}, images {tuple(like.shape[2:])}: give larger images"
        )
    left_out = [size % stride for size in room]

    def decode(y: Tensor) -> Tensor:
        return functional.conv_transpose2d(y, weight, None, stride, padding, left_out)

    def analyse(x: Tensor) -> Tensor:
        return functional.conv2d(x, weight, None, stride, padding)

    stream = torch.Generator().manual_seed(0)
    x = torch.randn(1, *like.shape[1:], generator=stream, dtype=like.dtype).to(like.device)
    for _ in range(POWER_STEPS):  # to the largest eigenvalue of W W'
        x = x / x.norm().clamp_min(torch.finfo(x.dtype).tiny)
        x = decode(analyse(x))
    cached = max(1, CACHED // analyse(like[:1]).numel())
    together = cached if like.device.type == "cpu" else len(like)
    return Maps(decode, analyse, MARGIN * float(x.norm()), together)


def inner(a: Tensor, b: Tensor) -> Tensor:
    """<a_i, b_i> of each row, in float64."""
    return (a * b).flatten(1).sum(1, dtype=torch.float64)


def beside(numbers: Tensor, rows: Tensor) -> Tensor:
    """One number a row, in the rows' dtype and shaped to multiply them."""
    return numbers.to(rows).view(-1, *(1,) * (rows.ndim - 1))
