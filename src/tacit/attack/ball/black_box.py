"""Attack by queries alone, for models that have no gradient.

The ray to the nearest point of another class is followed to its first crossing (`rays`). From there,
from the way to the means of other classes, and from random points, a random search keeps every change of
some coordinates that lowers the margin, in the spirit of the Square attack (Andriushchenko et al. 2020):
the share of the coordinates that change shrinks as the search goes on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from tacit.attack.ball.driver import AnyStart, attack
from tacit.attack.ball.search import Descent, Search
from tacit.attack.ball.task import Attacked, Box, Task, task_of
from tacit.attack.losses import margin
from tacit.attack.norms import Norm, uniform
from tacit.attack.shortest.rays import first_crossing
from tacit.base.shapes import Labels, Numbers, Rows
from tacit.errors import CallError

SHARE_AT_FIRST = 0.5
LONGEST, SHORTEST = 2.0, 0.05  # steps, in radii
HAIR = 1e-9


@dataclass(frozen=True)
class Here:
    """Where the rows are, and their margins."""

    delta: Rows
    value: Numbers


Propose = Callable[[Search, Rows, float], Rows]
"""The rows changed at random, when that part (0 to 1) of the search is over."""


def random_descent(steps: int, propose: Propose) -> Descent:
    """Keep a random change where it lowers the margin."""

    def descend(search: Search, delta: Rows) -> None:
        here = Here(delta, search.query(delta))
        for i in range(steps):
            here = search.prune(here)
            if len(here.delta) == 0:
                return
            tried = search.project(propose(search, here.delta, i / steps))
            value = search.query(tried)
            lower = value < here.value
            here = Here(
                torch.where(lower.unsqueeze(1), tried, here.delta),
                torch.where(lower, value, here.value),
            )

    return descend


def by_queries(
    task: Task, descend: Descent, starts: Sequence[AnyStart], means: Tensor | None, seed: int
) -> Attacked:
    """A search from these starts: no gradient is asked for, and not even the neurons are looked at."""
    return attack(
        task, None, descend, loss=margin, starts=starts, means=means, seed=seed, gradients=False
    )


def some_coordinates(search: Search, delta: Rows, part: float) -> Rows:
    """Ever fewer coordinates moved, at last one."""
    share = max(SHARE_AT_FIRST * (1 - part) ** 2, 1 / delta.shape[1])
    return delta + search.radius * random_change(search, delta, share)


def random_change(search: Search, like: Rows, share: float) -> Rows:
    """A random direction on a random share of the coordinates, of a random length in radii."""
    generator = search.generator
    chosen = uniform(like, generator)
    # the coordinate of the least number always changes
    mask = (chosen <= share) | (chosen == chosen.amin(1, keepdim=True))
    way = search.norm.steepest(
        torch.where(mask, torch.empty_like(like).normal_(generator=generator), 0.0)
    )
    length = SHORTEST * (LONGEST / SHORTEST) ** uniform(like[:, :1], generator)
    return way * length


def nearest_foreign(task: Task) -> Rows:
    """For each point the nearest one that is rightly classified and of another class; itself if there is none."""
    parts = list(zip(task.x.split(task.batch), task.y.split(task.batch), strict=True))
    known = torch.cat([margin(task.target.scores(x), y) > 0 for x, y in parts])
    found = []
    for x, y in parts:
        far = torch.cdist(x, task.x[known])
        far = torch.where(task.y[known] == y.unsqueeze(1), torch.inf, far)
        if far.shape[1] == 0:
            found.append(x)
            continue
        least, at = far.min(1)
        found.append(torch.where(least.isfinite().unsqueeze(1), task.x[known][at], x))
    return torch.cat(found)


def crossing(task: Task, to: Rows) -> Rows:
    """The perturbation at the first crossing of the ray to those points; the whole ray where it has none."""
    found = []
    parts = (t.split(task.batch) for t in (task.x, task.y, to))
    for x, y, end in zip(*parts, strict=True):
        way = end - x

        def score(z: Rows, y: Labels = y) -> Numbers:
            return margin(task.target.scores(z), y)

        length = first_crossing(score, x, torch.ones_like(x[:, 0]), way)
        t = (length / way.norm(dim=1)).nan_to_num(nan=0.0).clamp_max(1)
        # the crossing is where the margin is 0: a hair beyond it is surely broken
        found.append(way * (t * (1 + HAIR)).clamp_max(1).unsqueeze(1))
    return torch.cat(found)


def black_box(
    model: Any,
    x: Float[Tensor, " n *shape"],
    y: Shaped[Tensor, " labels"],
    radii: Sequence[float],
    *,
    norm: float | str | Norm = 2,
    box: Box | None = None,
    starts: Sequence[AnyStart] = ("random", "towards"),
    means: Float[Tensor, " C *shape"] | None = None,
    steps: int = 500,
    seed: int = 0,
    batch: int | None = None,
) -> Attacked:
    """Random search on the scores, after rays to the nearest point of another class. No gradient is asked for.

    It is weaker than a gradient attack where gradients exist: what it leaves unbroken says little. `start` counts
    the rays as `given`.
    """
    if steps < 1:
        raise CallError(f"steps={steps}: at least one is needed")
    if any(isinstance(name, str) and name == "gradient" for name in starts):
        raise CallError(
            "start 'gradient': a black-box attack has none; choose zero, random, towards"
        )
    task = task_of(model, x, y, radii, norm=norm, box=box, batch=batch)
    ray = crossing(task, nearest_foreign(task)).unflatten(1, task.shape)
    descend = random_descent(steps, some_coordinates)
    return by_queries(task, descend, [ray, *starts], means, seed)
