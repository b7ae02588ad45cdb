"""The search that all attacks share: rows (start, point) that descend until their point is broken.

An attack is a `Descent`: it moves the rows and shows each new perturbation to the search, which
keeps the best of each row by its margin, whatever the loss was.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.attack.losses import Loss, Scores, cross_entropy, margin, others, targeted
from tacit.attack.norms import Norm, Room
from tacit.attack.target import Target
from tacit.base.shapes import Column, Labels, Numbers, Rows

State = TypeVar("State")

WORTH_DROPPING = 0.3  # looks at a row: what a copy of its state costs


@dataclass
class Search:
    """Rows under attack at one radius. `point` says whose a row is, `id` where its best is kept."""

    target: Target
    loss: Loss
    norm: Norm
    generator: torch.Generator
    x: Rows
    y: Labels
    radius: Column
    room: Room | None
    goal: Labels | None
    point: Int[Tensor, " n"]
    id: Int[Tensor, " n"]
    best_delta: Float[Tensor, "rows D"]
    best_margin: Float[Tensor, " rows"]
    broken: Bool[Tensor, " points"]
    wasted: float = 0.0
    counts: bool = True

    def __post_init__(self) -> None:
        if self.norm.order == math.inf:
            # cube and box are one box, met once
            low, high = (-self.radius, self.radius) if self.room is None else self.room
            low, high = torch.maximum(low, -self.radius), torch.minimum(high, self.radius)
            self.room = low.expand_as(self.x).contiguous(), high.expand_as(self.x).contiguous()

    def look(self, delta: Rows) -> tuple[Numbers, Rows]:
        """The loss of each row and the direction against its gradient, zero where there is none."""
        loss = self.loss if self.goal is None else towards_goal(self.goal)
        scores, value, down = downhill(self.target, self.x + delta, self.y, loss)
        self.offer(delta, scores)
        return value, down

    def query(self, delta: Rows) -> Numbers:
        """The margin of each row, by its scores alone."""
        return self.offer(delta, self.target.scores(self.x + delta))

    def offer(self, delta: Rows, scores: Scores) -> Numbers:
        """Keep what is better than the best of its row; a point that was broken before is done."""
        found = margin(scores, self.y)
        better = (found < self.best_margin[self.id]) & ~self.broken[self.point]
        better = better.nonzero().squeeze(1)
        ids = self.id[better]
        self.best_delta.index_copy_(0, ids, delta.index_select(0, better))
        self.best_margin[ids] = found[better]
        if self.counts:
            self.broken[self.point[found <= 0]] = True
        return found

    def widened(self, factor: float) -> Search:
        """The same rows in balls of that many radii, where a broken point is searched on: it does not count."""
        return replace(
            self,
            radius=self.radius * factor,
            best_delta=torch.zeros_like(self.x),
            best_margin=torch.full_like(self.best_margin, torch.inf),
            broken=torch.zeros_like(self.broken),
            counts=False,
        )

    def prune(self, state: State) -> State:
        """The rows of broken points dropped, here and in the state of the attack.

        They wait until what they cost is worth the copies.
        """
        live = (~self.broken[self.point]).nonzero().squeeze(1)
        self.wasted += 1 - len(live) / max(len(self.x), 1)
        if len(live) and self.wasted < WORTH_DROPPING:
            return state
        self.wasted = 0.0
        self.x, self.y, self.radius = self.x[live], self.y[live], self.radius[live]
        self.room = None if self.room is None else (self.room[0][live], self.room[1][live])
        self.goal = None if self.goal is None else self.goal[live]
        self.point, self.id = self.point[live], self.id[live]
        return replace(state, **{f.name: getattr(state, f.name)[live] for f in fields(state)})  # type: ignore[type-var,arg-type]

    def move(self, delta: Rows, way: Rows, length: float | Column) -> Rows:
        """A step of that length in radii; a fresh random point of the ball where there is no way down."""
        moved = torch.addcmul(delta, way, length * self.radius)
        lost = way.norm(dim=1, keepdim=True) == 0
        if bool(lost.any()):
            anew = self.radius * self.norm.random(delta, self.generator)
            moved = torch.where(lost, anew, moved)
        return self.project(moved)

    def project(self, z: Rows) -> Rows:
        """On ball and box."""
        if self.norm.order == math.inf and self.room is not None:
            return z.clamp(*self.room)
        return self.norm.project(z, self.radius, self.room)


Descent = Callable[[Search, Rows], None]


def downhill(target: Target, x: Rows, y: Labels, loss: Loss) -> tuple[Scores, Numbers, Rows]:
    """Scores, losses, and a direction against the gradient of the loss; only its direction means something.

    Where the loss is saturated (its derivative in the scores is 0) the margin takes its place. The derivative is
    scaled to 1 before it is pulled back, so that a small one does not underflow on its way.
    """
    scores, pullback = target.with_pullback(x)
    value, slope = slope_of(loss, scores, y)
    steep = steepness(slope)
    if bool((steep == 0).any()):
        slope = torch.where(steep == 0, slope_of(margin, scores, y)[1], slope)
        steep = steepness(slope)
    down = pullback(slope / -steep)
    # the sum finds NaN and inf in less time than the copy that replaces them
    return scores, value, down if bool(down.sum().isfinite()) else down.nan_to_num(nan=0.0)


def towards_goal(goal: Labels) -> Loss:
    """The margin against one class where a row has a goal, against all others where it is -1."""
    aimed = targeted(goal.clamp_min(0))

    def loss(scores: Scores, y: Labels) -> Numbers:
        return torch.where(goal >= 0, aimed(scores, y), margin(scores, y))

    return loss


def slope_of(loss: Loss, scores: Scores, y: Labels) -> tuple[Numbers, Scores]:
    """The loss and its derivative in the scores: known for logits, by autograd otherwise.

    Margin: e_y less the mean of e_k over the largest others. log P(y | x): e_y less the probabilities.
    """
    if scores.dim() == 2 and (loss is margin or loss is cross_entropy):
        value = loss(scores, y)
        if loss is cross_entropy:
            away = scores.softmax(1)
        else:
            rest = others(scores, y)
            away = (rest == rest.amax(1, keepdim=True)).to(scores.dtype)
            away /= away.sum(1, keepdim=True)
        one = torch.ones_like(value).unsqueeze(1)
        return value, away.neg_().scatter_add_(1, y.long().unsqueeze(1), one)
    with torch.enable_grad():
        leaf = scores.detach().requires_grad_(True)
        value = loss(leaf, y)
        (slope,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach(), slope


def steepness(slope: Scores) -> Float[Tensor, " n *one"]:
    """The largest entry of each row, (n,) or (n, 1)."""
    return slope.abs() if slope.dim() == 1 else slope.abs().amax(1, keepdim=True)
