"""APGD: PGD that sets its own step sizes (Croce & Hein 2020, Algorithm 1; l1: Croce & Hein 2021, Section 3).

l2 and linf: steps of 2 radii at first, with momentum. At checkpoints that come ever more often, a row whose
loss fell in less than 3/4 of its steps, or whose best loss stood still since a checkpoint that changed
nothing, halves its step and goes back to its best point.

l1: a step goes along the signs of the k largest entries of the gradient, projected on ball and box
exactly. k follows the sparsity of the best point, and the step shrinks once that sparsity is stable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from tacit.attack.attacked import Attacked, Box, task_of
from tacit.attack.driver import AnyLoss, AnyStart, attack
from tacit.attack.losses import margin
from tacit.attack.norms import Norm
from tacit.attack.search import Descent, Search
from tacit.errors import CallError

Rows = Float[Tensor, "n D"]
Numbers = Float[Tensor, " n"]

MOMENTUM = 0.25
RHO = 0.75
SPARSITY_AT_FIRST = 0.2
SPARSER = 1.5  # k is the sparsity of the best point over this; a step that shrinks does so by this
STABLE = 0.95
SHORTEST = 0.1


@dataclass(frozen=True)
class Run:
    """The rows of a run: where they are and were, the best of each by its loss, and their step in radii.

    `fell` counts the steps that lowered the loss since the last checkpoint, `checked` is the best loss
    there, `kept` whether it left the step as it was.
    """

    delta: Rows
    before: Rows
    down: Rows
    value: Numbers
    best: Rows
    best_down: Rows
    best_value: Numbers
    step: Float[Tensor, "n 1"]
    fell: Numbers
    checked: Numbers
    kept: Bool[Tensor, " n"]

    @classmethod
    def begin(cls, search: Search, delta: Rows, step: float) -> Run:
        """At the starts."""
        value, down = search.look(delta)
        steps, none = torch.full_like(search.radius, step), torch.zeros_like(value)
        kept = torch.zeros_like(value, dtype=torch.bool)
        return cls(delta, delta, down, value, delta, down, value, steps, none, value, kept)

    def moved(self, search: Search, delta: Rows) -> Run:
        """One step on, to delta."""
        value, down = search.look(delta)
        better = value < self.best_value
        rows = better.unsqueeze(1)
        return replace(
            self,
            delta=delta,
            before=self.delta,
            down=down,
            value=value,
            best=torch.where(rows, delta, self.best),
            best_down=torch.where(rows, down, self.best_down),
            best_value=torch.where(better, value, self.best_value),
            fell=self.fell + (value < self.value),
        )

    def back(self, which: Bool[Tensor, " n"]) -> Run:
        """Those rows return to their best points and forget their momentum."""
        rows = which.unsqueeze(1)
        return replace(
            self,
            delta=torch.where(rows, self.best, self.delta),
            before=torch.where(rows, self.best, self.before),
            down=torch.where(rows, self.best_down, self.down),
            value=torch.where(which, self.best_value, self.value),
        )


def checkpoints(steps: int) -> list[int]:
    """w_j = ceil(p_j steps), p_1 = .22, p_{j+1} = p_j + max(p_j - p_{j-1} - .03, .06)."""
    marks, p, gap = [], 0.0, 0.22
    while p + gap <= 1:
        p += gap
        marks.append(math.ceil(p * steps - 1e-9))
        gap = max(gap - 0.03, 0.06)
    return marks


def momentum_descent(search: Search, delta: Rows, steps: int) -> None:
    """l2 and linf."""
    marks, last = checkpoints(steps), 0
    run = Run.begin(search, delta, 2.0)
    for i in range(1, steps + 1):
        run = search.prune(run)
        if len(run.delta) == 0:
            return
        to = search.move(run.delta, search.norm.steepest(run.down), run.step)
        if i > 1:
            mixed = (1 - MOMENTUM) * (to - run.delta) + MOMENTUM * (run.delta - run.before)
            to = search.project(run.delta + mixed)
        run = run.moved(search, to)
        if i in marks:
            stuck = (run.fell < RHO * (i - last)) | (run.kept & (run.best_value >= run.checked))
            step = torch.where(stuck.unsqueeze(1), run.step / 2, run.step)
            none = torch.zeros_like(run.fell)
            run = replace(run, step=step, fell=none, checked=run.best_value, kept=~stuck)
            run, last = run.back(stuck), i


def sparse_descent(search: Search, delta: Rows, steps: int) -> None:
    """l1."""
    D, gap = delta.shape[1], max(math.ceil(0.04 * steps), 1)
    run = Run.begin(search, delta, 1.0)
    # `checked` holds the sparsity at the last checkpoint, `fell` the k of the next steps
    run = replace(
        run,
        checked=torch.full_like(run.checked, D),
        fell=torch.full_like(run.fell, max(SPARSITY_AT_FIRST * D, 1)),
    )
    for i in range(1, steps + 1):
        run = search.prune(run)
        if len(run.delta) == 0:
            return
        k, way = run.fell, sparse_direction(search, run.delta, run.down, run.fell)
        run = replace(run.moved(search, search.move(run.delta, way, run.step)), fell=k)
        if i % gap == 0:
            used = (run.best != 0).sum(1).to(k)
            sparser = used < STABLE * run.checked
            shorter = (run.step / SPARSER).clamp_min(SHORTEST)
            step = torch.where(sparser.unsqueeze(1), 1.0, shorter)
            run = replace(run, step=step, fell=(used / SPARSER).clamp_min(1), checked=used)
            run = run.back(sparser)


def sparse_direction(search: Search, delta: Rows, down: Rows, k: Numbers) -> Rows:
    """The signs of the k largest entries that the box leaves free, of size 1."""
    if search.room is not None:
        shut = (down > 0) & (delta >= search.room[1]) | (down < 0) & (delta <= search.room[0])
        down = torch.where(shut, 0.0, down)
    size = down.abs()
    at = k.floor().long().clamp(1, down.shape[1]).unsqueeze(1) - 1
    least = size.sort(dim=1, descending=True).values.gather(1, at)
    signs = torch.where(size >= least, down.sign(), 0.0)
    return signs / signs.abs().sum(1, keepdim=True).clamp_min(1)


def apgd_descent(steps: int) -> Descent:
    """The descent of the search's norm."""

    def descend(search: Search, delta: Rows) -> None:
        walk = sparse_descent if search.norm.order == 1 else momentum_descent
        walk(search, delta, steps)

    return descend


def apgd(
    model: Any,
    x: Float[Tensor, " n *shape"],
    y: Shaped[Tensor, " labels"],
    radii: Sequence[float],
    *,
    norm: float | str | Norm = 2,
    box: Box | None = None,
    loss: AnyLoss = margin,
    starts: Sequence[AnyStart] = ("gradient", "random", "towards"),
    means: Float[Tensor, " C *shape"] | None = None,
    steps: int = 100,
    seed: int = 0,
    batch: int | None = None,
) -> Attacked:
    """Auto-PGD on the loss, from each start: no step size to choose.

    `starts` as in `tacit.attack.starts`; `batch` is the number of rows (points times starts) at a time.
    """
    if steps < 1:
        raise CallError(f"steps={steps}: at least one is needed")
    task = task_of(model, x, y, radii, norm=norm, box=box, batch=batch)
    return attack(
        task, model, apgd_descent(steps), loss=loss, starts=starts, means=means, seed=seed
    )
