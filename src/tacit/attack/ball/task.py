"""What every attack is asked and what it answers, both checked here and nowhere else."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from tacit.attack.norms import Norm, Room, known_norm
from tacit.attack.target import Target, target_of
from tacit.base.checks import check_finite
from tacit.base.shapes import Labels, Numbers, Rows, Which
from tacit.errors import CallError, RunError
from tacit.nets.kinds import first_tensor

Box = tuple[float, float]

NUMBERS_AT_ONCE = 2**20  # a few MB stay in the cache of a core
MOST_ROWS = 16_384
ON_A_GPU = 64  # times as much: small batches leave it idle


@dataclass(frozen=True)
class Attacked:
    """The best perturbation found in each ball, R radii for n points.

    `broken` is margin <= 0 at x + delta, evaluated anew on what is returned. The search of a point ends when
    it is broken, so its margin is not the least possible. Radii are in ascending order. A larger radius
    inherits what a smaller one found, so `broken` only grows with it; `alone` is what each radius broke by
    its own starts: where it falls with the radius, the attack is too weak. `start` is the index into `starts`
    of the winner, -1 where nothing was better than delta = 0. `flat`: the gradient of the loss vanished at
    the point itself (False where no gradient was asked for).
    """

    radii: Float[Tensor, " R"]
    delta: Float[Tensor, "R n *shape"]
    margin: Float[Tensor, "R n"]
    broken: Bool[Tensor, "R n"]
    alone: Bool[Tensor, "R n"]
    start: Int[Tensor, "R n"]
    starts: tuple[str, ...]
    clean: Numbers
    flat: Which

    @property
    def robust_accuracy(self) -> Float[Tensor, " R"]:
        """The share of points left unbroken at each radius: an upper bound of the truth."""
        return 1 - self.broken.double().mean(1)

    @property
    def lowered(self) -> Bool[Tensor, "R n"]:
        """Where the search got below the clean margin at all."""
        return self.margin < self.clean


@dataclass(frozen=True)
class Task:
    """A call, checked: rows x (n, D), labels as the losses want them, radii in ascending order."""

    target: Target
    x: Rows
    y: Labels
    shape: tuple[int, ...]
    norm: Norm
    box: Box | None
    radii: tuple[float, ...]
    one_output: bool
    classes: int
    batch: int


def room_of(x: Rows, box: Box | None) -> Room | None:
    """What the box leaves to delta."""
    return None if box is None else (box[0] - x, box[1] - x)


def task_of(
    model: Any,
    x: Float[Tensor, " n *shape"],
    y: Shaped[Tensor, " labels"],
    radii: Sequence[float],
    *,
    norm: float | str | Norm,
    box: Box | None,
    batch: int | None,
) -> Task:
    """The call checked; what is wrong with it is said in one line."""
    check_points(x, y, box)
    check_fits(model, x)
    bad = [r for r in radii if not (math.isfinite(r) and r >= 0)]
    if bad or not len(radii):
        raise CallError(f"radii {list(radii)}: give finite numbers >= 0, at least one")
    shape, rows = tuple(x.shape[1:]), x.detach().flatten(1)
    target = target_of(model, shape)
    scores = target.scores(rows[:1])
    one_output = scores.dim() == 1
    classes = 2 if one_output else scores.shape[1]
    if batch is None:
        more = ON_A_GPU if rows.is_cuda else 1
        batch = min(max(more * NUMBERS_AT_ONCE // rows.shape[1], 1), more * MOST_ROWS)
    elif batch < 1:
        raise CallError(f"batch={batch}: it is the number of rows at a time, at least 1")
    labels = known_labels(y, x, one_output, classes)
    ascending = tuple(sorted(float(r) for r in radii))
    return Task(
        target, rows, labels, shape, known_norm(norm), box, ascending, one_output, classes, batch
    )


def check_points(
    x: Float[Tensor, " n *shape"], y: Shaped[Tensor, " labels"], box: Box | None
) -> None:
    """Finite floating-point points in the box, one label each."""
    if x.dim() < 2 or len(x) == 0 or x[0].numel() == 0:
        raise CallError(
            f"x has shape {tuple(x.shape)}: give at least one point, as (n, ...) with at least one coordinate"
        )
    if len(y) != len(x):
        raise CallError(f"{len(x)} points with {len(y)} labels: one label a point is needed")
    check_finite("x", x)
    if box is None:
        return
    low, high = box
    if not low < high:
        raise CallError(f"box {low},{high}: the low end must be below the high end")
    if bool(x.min() < low) or bool(x.max() > high):
        raise CallError(
            f"x runs from {x.min().item():.4g} to {x.max().item():.4g}, outside the box {low:g},{high:g}: "
            "widen the box or rescale x"
        )


def check_fits(model: Any, x: Float[Tensor, " n *shape"]) -> None:
    """The model's numbers are of the type and on the device of x."""
    mine = first_tensor(model)
    if mine is not None and (mine.dtype, mine.device) != (x.dtype, x.device):
        raise CallError(
            f"x is {x.dtype} on {x.device}, the model {mine.dtype} on {mine.device}: "
            "move one to the other with .to(...)"
        )


def known_labels(
    y: Labels, x: Float[Tensor, " n *shape"], one_output: bool, classes: int
) -> Labels:
    """+-1 of the type of x for one output, class indices for logits."""
    seen = y.unique()
    if one_output:
        if not bool((seen.abs() == 1).all()):
            raise CallError(
                f"labels {seen.tolist()[:5]}: a model with one output is attacked with labels -1 and +1"
            )
        return y.to(x.device, x.dtype)
    index = y.to(x.device, torch.long)
    if not bool((index == y.to(x.device)).all() and (index >= 0).all() and (index < classes).all()):
        raise CallError(
            f"labels from {seen.min().item():g} to {seen.max().item():g} with {classes} logits: "
            f"labels are whole numbers from 0 to {classes - 1}"
        )
    return index


def sealed(delta: Rows, x: Rows, norm: Norm, radius: float, box: Box | None) -> Rows:
    """delta, after the check that it is inside ball and box to rounding. Every attack returns through here."""
    slack = torch.finfo(x.dtype).eps ** 0.75
    size = float(norm.size(delta).max())
    if not size <= radius * (1 + slack):
        raise RunError(
            f"an attack left the l{norm.name} ball: size {size!r} at radius {radius!r}; this is a defect of tacit"
        )
    if box is not None:
        moved, hair = x + delta, slack * max(1.0, *map(abs, box))
        if not (moved.min() >= box[0] - hair and moved.max() <= box[1] + hair):
            raise RunError(f"an attack left the box {box}: this is a defect of tacit")
    return delta
