"""APGD: PGD that sets its own step sizes (Croce & Hein 2020, Algorithm 1; l1: Croce & Hein 2021, Section 3).

l2 and linf: steps of 2 radii at first, with momentum. At checkpoints that come ever more often, a row whose
loss fell in less than 3/4 of its steps, or whose best loss stood still since a checkpoint that changed
nothing, halves its step and goes back to its best point.

l1: a step goes along the signs of the k largest entries of the gradient, projected on ball and box
exactly. k follows the sparsity of the best point, and the step shrinks once that sparsity is stable. With
`larger_balls` the search begins in balls of 3 and of 2 radii, 3/10 of the steps in each, and goes on from what
was best there (as AutoAttack does): with one start it is weaker, with five stronger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from tacit.attack.ball.driver import AnyLoss, AnyStart, attack
from tacit.attack.ball.search import Descent, Search
from tacit.attack.ball.task import Attacked, Box, task_of
from tacit.attack.losses import margin
from tacit.attack.norms import Norm, known_norm
from tacit.base.shapes import Column, Numbers, Rows, Which
from tacit.errors import CallError

MOMENTUM = 0.25
RHO = 0.75
SPARSITY_AT_FIRST = 0.2
SPARSER = 1.5  # k is the sparsity of the best point over this; a step that shrinks does so by this
STABLE = 0.95
SHORTEST = 0.1
BEYOND = 1e30  # further than any box
# the balls that an l1 search may begin in: their radii, in radii, and their shares of the steps
LARGER = ((3.0, 0.3), (2.0, 0.3))


@dataclass
class Run:
    """The rows of a run: where they are and were, the best of each by its loss, and their step in radii.

    `fell` counts the steps that lowered the loss since the last checkpoint, `checked` is the best loss
    there, `kept` whether it left the step as it was; in l1, `checked` is the sparsity there and `k` that of the
    next steps. `best` and `best_down` are the run's own: only rows that change are written.
    """

    delta: Rows
    before: Rows
    down: Rows
    value: Numbers
    best: Rows
    best_down: Rows
    best_value: Numbers
    step: Column
    fell: Numbers
    checked: Numbers
    kept: Which
    k: Numbers

    @classmethod
    def begin(cls, search: Search, delta: Rows, step: float) -> Run:
        """At the starts."""
        value, down = search.look(delta)
        steps, none = torch.full_like(search.radius, step), torch.zeros_like(value)
        kept = torch.zeros_like(value, dtype=torch.bool)
        own = delta.clone(), down.clone()
        return cls(delta, delta, down, value, *own, value, steps, none, value, kept, none)

    def move(self, search: Search, delta: Rows) -> None:
        """One step on, to delta."""
        value, down = search.look(delta)
        better = (value < self.best_value).nonzero().squeeze(1)
        self.best.index_copy_(0, better, delta.index_select(0, better))
        self.best_down.index_copy_(0, better, down.index_select(0, better))
        self.best_value = self.best_value.minimum(value)
        self.fell = self.fell + (value < self.value)
        self.delta, self.before, self.down, self.value = delta, self.delta, down, value

    def back(self, which: Which) -> None:
        """Those rows return to their best points and forget their momentum."""
        rows = which.nonzero().squeeze(1)
        best = self.best.index_select(0, rows)
        self.delta = self.delta.index_copy(0, rows, best)
        self.before = self.before.index_copy(0, rows, best)
        self.down = self.down.index_copy(0, rows, self.best_down.index_select(0, rows))
        self.value = torch.where(which, self.best_value, self.value)


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
            # delta + (1 - m) (to - delta) + m (delta - before), in the place of `to`
            to.lerp_(run.delta, MOMENTUM).add_(run.delta, alpha=MOMENTUM)
            to = search.project(to.sub_(run.before, alpha=MOMENTUM))
        run.move(search, to)
        if i in marks:
            stuck = (run.fell < RHO * (i - last)) | (run.kept & (run.best_value >= run.checked))
            run.step = torch.where(stuck.unsqueeze(1), run.step / 2, run.step)
            run.fell, run.checked, run.kept = torch.zeros_like(run.fell), run.best_value, ~stuck
            run.back(stuck)
            last = i


def sparse_descent(search: Search, delta: Rows, steps: int) -> None:
    """l1."""
    D, gap = delta.shape[1], max(math.ceil(0.04 * steps), 1)
    run = Run.begin(search, delta, 1.0)
    run.checked = torch.full_like(run.checked, D)
    run.k = torch.full_like(run.k, max(SPARSITY_AT_FIRST * D, 1))
    for i in range(1, steps + 1):
        run = search.prune(run)
        if len(run.delta) == 0:
            return
        way = sparse_direction(search, run.delta, run.down, run.k)
        run.move(search, search.move(run.delta, way, run.step))
        if i % gap == 0:
            used = (run.best != 0).sum(1).to(run.k)
            sparser = used < STABLE * run.checked
            shorter = (run.step / SPARSER).clamp_min(SHORTEST)
            run.step = torch.where(sparser.unsqueeze(1), 1.0, shorter)
            run.k, run.checked = (used / SPARSER).clamp_min(1), used
            run.back(sparser)


def shrinking_descent(search: Search, delta: Rows, steps: int) -> None:
    """l1, through larger balls: what breaks a point there does not count, and shows the way."""
    left, delta = steps, delta * LARGER[0][0]
    for factor, share in LARGER:
        wide, count = search.widened(factor), int(share * steps)
        sparse_descent(wide, wide.project(delta), count)
        left, delta = left - count, wide.best_delta
    sparse_descent(search, search.project(delta), left)


def sparse_direction(search: Search, delta: Rows, down: Rows, k: Numbers) -> Rows:
    """The signs of the k largest entries that the box leaves free, of size 1."""
    signs, size = down.sign(), down.abs()
    if search.room is not None:
        # delta is in the box: a long step, clipped, goes the way of its sign, or nowhere where the box is shut
        signs = signs.mul_(BEYOND).add_(delta).clamp_(*search.room).sub_(delta).sign_()
        size.mul_(signs.abs())
    chosen = size.ge_(kth_largest(size, k.floor().long().unsqueeze(1))).mul_(signs)
    return chosen / chosen.abs().sum(1, keepdim=True).clamp_min(1)


def kth_largest(t: Rows, k: Int[Tensor, "n 1"]) -> Column:
    """The k-th largest entry of each row, 1 <= k <= D."""
    # numpy sorts numbers without their places, twenty times faster than torch
    ordered = t.sort(dim=1).values if t.is_cuda else torch.from_numpy(np.sort(t.numpy(), axis=1))
    return ordered.gather(1, t.shape[1] - k.clamp(1, t.shape[1]))


def apgd_descent(steps: int, larger_balls: bool = False) -> Descent:
    """The descent of the search's norm."""
    in_l1 = shrinking_descent if larger_balls else sparse_descent

    def descend(search: Search, delta: Rows) -> None:
        walk = in_l1 if search.norm.order == 1 else momentum_descent
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
    larger_balls: bool = False,
) -> Attacked:
    """Auto-PGD on the loss, from each start: no step size to choose.

    `starts` as in `tacit.attack.ball.starts`; `batch` is the number of rows (points times starts) at a time.
    `larger_balls`, in l1: begin each search in balls of 3 and 2 radii.
    """
    if steps < 1:
        raise CallError(f"steps={steps}: at least one is needed")
    if larger_balls and known_norm(norm).order != 1:
        raise CallError(
            f"larger_balls with norm {norm}: searches begin in larger balls in l1 alone"
        )
    task = task_of(model, x, y, radii, norm=norm, box=box, batch=batch)
    descend = apgd_descent(steps, larger_balls)
    return attack(task, model, descend, loss=loss, starts=starts, means=means, seed=seed)
