r"""One perturbation for all points, in two forms.

    signed     x - y delta      as the papers use it (y = +-1; for two logits class 1 is +1 and class 0 is -1)
    unsigned   x + delta        the usual universal perturbation (Moosavi-Dezfooli et al. 2017)

**The papers' directions**, each as the delta of the signed form:

| here                 | paper                                  | delta                                    |
| -------------------- | -------------------------------------- | ---------------------------------------- |
| `min2024_d0`         | min2024, Theorem 1                     | d0 = (S+ - S-) / sqrt(K), a unit vector  |
| `frei2023_z`         | frei2023, Theorem 4.2                  | z = eta sum_q y_q mu_q                   |
| `li2025_rho`         | li2025, Theorem 4.5 (proof, Step 5)    | -rho = 2 (1+c) / k (S+ - S-)             |
| `allenzhu2020_dense` | allenzhu2020, Section 6.2, Theorem E.1 | M w* / ||M w*||, to be multiplied by tau |

with S+- the sums of the centres of a class. **The learned one** lowers the mean over the points of
relu(margin / s + KEPT), s the median margin, so that points broken well enough stop counting, by projected
steps with momentum from several starts; the best seen, by the share of points broken, is kept.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack.losses import margin
from tacit.attack.norms import Norm, known_norm, positive
from tacit.attack.target import Target, loss_and_gradient, target_of
from tacit.base.shapes import Column, Labels, Numbers, Rows, Which
from tacit.data import ClusterMixture
from tacit.errors import CallError, RunError

KEPT = 0.1  # a point counts until its margin is below -KEPT of the median margin
MOMENTUM = 0.75
PATIENCE = 6  # steps without a better loss, after which the step is halved
MOST_CLASSES = 10  # means that serve as starts
ROWS = 4096

Row = Float[Tensor, "1 D"]
Inputs = Float[Tensor, "n *shape"]


def min2024_d0(mixture: ClusterMixture) -> Float[Tensor, " D"]:
    """d0 = (sqrt(K1) mubar_+ - sqrt(K2) mubar_-) / sqrt(K) = (S+ - S-) / sqrt(K) (min2024, Theorem 1)."""
    return signed_sum(mixture) / mixture.K**0.5


def frei2023_z(mixture: ClusterMixture, eta: float = 1.0) -> Float[Tensor, " D"]:
    """z = eta sum_q y_q mu_q (frei2023, Theorem 4.2; its proof, Appendix D, gives an eta)."""
    return eta * signed_sum(mixture)


def li2025_rho(mixture: ClusterMixture, c: float | None = None) -> Float[Tensor, " D"]:
    """2 (1+c) / k (S+ - S-), which is -rho: the paper writes rho for y = +1 (li2025, Theorem 4.5, Step 5).

    c >= 1 bounds the ratio of the classes (Assumption 3.3); by default it is that ratio.
    """
    if mixture.K1 == mixture.K:
        raise CallError("li2025's rho needs clusters of both classes")
    sizes = (mixture.K1, mixture.K - mixture.K1)
    ratio = max(sizes) / min(sizes) if c is None else c
    return 2 * (1 + ratio) / mixture.K * signed_sum(mixture)


def allenzhu2020_dense(M: Float[Tensor, "d D"], w_star: Float[Tensor, " D"]) -> Float[Tensor, " d"]:
    """M w* / ||M w*||: the columns of M are the features, y = sign <w*, z>, x = M z + noise (Section 6.2)."""
    dense = M @ w_star
    if not dense.norm() > 0:
        raise CallError("M w* = 0: there is no dense direction")
    return dense / dense.norm()


def signed_sum(mixture: ClusterMixture) -> Float[Tensor, " D"]:
    """S+ - S- = sum_k y_k mu_k."""
    return mixture.labels @ mixture.centres


def broken_by(
    model: Any,
    x: Inputs,
    y: Labels,
    delta: Float[Tensor, "*shape"],
    *,
    signed: bool,
    box: tuple[float, float] | None = None,
) -> Which:
    """Whether x - y delta (signed) or x + delta, clipped to the box, is broken: margin <= 0."""
    target = target_of(model, tuple(x.shape[1:]))
    rows, signs = x.flatten(1), signs_of(y, signed)
    return margins(target, rows, y, signs, delta.reshape(1, -1), box) <= 0


def signs_of(y: Labels, signed: bool) -> Column:
    """What delta is multiplied by: -y (classes 0 and 1 as -1 and +1), or 1."""
    if not signed:
        return torch.ones(len(y), 1, device=y.device)
    if ((y == 1) | (y == -1)).all():
        return -y.unsqueeze(1).to(torch.get_default_dtype())
    if ((y == 0) | (y == 1)).all():
        return (1 - 2 * y).unsqueeze(1).to(torch.get_default_dtype())
    raise CallError(
        f"labels {y.unique().tolist()}: the signed form x - y delta is for two classes; use signed=False"
    )


def moved(x: Rows, signs: Column, delta: Row, box: tuple[float, float] | None) -> Rows:
    """The perturbed points."""
    at = x + signs.to(x.dtype) * delta
    return at if box is None else at.clamp(*box)


def margins(
    target: Target, x: Rows, y: Labels, signs: Column, delta: Row, box: tuple[float, float] | None
) -> Numbers:
    """The margin of every perturbed point, a chunk at a time."""
    parts = zip(x.split(ROWS), y.split(ROWS), signs.split(ROWS), strict=True)
    return torch.cat(
        [margin(target.scores(moved(at, s, delta, box)), label) for at, label, s in parts]
    )


def learned_universal(
    model: Any,
    x: Inputs,
    y: Labels,
    radius: float,
    *,
    signed: bool,
    norm: float | str | Norm = 2,
    box: tuple[float, float] | None = None,
    steps: int = 60,
    batch: int = 4096,
    seed: int = 0,
) -> Float[Tensor, "*shape"]:
    """One delta of size at most `radius` that breaks as many points as could be found.

    It is learned from at most `batch` of the points, drawn once by the seed. With a box the perturbed
    points are clipped to it, not delta.
    """
    norm = known_norm(norm)
    if not radius >= 0:
        raise CallError(f"radius {radius}: it is a number >= 0")
    generator = torch.Generator(x.device).manual_seed(seed)
    target = target_of(model, tuple(x.shape[1:]))
    some = torch.randperm(len(x), generator=generator, device=x.device)[:batch]
    rows, labels, signs = x.flatten(1)[some], y[some], signs_of(y, signed)[some]
    zero = torch.zeros_like(rows[:1])
    scale = float(margins(target, rows, labels, signs, zero, box).abs().median()) or 1.0
    task = Learning(target, rows, labels, signs, norm, radius, box, scale)
    best = (-1.0, 0.0, zero)
    for start in task.starts(generator):
        found = task.lower(start, steps)
        if (found[0], -found[1]) > (best[0], -best[1]):
            best = found
    delta = best[2]
    if float(norm.size(delta)) > radius * (1 + 8 * torch.finfo(delta.dtype).eps):
        raise RunError("the learned perturbation left its ball")
    return delta.reshape(x.shape[1:])


@dataclass(frozen=True)
class Learning:
    """What is learned from: points and their signs, the ball, and `scale`, the median margin."""

    target: Target
    x: Rows
    y: Labels
    signs: Column
    norm: Norm
    radius: float
    box: tuple[float, float] | None
    scale: float

    def starts(self, generator: torch.Generator) -> list[Row]:
        """0, down the mean gradient, between the class means (both ways where unsigned), and at random."""
        zero = torch.zeros_like(self.x[:1])
        g = self.value(zero)[2]
        ways = [-g, -self.norm.steepest(g)]
        means = [self.x[self.y == k].mean(0, keepdim=True) for k in self.y.unique()[:MOST_CLASSES]]
        if len(means) == 2:
            between = means[1] - means[0]  # labels ascend: from the negative class to the positive
            ways += [between] if bool((self.signs < 0).any()) else [between, -between]
        else:
            ways += [mean - self.x.mean(0, keepdim=True) for mean in means]
        ways.append(self.norm.random(zero, generator))
        scaled = [
            self.norm.project(
                way * (self.radius / positive(self.norm.size(way))).unsqueeze(1),
                zero[:, :1] + self.radius,
                None,
            )
            for way in ways
        ]
        return [zero, *scaled]

    def value(self, delta: Row) -> tuple[float, float, Row]:
        """The share broken, the mean hinge, and its gradient in delta."""
        at = moved(self.x, self.signs, delta, self.box)
        broken, hinge, gradient = 0.0, 0.0, torch.zeros_like(delta)
        for rows in torch.arange(len(at), device=at.device).split(ROWS):
            _, m, g = loss_and_gradient(self.target, at[rows], self.y[rows], margin)
            counts = m / self.scale + KEPT > 0
            if self.box is not None:
                free = (at[rows] > self.box[0]) & (at[rows] < self.box[1])
                g = g * free
            gradient += (self.signs[rows].to(g.dtype) * g * counts.unsqueeze(1)).sum(
                0, keepdim=True
            )
            hinge += float((m / self.scale + KEPT).clamp_min(0).sum())
            broken += float((m <= 0).sum())
        n = max(len(at), 1)
        return broken / n, hinge / n, gradient / n

    def lower(self, start: Row, steps: int) -> tuple[float, float, Row]:
        """Projected steps with momentum, halved when they stop helping: the best share seen and its delta."""
        delta, pace = start, torch.zeros_like(start)
        step, stale = 0.5 * self.radius, 0
        share, hinge, g = self.value(delta)
        best = (share, hinge, delta)
        low = (hinge, delta, g)
        for _ in range(steps):
            size = self.norm.size(g)
            if float(size) == 0 or best[0] == 1.0:
                break
            # an l1 step on one coordinate is slow: spread it as the gradient is
            way = g / size.unsqueeze(1) if self.norm.order == 1 else self.norm.steepest(g)
            pace = MOMENTUM * pace - (1 - MOMENTUM) * step * way
            delta = self.norm.project(delta + pace, delta.new_full((1, 1), self.radius), None)
            share, hinge, g = self.value(delta)
            if (share, -hinge) > (best[0], -best[1]):
                best = (share, hinge, delta)
            stale += 1
            if hinge < low[0]:
                low, stale = (hinge, delta, g), 0
            elif stale >= PATIENCE:
                step, stale = step / 2, 0
                _, delta, g = low
                pace = torch.zeros_like(pace)
        return best
