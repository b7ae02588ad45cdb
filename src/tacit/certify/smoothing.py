"""Randomized smoothing: certified l2 radii of the smoothed classifier of any model.

Cohen, Rosenfeld & Kolter, "Certified adversarial robustness via randomized smoothing" (ICML 2019), Section 3.2,
algorithm CERTIFY. The smoothed classifier g(x) = argmax_c P(model(x + noise) = c), noise ~ N(0, sigma^2 I), keeps
its class c within

    sigma Phi^-1(p)   of x,   p <= P(model(x + noise) = c),   p > 1/2         (Theorem 1 with p_B = 1 - p).

The class is guessed from n0 draws and p is the Clopper-Pearson lower limit from n fresh ones, so each point's
radius is right with probability 1 - alpha over the draws (each point by itself, not all of them at once).

This certifies g, not the model: the model may be broken well inside this radius. In a report it is a curve of its
own and never the lower end of the model's interval.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from scipy.stats import norm
from torch import Tensor

from tacit.base.checks import check_finite, check_labels, check_one_each
from tacit.base.statistics import lower_limit
from tacit.errors import CallError


@dataclass(frozen=True)
class Smoothed:
    """What the smoothed classifier says, and within which l2 radius it keeps saying it.

    `predicted`: the class, -1 where it abstains; a one-output model has class 0 for f < 0 and 1 for f > 0.
    `radius`: 0 where it abstains or predicts another class than y.
    """

    predicted: Int[Tensor, " n"]
    radius: Float[Tensor, " n"]


def smoothing_radius(
    model: Callable[[Tensor], Tensor],
    x: Float[Tensor, "n ..."],
    y: Tensor,
    *,
    sigma: float,
    generator: torch.Generator,
    n0: int = 100,
    n: int = 10_000,
    alpha: float = 0.001,
    batch: int = 1000,
) -> Smoothed:
    """CERTIFY at each point; y is +-1 for a model of one output, a class index for logits.

    `batch` noisy copies go through the model at a time. `generator` lives on the device of x. A tie between
    the two largest logits, or f = 0, is a vote for no class.
    """
    check(model, x, y, sigma, n0, n, alpha, batch)
    with torch.no_grad():
        outputs = outputs_of(model(x[:1]))
    check_labels(y, outputs)
    label = (y > 0).long() if outputs == 1 else y.long()  # -1 and +1 are the classes 0 and 1
    predicted = torch.full((len(x),), -1, dtype=torch.long, device=x.device)
    radius = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    for i, point in enumerate(x):
        guess = votes(model, point, sigma, n0, batch, generator)
        top = int(guess.argmax())
        counts = votes(model, point, sigma, n, batch, generator)
        at_least = lower_limit(int(counts[top]), n, 1 - alpha)
        if at_least > 0.5:
            predicted[i] = top
            if top == label[i]:
                radius[i] = sigma * float(norm.ppf(at_least))
    return Smoothed(predicted, radius)


def votes(
    model: Callable[[Tensor], Tensor],
    point: Tensor,
    sigma: float,
    draws: int,
    batch: int,
    generator: torch.Generator,
) -> Int[Tensor, " c"]:
    """How many of the noisy copies of a point the model puts into each class."""
    counts: Tensor | int = 0
    for done in range(0, draws, batch):
        size = (min(batch, draws - done), *point.shape)
        noise = torch.randn(size, generator=generator, dtype=point.dtype, device=point.device)
        with torch.no_grad():
            counts = counts + winners(model(point + sigma * noise)).sum(0)
    return torch.as_tensor(counts)


def winners(scores: Tensor) -> Bool[Tensor, "m c"]:
    """Which class wins strictly, one column a class: two for a model of one output."""
    if bool(scores.isnan().any()):
        raise CallError("the model's output holds NaN: no class can be counted")
    if outputs_of(scores) == 1:
        f = scores.reshape(-1, 1)
        return torch.cat([f < 0, f > 0], 1)
    largest = scores == scores.amax(1, keepdim=True)
    return largest & (largest.sum(1, keepdim=True) == 1)


def outputs_of(scores: Tensor) -> int:
    """How many numbers the model gives a point."""
    if scores.dim() not in (1, 2):
        raise CallError(
            f"the model's outputs have shape {tuple(scores.shape)}: (points,) or (points, classes) is needed"
        )
    return 1 if scores.dim() == 1 else scores.shape[1]


def check(
    model: object,
    x: Tensor,
    y: Tensor,
    sigma: float,
    n0: int,
    n: int,
    alpha: float,
    batch: int,
) -> None:
    """Refuse what cannot be certified."""
    if getattr(model, "training", False):
        raise CallError("the model is in train mode: call model.eval() first")
    check_one_each(y, x)
    check_finite("x", x)
    if not sigma > 0:
        raise CallError(f"sigma={sigma}: the noise needs a positive standard deviation")
    if min(n0, n, batch) < 1:
        raise CallError(f"n0={n0}, n={n}, batch={batch}: each is at least 1")
    if not 0 < alpha < 1:
        raise CallError(f"alpha={alpha}: the failure probability lies between 0 and 1")
