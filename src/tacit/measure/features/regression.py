r"""How far targets are from the span of a dictionary: least squares, no regulariser (allenzhu2020, Remark 8.2).

    min_y ||W y - x||^2 / ||x||^2,   in float64

A matrix: x less its projection on the span, by singular vectors. A convolution: conjugate gradients on the
normal equations (CGLS, Hestenes & Stiefel 1952) from y = 0, whose residual falls at every step.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from tacit.base.linalg import span_axes
from tacit.base.shapes import Inputs, Numbers
from tacit.errors import CallError
from tacit.measure.features.dictionaries import (
    ConvDictionary,
    Dictionary,
    Maps,
    beside,
    inner,
    maps,
)

CHECK = 25  # steps between two reads from the device
SLOPE = 1e-10  # ||W'r|| / (||W|| ||r||), which is 0 at a minimizer: LSQR's own stopping rule
NOTHING = 1e-24  # a relative error that is 0
TINY = 1e-300  # keeps 0/0 at 0 once a target is solved


@dataclass(frozen=True)
class Regression:
    """error (n,): ||W y - x||^2 / ||x||^2, the least one where solved (n,), else above it: take more steps."""

    error: Numbers
    solved: Bool[Tensor, " n"]


@torch.no_grad()
def regression_error(dictionary: Dictionary, targets: Inputs, *, steps: int = 5000) -> Regression:
    """The least relative error of each target: (n, D) for a matrix (D, k), (n, C, H, W) for a convolution."""
    if steps < 1:
        raise CallError(f"steps={steps}: at least one is needed")
    x = targets.detach().to(torch.float64)
    W, energy = maps(dictionary, x), inner(x, x)
    if not bool((energy > 0).all()):
        raise CallError("a target of zeros has no relative error: leave it out")
    if not isinstance(dictionary, ConvDictionary):
        axes = span_axes(dictionary.detach().to(x).T)
        rest = x - (x @ axes) @ axes.T
        return Regression(inner(rest, rest) / energy, energy > 0)
    parts = [conjugate_gradients(W, part, steps) for part in x.split(W.together)]
    errors, solved = zip(*parts, strict=True)
    return Regression(torch.cat(errors), torch.cat(solved))


def conjugate_gradients(W: Maps, x: Inputs, steps: int) -> tuple[Numbers, Bool[Tensor, " n"]]:
    """The relative error, and whether the residual is as good as 0 or orthogonal to the span."""
    rest, energy = x, inner(x, x)
    slope = way = W.analyse(rest)
    square = inner(slope, slope)
    for step in range(1, steps + 1):
        there = W.decode(way)
        rest = rest - beside(square / inner(there, there).clamp_min(TINY), rest) * there
        slope = W.analyse(rest)
        before, square = square, inner(slope, slope)
        way = slope + beside(square / before.clamp_min(TINY), way) * way
        if step % CHECK == 0 or step == steps:
            left = inner(rest, rest)
            solved = (square <= SLOPE**2 * W.square_norm * left) | (left <= NOTHING * energy)
            if bool(solved.all()):
                break
    return left / energy, solved
