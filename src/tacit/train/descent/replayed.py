"""Steps of a descent on a GPU, recorded once: to launch its kernels takes the host longer than they run."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.base.recording import recorded
from tacit.base.shapes import Sets
from tacit.train.descent.trainees import MultiClassTrainee, State, Trainee, TwoLayerTrainee
from tacit.train.descent.updates import Optimizer


def may_record(trainee: Trainee, optimizer: Optimizer, device: str, perturb: Any) -> bool:
    """On a GPU, where a step is in closed form: no graph, nothing that the host reads, no points that move."""
    closed = isinstance(trainee, TwoLayerTrainee | MultiClassTrainee)
    return device == "cuda" and closed and optimizer == "sgd" and perturb is None


def replayed(
    step: Callable[[Tensor, Tensor], Float[Tensor, "*e"]],
    state: State,
    x: Sets,
    y: Tensor,
    batch: int | None,
) -> Callable[[Int[Tensor, " B"] | None], Float[Tensor, "*e"]]:
    """The step on given rows of (x, y), or on all points (None): replayed, but for a last batch that is smaller.

    `step` moves `state` in place. A recording reads its rows from one place and writes its loss to one.
    """
    slot = torch.arange(x.shape[-2] if batch is None else batch, device=x.device)
    loss: list[Tensor] = []

    def once() -> None:
        here = (x, y) if batch is None else (x[..., slot, :], y[..., slot])
        loss[:] = [step(*here)]

    before = {name: tensor.clone() for name, tensor in state.items()}
    replay = recorded(once)
    for name, tensor in state.items():
        tensor.copy_(before[name])

    def move(rows: Int[Tensor, " B"] | None) -> Float[Tensor, "*e"]:
        if rows is not None and len(rows) != len(slot):
            return step(x[..., rows, :], y[..., rows])
        if rows is not None:
            slot.copy_(rows)
        replay()
        return loss[0].clone()

    return move
