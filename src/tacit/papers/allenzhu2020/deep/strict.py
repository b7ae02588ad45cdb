"""The strict attack of deep nets without noise, and the flags that it raises (as an audit has them).

| stage    | what it is                                                                                     |
| -------- | ---------------------------------------------------------------------------------------------- |
| gradient | APGD on the margin from the image and from the far end of its gradient                         |
| random   | the same from random starts                                                                    |
| entropy  | APGD on the cross-entropy from a random start                                                  |
| targeted | APGD on z_y - z_k for each other class k in turn                                               |
| queries  | random search on the scores alone, on a few of the images that are left                        |

Each stage is given what the one before left. A loss that gradients cannot lower, random starts that beat
gradients, and queries that beat both are the marks of masked gradients (Athalye, Carlini & Wagner 2018, Section
3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from tacit.attack import Attacked, Ball, apgd, black_box, cross_entropy, margin
from tacit.measure.attacked import kept_right

FLAGS = (
    "gradient-vanishes",
    "loss-not-increasing",
    "random-beats-gradient",
    "queries-beat-gradients",
)
SAMPLE = 50  # images that are left, as in an audit
ON_A_GPU, ON_A_CPU = (
    2000,
    500,
)  # rows at a time: an attack keeps about 14 MB a row of a ResNet-34 of width 4

Pixels = Float[Tensor, "n C H W"]


@dataclass(frozen=True)
class Strict:
    """Which images are left, and for each kind of flag the share of images that it counts."""

    left: Bool[Tensor, " n"]
    flags: dict[str, float]


def strict(
    net: nn.Module,
    x: Pixels,
    y: Int64[Tensor, " n"],
    ball: Ball,
    *,
    steps: int,
    restarts: int,
    queries: int,
    seed: int,
) -> Strict:
    """The attack at the ball's radius in [0, 1]; images that are wrong from the start are not left."""
    right = kept_right(net, x, y) > 0
    left, none = right.clone(), torch.zeros_like(right)
    stuck, flat, lucky = right.clone(), none.clone(), 0
    batch = ON_A_GPU if x.is_cuda else ON_A_CPU

    def run(at: Int64[Tensor, " k"], loss: object, starts: Sequence[str]) -> Attacked:
        return apgd(
            net, x[at], y[at], [ball.radius], norm=ball.norm, box=(0.0, 1.0), loss=loss,  # type: ignore[arg-type]
            starts=starts, steps=steps, seed=seed, batch=batch,
        )  # fmt: skip

    stages: dict[str, tuple[object, Sequence[str]]] = {
        "gradient": (margin, ("zero", "gradient")),
        "random": (margin, ("random",) * restarts),
        "entropy": (cross_entropy, ("random",)),
        "targeted": ("targeted", ("random",)),
    }
    for name, (loss, starts) in stages.items():
        at = left.nonzero().squeeze(1)
        if not len(at):
            break
        found = run(at, loss, starts)
        left[at] &= ~found.broken[0]
        stuck[at] &= ~found.lowered[0]
        if name == "gradient":
            flat[at] = found.flat
        elif name == "random":
            lucky = int(found.broken[0].sum())
    asked = share_by_queries(net, x, y, ball, left, queries=queries, batch=batch, seed=seed)
    known = max(int(right.sum()), 1)
    values = {
        "gradient-vanishes": int((flat & left).sum()) / known,
        "loss-not-increasing": int((stuck & left).sum()) / known,
        "random-beats-gradient": lucky / known,
        "queries-beat-gradients": asked,
    }
    return Strict(left, values)


def share_by_queries(
    net: Callable[[Tensor], Tensor],
    x: Pixels,
    y: Int64[Tensor, " n"],
    ball: Ball,
    left: Bool[Tensor, " n"],
    *,
    queries: int,
    batch: int,
    seed: int,
) -> float:
    """What queries break of a few that are left, evenly from all; these do not count as left any more."""
    at = left.nonzero().squeeze(1)
    if not len(at):
        return 0.0
    at = at[:: -(-len(at) // SAMPLE)]
    found = black_box(
        net, x[at], y[at], [ball.radius], norm=ball.norm, box=(0.0, 1.0), starts=("random",),
        steps=queries, seed=seed, batch=batch,
    )  # fmt: skip
    left[at] &= ~found.broken[0]
    return float(found.broken[0].float().mean())
