"""What an attack lowers: a loss of the scores that is small where the point is broken.

Scores are (n,) with labels y = +-1, or logits (n, C) with labels 0..C-1. Broken means margin <= 0, whatever
the loss: y f, or z_y - max of the others.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base.shapes import Labels, Numbers

Scores = Float[Tensor, "n *C"]
Loss = Callable[[Scores, Labels], Numbers]


def margin(scores: Scores, y: Labels) -> Numbers:
    """y f, or z_y - max_{k != y} z_k."""
    if scores.dim() == 1:
        return scores * y
    return own(scores, y) - others(scores, y).amax(1)


def cross_entropy(scores: Scores, y: Labels) -> Numbers:
    """log P(y | x), the negative cross-entropy: it saturates where the margin is large."""
    if scores.dim() == 1:
        return torch.nn.functional.logsigmoid(scores * y)
    return own(scores, y) - torch.logsumexp(scores, 1)


def targeted(k: Labels) -> Loss:
    """z_y - z_k: towards one other class a row (a one-output model has only one)."""

    def loss(scores: Scores, y: Labels) -> Numbers:
        return scores * y if scores.dim() == 1 else own(scores, y) - own(scores, k)

    return loss


def own(scores: Float[Tensor, "n C"], y: Labels) -> Numbers:
    """z_y."""
    return scores.gather(1, y.long().unsqueeze(1)).squeeze(1)


def others(scores: Float[Tensor, "n C"], y: Labels) -> Float[Tensor, "n C"]:
    """The logits with -inf in place of z_y."""
    return scores.scatter(1, y.long().unsqueeze(1), -torch.inf)
