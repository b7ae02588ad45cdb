r"""FAB, the fast adaptive boundary attack (Croce & Hein 2020, Section 2 and Algorithm 1), as AutoAttack runs it.

A search for the shortest perturbation d in a norm, from d = 0. With the margin linearised at d, and P the nearest
point of its hyperplane (and the box), one step is

    d1 = P(d) - d,    d2 = P(0),    a = min(|d1| / (|d1| + |d2|), ALPHA)
    d <- (1 - a) (d + ETA d1) + a ETA d2,    into the box

so that every step is pulled towards the point itself. Where the new d breaks the point, it is kept if it is
the shortest, and the search goes on from BETA d. In AutoAttack's set it is *targeted*: one search for each other
class k, with z_y - z_k for the margin. (The paper ends with a search on the last ray; that set does not.)

It has none of tacit's remedies: one start, and where the gradient is 0 it stays. `minimal` is what to use; this
is for saying what AutoAttack would say.
"""

from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from tacit.attack.ball.task import room_of, task_of
from tacit.attack.losses import Loss, margin, others, targeted
from tacit.attack.norms import Norm, Room
from tacit.attack.shortest.minimal import Found
from tacit.attack.shortest.walk import inside, margin_at, nearest_of_half_space
from tacit.attack.target import Target, loss_and_gradient
from tacit.base.shapes import Labels, Numbers, Rows

ALPHA, ETA, BETA = 0.1, 1.05, 0.9  # of AutoAttack


def fab(
    model: Any,
    x: Float[Tensor, " n *shape"],
    y: Shaped[Tensor, " n"],
    *,
    norm: float | str | Norm = 2,
    box: tuple[float, float] | None = None,
    steps: int = 100,
) -> Found:
    """The shortest perturbation that FAB finds of each point; a model with one output has one other class."""
    task = task_of(model, x, y, (0.0,), norm=norm, box=box, batch=None)
    clean = task.target.scores(task.x)
    start = margin(clean, task.y)
    size, best = torch.full_like(start, torch.inf), torch.zeros_like(task.x)
    size[start <= 0] = 0.0
    here = (start > 0).nonzero().squeeze(1)
    x_, y_ = task.x[here], task.y[here]
    room = room_of(x_, box)
    if len(here):
        goals = here.new_zeros(len(here), 1)  # one output has one other class
        if not task.one_output:
            goals = others(clean[here], y_).argsort(dim=1, descending=True)[:, :-1]
        k = goals.shape[1]
        rooms = None if room is None else (room[0].repeat(k, 1), room[1].repeat(k, 1))
        found = one_search(
            task.target, x_.repeat(k, 1), y_.repeat(k), task.norm, rooms, targeted(goals.T.flatten()), steps
        )  # fmt: skip
        length = task.norm.size(found)
        length = torch.where(length > 0, length, torch.inf).view(k, -1)
        size[here], winner = length.min(0)
        best[here] = found.view(k, len(here), -1)[winner, torch.arange(len(here), device=x_.device)]
    return Found(size, best.unflatten(1, task.shape))


def one_search(
    target: Target, x: Rows, y: Labels, norm: Norm, room: Room | None, loss: Loss, steps: int
) -> Rows:
    """The shortest perturbation on the way that breaks each point; 0 where none did."""
    delta, best = torch.zeros_like(x), torch.zeros_like(x)
    size = torch.full_like(x[:, 0], torch.inf)
    for _ in range(steps):
        _, value, g = loss_and_gradient(target, x + delta, y, loss)
        to_plane = onto(delta, delta, value, g, norm, room) - delta
        own = onto(torch.zeros_like(delta), delta, value, g, norm, room)
        here, there = norm.size(to_plane), norm.size(own)
        share = (here / (here + there).clamp_min(torch.finfo(x.dtype).tiny)).clamp_max(ALPHA)
        a = share.unsqueeze(1)
        delta = inside((1 - a) * (delta + ETA * to_plane) + a * ETA * own, room)
        broken = margin_at(target, x + delta, y) <= 0
        closer = broken & (norm.size(delta) < size)
        best[closer], size[closer] = delta[closer], norm.size(delta)[closer]
        delta = torch.where(broken.unsqueeze(1), BETA * delta, delta)
    return best


def onto(start: Rows, at: Rows, value: Numbers, g: Rows, norm: Norm, room: Room | None) -> Rows:
    """The nearest point to `start` of the hyperplane value + <g, d - at> = 0, in the box; `start` where g = 0."""
    height = value + (g * (start - at)).sum(1)
    down = torch.where(height >= 0, 1.0, -1.0).unsqueeze(1) * g
    left = (
        None if room is None else ((room[0] - start).clamp_max(0), (room[1] - start).clamp_min(0))
    )
    return start + nearest_of_half_space(down, -height.abs(), norm, left)
