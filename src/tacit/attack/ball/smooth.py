"""SmoothAdvPGD (Salman et al. 2019, Section 2.2): PGD on the classifier smoothed by Gaussian noise.

The soft smoothed classifier is G(x) = E softmax(f(x + noise)), noise ~ N(0, sigma^2 I), here the mean over
m draws (one output: E sigmoid(f)). Its scores are log G (one output: the log-odds of G), so that the
cross-entropy of the scores is the log of the mean probability, which they descend, and the margin is that
of the mean probabilities.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from tacit.attack.ball.driver import AnyLoss, AnyStart, attack
from tacit.attack.ball.gradient import REACH, pgd_descent
from tacit.attack.ball.task import Attacked, Box, task_of
from tacit.attack.losses import Scores, cross_entropy
from tacit.attack.norms import Norm
from tacit.attack.target import Target
from tacit.base.shapes import Rows
from tacit.errors import CallError


@dataclass(frozen=True)
class SmoothedTarget:
    """The mean of a target's probabilities over fixed draws of noise (m, D), the same for every point."""

    target: Target
    noise: Float[Tensor, "m D"]

    def scores(self, x: Rows) -> Scores:
        """log G, or its log-odds."""
        return smoothed(self.target.scores(self._seen(x)), len(self.noise))

    def with_pullback(self, x: Rows) -> tuple[Scores, Callable[[Scores], Rows]]:
        """The gradient of each draw, weighted by its share in the mean probability, and summed."""
        inner, pull = self.target.with_pullback(self._seen(x))
        with torch.enable_grad():
            leaf = inner.detach().requires_grad_(True)
            outer = smoothed(leaf, len(self.noise))

        def pullback(cotangent: Scores) -> Rows:
            (weight,) = torch.autograd.grad(outer, leaf, cotangent)
            return pull(weight).unflatten(0, (-1, len(self.noise))).sum(1)

        return outer.detach(), pullback

    def _seen(self, x: Rows) -> Float[Tensor, "nm D"]:
        """Every point with every draw, (n m, D)."""
        return (x.unsqueeze(1) + self.noise).flatten(0, 1)


def smoothed(scores: Float[Tensor, " nm *C"], m: int) -> Scores:
    """log mean softmax over m draws a point, or log mean sigmoid(f) - log mean sigmoid(-f)."""
    draws = scores.unflatten(0, (-1, m))
    if scores.dim() == 2:
        return torch.logsumexp(torch.log_softmax(draws, 2), 1) - math.log(m)
    log_p = torch.nn.functional.logsigmoid
    return torch.logsumexp(log_p(draws), 1) - torch.logsumexp(log_p(-draws), 1)


def smooth_adv_pgd(
    model: Any,
    x: Float[Tensor, " n *shape"],
    y: Shaped[Tensor, " labels"],
    radii: Sequence[float],
    *,
    sigma: float,
    samples: int = 16,
    norm: float | str | Norm = 2,
    box: Box | None = None,
    loss: AnyLoss = cross_entropy,
    starts: Sequence[AnyStart] = ("zero",),
    means: Float[Tensor, " C *shape"] | None = None,
    steps: int = 20,
    step: float | None = None,
    seed: int = 0,
    batch: int | None = None,
) -> Attacked:
    """PGD on the soft smoothed classifier: `samples` draws of noise of standard deviation `sigma`.

    Margin, broken and clean are those of the smoothed classifier on these draws, not of the model; how it fares
    on fresh noise must be measured anew. The box holds x + delta, not the noise. A one-output model
    has the log-odds as its score.
    """
    if not (math.isfinite(sigma) and sigma >= 0):
        raise CallError(f"sigma={sigma}: the noise has a finite standard deviation >= 0")
    if samples < 1 or steps < 1:
        raise CallError(f"samples={samples}, steps={steps}: at least one of each is needed")
    task = task_of(model, x, y, radii, norm=norm, box=box, batch=batch)
    generator = torch.Generator(task.x.device).manual_seed(seed)
    noise = task.x.new_empty(samples, task.x.shape[1]).normal_(generator=generator) * sigma
    smooth = SmoothedTarget(task.target, noise)
    task = replace(task, target=smooth, batch=max(1, task.batch // samples))
    descend = pgd_descent(steps, REACH / steps if step is None else step)
    return attack(task, model, descend, loss=loss, starts=starts, means=means, seed=seed + 1)
