r"""The inner loop of adversarial training: PGD and SmoothAdvPGD without a read by the host: a GPU can record it.

    delta <- clip(project(delta + step * radius * steepest(grad_delta loss)))        `steps` times

loss is the cross-entropy of the model at x + delta, or, with noise (Salman et al. 2019, Section 2.2), of the mean
over draws of softmax(f(x + delta + noise)), one set of draws for each point. `project` is the ball's own
projection; the box [0, 1] clips what it leaves, which only shortens delta (0 is in the box), so that ball and box
both hold. Every point takes every step: nothing is searched, kept or dropped, as `tacit.attack.pgd` does, which
measures.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tacit.attack.ball.smooth import smoothed
from tacit.attack.norms import known_norm
from tacit.base.shapes import Inputs
from tacit.errors import CallError

Forward = Callable[[Tensor], Tensor]
Pixel = tuple[float, float]


@dataclass(frozen=True)
class Ball:
    """An attacker for training: its norm (2 or inf), radius, number of steps and their length in radii.

    `random_start`: from a uniform point of the ball, else from the image. `sigma` > 0 is SmoothAdvPGD: `draws`
    Gaussian noises of that standard deviation for each image, in the attack and in what is trained on.
    """

    norm: float
    radius: float
    steps: int
    step: float
    random_start: bool = False
    sigma: float = 0.0
    draws: int = 1

    def __post_init__(self) -> None:
        if self.norm not in (2, math.inf):
            raise CallError(
                f"norm={self.norm:g}: adversarial training has 2 and inf (the projection on an l1 ball needs "
                "rounds that the host counts)"
            )
        for name in ("radius", "step", "sigma"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise CallError(f"{name}={value}: it is a finite number >= 0")
        for name in ("steps", "draws"):
            if getattr(self, name) < 1:
                raise CallError(f"{name}={getattr(self, name)}: it is at least 1")

    def noise(self, x: Inputs, generator: torch.Generator) -> Float[Tensor, "m n ..."] | None:
        """The draws for these images; None without noise."""
        if not self.sigma:
            return None
        return x.new_empty(self.draws, *x.shape).normal_(generator=generator) * self.sigma

    def start(self, x: Inputs, generator: torch.Generator) -> Inputs | None:
        """Where the search begins, in radii; None: at the images."""
        if not self.random_start:
            return None
        return known_norm(self.norm).random(x.flatten(1), generator).unflatten(1, x.shape[1:])


def seen(x: Inputs, noise: Float[Tensor, "m n ..."] | None) -> Float[Tensor, "mn ..."]:
    """What the model is shown: the images, or all of their noisy copies, (m n, ...) draw by draw."""
    return x if noise is None else (x + noise).flatten(0, 1)


def mean_scores(scores: Float[Tensor, "mn C"], draws: int) -> Float[Tensor, "n C"]:
    """log of the mean probability over draws, from the scores of `seen`."""
    return (
        scores
        if draws == 1
        else smoothed(scores.unflatten(0, (draws, -1)).transpose(0, 1).flatten(0, 1), draws)
    )


def perturbation(
    forward: Forward,
    x: Inputs,
    y: Int64[Tensor, " n"],
    ball: Ball,
    *,
    start: Inputs | None = None,
    noise: Float[Tensor, "m n ..."] | None = None,
    scale: float | Float[Tensor, ""] = 1.0,
    box: Pixel | None = (0.0, 1.0),
) -> Inputs:
    """delta of each image after all steps; `scale` is the part of the radius that is allowed so far.

    `start` is in radii (`Ball.start`), `noise` are the draws (`Ball.noise`). No parameter needs a gradient.
    """
    norm = known_norm(ball.norm)
    radius = torch.as_tensor(ball.radius * scale, dtype=x.dtype, device=x.device).expand(len(x), 1)
    rows = x.flatten(1)
    # what the box leaves to delta: clipping rows + delta would round away what is small beside a pixel
    room = (box[0] - rows, box[1] - rows) if box else ()

    def inside(delta: Tensor) -> Tensor:
        """On the ball, then in the box."""
        delta = norm.project(delta, radius, None)
        return delta if box is None else delta.clamp(*room)

    delta = torch.zeros_like(rows) if start is None else inside(radius * start.flatten(1))
    for _ in range(ball.steps):
        with torch.enable_grad():
            leaf = delta.requires_grad_(True)
            shown = seen((rows + leaf).unflatten(1, x.shape[1:]), noise)
            scores = mean_scores(forward(shown).float(), 1 if noise is None else len(noise))
            loss = torch.nn.functional.cross_entropy(scores, y, reduction="sum")
            (up,) = torch.autograd.grad(loss, leaf)
        delta = inside(leaf.detach() + ball.step * radius * norm.steepest(up.to(rows.dtype)))
    return delta.unflatten(1, x.shape[1:])
