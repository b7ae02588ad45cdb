"""Perturbations to look at: all steps from the image, no random start, no noise, no early end.

An attack that measures stops where it has won, and starts at random: what it returns shows its start. Here every
image takes every step, and the noise of SmoothAdvPGD is left out, so that what is seen is the net's.
"""

from dataclasses import replace

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from tacit.measure.attacked import delta_of, parts
from tacit.papers.allenzhu2020.deep.nets import ball_of


def deltas(
    net: nn.Module,
    x: Float[Tensor, "n C H W"],
    y: Int64[Tensor, " n"],
    attacker: str,
    *,
    steps: int,
) -> Float[Tensor, "n C H W"]:
    """The perturbations of these images within the ball of that attacker."""
    ball = replace(
        ball_of(attacker), steps=steps, step=2.5 / steps, random_start=False, sigma=0.0, draws=1
    )
    return torch.cat([delta_of(net, x[part], y[part], ball) for part in parts(len(x))])
