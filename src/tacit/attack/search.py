"""The search that all attacks share: rows (start, point) that descend until their point is broken.

An attack is a `Descent`: it moves the rows and shows each new perturbation to the search, which
keeps the best of each row by its margin, whatever the loss was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.attack.losses import Labels, Loss, Scores, margin, targeted
from tacit.attack.norms import Norm, Room
from tacit.attack.target import Target

Rows = Float[Tensor, "n D"]
Numbers = Float[Tensor, " n"]
State = TypeVar("State")

ROWS_WORTH_DROPPING = 0.1


@dataclass
class Search:
    """Rows under attack at one radius. `point` says whose a row is, `id` where its best is kept."""

    target: Target
    loss: Loss
    norm: Norm
    generator: torch.Generator
    x: Rows
    y: Labels
    radius: Float[Tensor, "n 1"]
    room: Room | None
    goal: Labels | None
    point: Int[Tensor, " n"]
    id: Int[Tensor, " n"]
    best_delta: Float[Tensor, "rows D"]
    best_margin: Float[Tensor, " rows"]
    broken: Bool[Tensor, " points"]

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
        """Keep what is better than the best of its row."""
        found = margin(scores, self.y)
        better = found < self.best_margin[self.id]
        self.best_delta[self.id[better]] = delta[better]
        self.best_margin[self.id[better]] = found[better]
        self.broken[self.point[found <= 0]] = True
        return found

    def prune(self, state: State) -> State:
        """The rows of broken points dropped, here and in the state of the attack."""
        live = ~self.broken[self.point]
        if bool(live.any()) and live.double().mean() > 1 - ROWS_WORTH_DROPPING:
            return state  # not worth the copies
        self.x, self.y, self.radius = self.x[live], self.y[live], self.radius[live]
        self.room = None if self.room is None else (self.room[0][live], self.room[1][live])
        self.goal = None if self.goal is None else self.goal[live]
        self.point, self.id = self.point[live], self.id[live]
        return replace(state, **{f.name: getattr(state, f.name)[live] for f in fields(state)})  # type: ignore[type-var,arg-type]

    def move(self, delta: Rows, way: Rows, length: float | Float[Tensor, "n 1"]) -> Rows:
        """A step of that length in radii; a fresh random point of the ball where there is no way down."""
        moved = delta + length * self.radius * way
        lost = (way == 0).all(1, keepdim=True)
        if bool(lost.any()):
            anew = self.radius * self.norm.random(delta, self.generator)
            moved = torch.where(lost, anew, moved)
        return self.project(moved)

    def project(self, z: Rows) -> Rows:
        """On ball and box."""
        return self.norm.project(z, self.radius, self.room)


Descent = Callable[[Search, Rows], None]


def downhill(target: Target, x: Rows, y: Labels, loss: Loss) -> tuple[Scores, Numbers, Rows]:
    """Scores, losses, and a direction against the gradient of the loss; only its direction means something.

    Where the loss is saturated (its derivative in the scores is 0) the margin takes its place. The derivative is
    scaled to 1 before it is pulled back, so that a small one does not underflow on its way.
    """
    scores, pullback = target.with_pullback(x)
    value, slope = slope_of(loss, scores, y)
    if bool((steepness(slope) == 0).any()):
        _, steady = slope_of(margin, scores, y)
        slope = torch.where(steepness(slope) == 0, steady, slope)
    return scores, value, -pullback(slope / steepness(slope)).nan_to_num(nan=0.0)


def towards_goal(goal: Labels) -> Loss:
    """The margin against one class where a row has a goal, against all others where it is -1."""
    aimed = targeted(goal.clamp_min(0))

    def loss(scores: Scores, y: Labels) -> Numbers:
        return torch.where(goal >= 0, aimed(scores, y), margin(scores, y))

    return loss


def slope_of(loss: Loss, scores: Scores, y: Labels) -> tuple[Numbers, Scores]:
    """The loss and its derivative in the scores."""
    with torch.enable_grad():
        leaf = scores.detach().requires_grad_(True)
        value = loss(leaf, y)
        (slope,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach(), slope


def steepness(slope: Scores) -> Float[Tensor, " n *one"]:
    """The largest entry of each row, (n,) or (n, 1)."""
    return slope.abs() if slope.dim() == 1 else slope.abs().amax(1, keepdim=True)
