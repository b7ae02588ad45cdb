r"""How far features move (allenzhu2020, Section 1: the principle of feature purification).

    theta(u, v) = |<u, v>| / (||u|| ||v||),    0 where one of them is 0

of the weights at initialization w0, after clean training w, and after adversarial training w'. The principle says
theta(w0, w) and theta(w0, w') are small, theta(w, w') is large, theta(w_i, w_j) is small, for most neurons.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base.linalg import unit_rows
from tacit.errors import CallError

Weights = Float[Tensor, "h D"]
Neurons = Float[Tensor, " h"]


@dataclass(frozen=True)
class Angles:
    """theta of each neuron between the three moments, and of each pair of neurons after clean training."""

    start_clean: Neurons
    start_pure: Neurons
    clean_pure: Neurons
    pairs: Float[Tensor, " pairs"]


def theta(u: Float[Tensor, "*n D"], v: Float[Tensor, "*n D"]) -> Float[Tensor, "*n"]:
    """|cos| row by row, in float64."""
    a, b = (unit_rows(t.to(torch.float64))[0] for t in (u, v))
    return (a * b).sum(-1).abs()


def angles(
    start: Float[Tensor, "h0 D0"], clean: Float[Tensor, "h D"], pure: Float[Tensor, "h1 D1"]
) -> Angles:
    """All four, of neurons in the same order; choose the neurons that are meant before."""
    if not start.shape == clean.shape == pure.shape:
        raise CallError(
            f"weights of shapes {tuple(start.shape)}, {tuple(clean.shape)}, {tuple(pure.shape)}: the three "
            "moments of one net have one shape"
        )
    unit = unit_rows(clean.to(torch.float64))[0]
    upper = torch.ones(len(clean), len(clean), dtype=torch.bool, device=clean.device).triu(1)
    pairs = (unit @ unit.T).abs()[upper]
    return Angles(theta(start, clean), theta(start, pure), theta(clean, pure), pairs)


def kept_of_start(start: Weights, now: Weights) -> float:
    """sum <w_i, w0_i>^2 / sum ||w_i||^2 ||w0_i||^2: o(1) by Theorem 5.1(a), first line."""
    a, b = start.to(torch.float64), now.to(torch.float64)
    scale = (a.square().sum(1) * b.square().sum(1)).sum()
    return float((a * b).sum(1).square().sum() / nonzero(scale))


def overlap(w: Weights) -> float:
    """sum_{i,j} <w_i, w_j>^2 / (sum ||w_i||^2)^2: o(1) by Theorem 5.1(a), second line.

    With the singular values s of w it is sum s^4 / (sum s^2)^2, one over how many directions share the mass.
    """
    values = torch.linalg.svdvals(w.to(torch.float64)).square()
    return float(values.square().sum() / nonzero(values.sum().square()))


def moved_share(clean: Weights, pure: Weights) -> float:
    """sum ||w_i - w'_i||^2 / sum ||w_i||^2: o(1) by Theorem 5.3(c)."""
    a, b = clean.to(torch.float64), pure.to(torch.float64)
    return float((a - b).square().sum() / nonzero(a.square().sum()))


def nonzero(scale: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """A scale that is there."""
    if not bool(scale > 0):
        raise CallError("all weights are 0: there is nothing to compare with")
    return scale
