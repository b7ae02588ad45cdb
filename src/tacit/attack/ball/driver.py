"""From a call to its answer: batches of points, their starts, and one search for each radius."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.attack.ball.search import Descent, Search, downhill
from tacit.attack.ball.starts import NAMES, Landmarks, Start, landmarks_of, starts_of, towards
from tacit.attack.ball.task import Attacked, Task, room_of, sealed
from tacit.attack.losses import Loss, margin, others
from tacit.attack.norms import Room
from tacit.attack.target import loss_and_gradient
from tacit.base.checks import check_finite
from tacit.base.device import full_float32
from tacit.base.shapes import Labels, Numbers, Rows, Which
from tacit.errors import CallError

SMALLER = "smaller radius"
AnyLoss = Loss | str  # "targeted": the margin against each other class in turn
AnyStart = str | Tensor


@dataclass(frozen=True)
class Best:
    """The best perturbation of each point so far, its margin, and the start that led to it."""

    delta: Rows
    margin: Numbers
    start: Int[Tensor, " n"]

    def or_better(self, other: Best) -> Best:
        """The one of the lower margin, row by row."""
        wins = other.margin < self.margin
        return Best(
            torch.where(wins.unsqueeze(1), other.delta, self.delta),
            torch.where(wins, other.margin, self.margin),
            torch.where(wins, other.start, self.start),
        )


@dataclass(frozen=True)
class Batch:
    """Some points of a task, with what a search of them needs."""

    task: Task
    loss: Loss
    descend: Descent
    x: Rows
    y: Labels
    room: Room | None
    generator: torch.Generator

    def search(self, radius: float, starts: Sequence[Start], todo: Which) -> Best:
        """The best of all starts at one radius for the points to do: one row for each start and point."""
        x, S, n = self.x[todo], len(starts), int(todo.sum())
        radii = self.x.new_full((len(self.x), 1), radius)
        index = torch.arange(S * n, device=x.device)
        none = torch.full_like(self.y, -1, dtype=torch.long)
        goals = [none if start.goal is None else start.goal for start in starts]
        aimed = self.loss is margin and any(start.goal is not None for start in starts)
        aimed = aimed and not self.task.one_output
        search = Search(
            self.task.target,
            self.loss,
            self.task.norm,
            self.generator,
            x=x.repeat(S, 1),
            y=self.y[todo].repeat(S),
            radius=radii[todo].repeat(S, 1),
            room=None if self.room is None else room_of(x.repeat(S, 1), self.task.box),
            goal=torch.cat([goal[todo] for goal in goals]) if aimed else None,
            point=index % n,
            id=index,
            best_delta=torch.zeros_like(x).repeat(S, 1),
            best_margin=x.new_full((S * n,), torch.inf),
            broken=torch.zeros_like(todo[todo]),
        )
        self.descend(search, torch.cat([start.at(radii)[todo] for start in starts]))
        least, winner = search.best_margin.view(S, n).min(0)
        best = Best(
            torch.zeros_like(self.x),
            torch.full_like(self.x[:, 0], torch.inf),
            none,
        )
        best.delta[todo] = search.best_delta[winner * n + index[:n]]
        best.margin[todo], best.start[todo] = least, winner
        return best

    def evaluate(self, delta: Rows) -> Numbers:
        """The margins at x + delta, which decide: in full float32, whatever the search rounded."""
        with full_float32():
            return margin(self.task.target.scores(self.x + delta), self.y)


def attack(
    task: Task,
    model: Any,
    descend: Descent,
    *,
    loss: AnyLoss,
    starts: Sequence[AnyStart],
    means: Float[Tensor, " C *shape"] | None,
    seed: int,
    gradients: bool = True,
) -> Attacked:
    """Run a descent from all starts at all radii, a batch of points at a time."""
    check_names(starts, loss, task)
    marks = None
    if any(isinstance(name, str) and name == "towards" for name in starts):
        flat_means = None if means is None else means.to(task.x).flatten(1)
        marks = landmarks_of(model, task.x, task.y, flat_means, task.one_output)
    generator = torch.Generator(task.x.device).manual_seed(seed)
    loss = margin if task.one_output and isinstance(loss, str) else loss
    parts = [
        attack_batch(task, index, descend, loss, starts, marks, generator, gradients)
        for index in batches(task, starts, marks, loss)
    ]
    names = parts[0][0]
    delta, found, alone, start = (torch.cat(t, 1) for t in zip(*(p[1] for p in parts), strict=True))
    clean, flat = (torch.cat(t) for t in zip(*(p[2] for p in parts), strict=True))
    radii = torch.tensor(task.radii, dtype=task.x.dtype, device=task.x.device)
    delta = delta.unflatten(2, task.shape)
    return Attacked(radii, delta, found, found <= 0, alone, start, names, clean, flat)


def check_names(starts: Sequence[AnyStart], loss: AnyLoss, task: Task) -> None:
    """Known starts, given ones of the shape of x, and a loss that exists."""
    if not len(starts):
        raise CallError("starts: give at least one")
    for start in starts:
        if isinstance(start, str) and start not in NAMES:
            raise CallError(f"start {start!r}: choose {', '.join(NAMES)}, or give a tensor")
        if isinstance(start, Tensor) and start.shape != (len(task.x), *task.shape):
            raise CallError(
                f"a given start has shape {tuple(start.shape)}: it is a perturbation of each point, "
                f"{(len(task.x), *task.shape)}"
            )
        if isinstance(start, Tensor):
            check_finite("a given start", start, remedy="begin at finite perturbations")
    if isinstance(loss, str) and loss != "targeted":
        raise CallError(f"loss {loss!r}: choose margin, cross_entropy, or 'targeted'")


def batches(
    task: Task, starts: Sequence[AnyStart], marks: Landmarks | None, loss: AnyLoss
) -> Iterator[slice]:
    """As many points at a time as leave all their rows within `batch`."""
    plain = sum(not (isinstance(name, str) and name == "towards") for name in starts)
    goals = task.classes - 1 if isinstance(loss, str) else 1
    rows = plain * goals + (0 if marks is None else marks.count)
    step = max(1, task.batch // max(rows, 1))
    return (slice(k, min(k + step, len(task.x))) for k in range(0, len(task.x), step))


def attack_batch(
    task: Task,
    index: slice,
    descend: Descent,
    loss: AnyLoss,
    names: Sequence[AnyStart],
    marks: Landmarks | None,
    generator: torch.Generator,
    gradients: bool,
) -> tuple[tuple[str, ...], tuple[Tensor, ...], tuple[Tensor, Tensor]]:
    """Names of the starts; delta, margin, alone and start (R, n); clean margins and flat points (n,)."""
    x, y = task.x[index], task.y[index]
    room = room_of(x, task.box)
    plain: Loss = margin if isinstance(loss, str) else loss
    batch = Batch(task, plain, descend, x, y, room, generator)
    with full_float32():
        scores = task.target.scores(x)
    clean = margin(scores, y)
    flat = torch.zeros_like(clean, dtype=torch.bool)
    if gradients:
        slope = loss_and_gradient(task.target, x, y, plain)[2]
        flat = ~((slope != 0) & torch.isfinite(slope)).any(1)
    marked = [] if marks is None else towards(marks, x, y, task.norm, room)
    given = [t if isinstance(t, str) else t[index].to(x).flatten(1) for t in names]
    starts = starts_of(given, x, marked, lambda: down_or_random(batch), task.norm, room, generator)
    if isinstance(loss, str):
        starts = with_goals(starts, others(scores, y).argsort(dim=1, descending=True)[:, :-1])
    none = torch.full_like(y, -1, dtype=torch.long)
    best = Best(torch.zeros_like(x), clean, none)
    record: list[tuple[Tensor, ...]] = []
    for radius in task.radii:
        best, alone = one_radius(batch, radius, starts, best, clean > 0)
        record.append((best.delta, best.margin, alone, best.start))
    return (
        (*(start.name for start in starts), SMALLER),
        tuple(torch.stack(t) for t in zip(*record, strict=True)),
        (clean, flat),
    )


def one_radius(
    batch: Batch, radius: float, starts: Sequence[Start], before: Best, todo: Which
) -> tuple[Best, Which]:
    """The best at this radius, and what its own starts broke.

    Where they did not, the best of the smaller radius is one more start (with the margin as its loss).
    """
    if radius == 0 or not bool(todo.any()):
        return before, ~todo
    own = batch.search(radius, starts, todo)
    best = before.or_better(own)
    left = (best.margin > 0) & (before.start >= 0)
    if bool(left.any()):
        norm, room = batch.task.norm, batch.room
        carried = Start(SMALLER, lambda r: norm.project(before.delta, r, room))
        again = replace(batch, loss=margin).search(radius, [carried], left)
        best = best.or_better(replace(again, start=torch.full_like(again.start, len(starts))))
    delta = sealed(best.delta, batch.x, batch.task.norm, radius, batch.task.box)
    best = replace(best, margin=batch.evaluate(delta))
    return best, ~todo | ((own.margin <= 0) & (best.margin <= 0))


def with_goals(starts: Sequence[Start], goals: Int[Tensor, "n others"]) -> list[Start]:
    """Each start once for each other class, likeliest first; a start towards a class runs to that class."""
    return [
        start
        if start.goal is not None
        else replace(start, name=f"{start.name} to {k + 1}", goal=goal)
        for start in starts
        for k, goal in enumerate(goals.T if start.goal is None else goals.T[:1])
    ]


def down_or_random(batch: Batch) -> Rows:
    """The direction against the gradient at the points themselves; a random one where there is none."""
    _, _, down = downhill(batch.task.target, batch.x, batch.y, batch.loss)
    lost = (down == 0).all(1, keepdim=True)
    return torch.where(lost, batch.task.norm.random(down, batch.generator), down)
