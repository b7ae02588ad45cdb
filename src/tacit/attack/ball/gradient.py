"""FGM and PGD: one step, and steps of one length, against the gradient of the loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Shaped
from torch import Tensor

from tacit.attack.ball.driver import AnyLoss, AnyStart, attack
from tacit.attack.ball.search import Descent, Search
from tacit.attack.ball.task import Attacked, Box, task_of
from tacit.attack.losses import margin
from tacit.attack.norms import Norm
from tacit.base.shapes import Rows
from tacit.errors import CallError

REACH = 2.5  # all steps of PGD together, in radii (Madry et al. 2018)


@dataclass(frozen=True)
class Walk:
    """Where the rows are, and which way is down."""

    delta: Rows
    down: Rows


def pgd_descent(steps: int, step: float) -> Descent:
    """delta <- project(delta + step * radius * steepest(down)), `steps` times."""

    def descend(search: Search, delta: Rows) -> None:
        for _ in range(steps):
            _, down = search.look(delta)
            walk = search.prune(Walk(delta, down))
            if len(walk.delta) == 0:
                return
            delta = search.move(walk.delta, search.norm.steepest(walk.down), step)
        search.query(delta)

    return descend


def fgm(
    model: Any,
    x: Float[Tensor, " n *shape"],
    y: Shaped[Tensor, " labels"],
    radii: Sequence[float],
    *,
    norm: float | str | Norm = 2,
    box: Box | None = None,
    loss: AnyLoss = margin,
    seed: int = 0,
    batch: int | None = None,
) -> Attacked:
    """The fast gradient method (Goodfellow et al. 2015): the extreme point of ball and box against the gradient.

    With a box it is the exact minimiser of the linearised loss on ball and box, so it is exact on linear models.
    """
    task = task_of(model, x, y, radii, norm=norm, box=box, batch=batch)
    one_look = pgd_descent(0, 0.0)
    return attack(task, model, one_look, loss=loss, starts=["gradient"], means=None, seed=seed)


def pgd(
    model: Any,
    x: Float[Tensor, " n *shape"],
    y: Shaped[Tensor, " labels"],
    radii: Sequence[float],
    *,
    norm: float | str | Norm = 2,
    box: Box | None = None,
    loss: AnyLoss = margin,
    starts: Sequence[AnyStart] = ("zero", "random", "towards"),
    means: Float[Tensor, " C *shape"] | None = None,
    steps: int = 40,
    step: float | None = None,
    seed: int = 0,
    batch: int | None = None,
) -> Attacked:
    """Projected gradient descent (Madry et al. 2018) on the loss, from each start.

    `step` is the length of a step in radii, by default 2.5 / steps. `starts` as in `tacit.attack.ball.starts`;
    `batch` is the number of rows (points times starts) at a time.
    """
    if steps < 1:
        raise CallError(f"steps={steps}: at least one is needed")
    task = task_of(model, x, y, radii, norm=norm, box=box, batch=batch)
    descend = pgd_descent(steps, REACH / steps if step is None else step)
    return attack(task, model, descend, loss=loss, starts=starts, means=means, seed=seed)
