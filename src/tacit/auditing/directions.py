"""One perturbation for all points, learned at each radius, and how much of the data it breaks."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from tacit.attack.universal import broken_by, learned_universal
from tacit.auditing.record import UniversalAt
from tacit.auditing.task import Task
from tacit.lab.bench import Progress

LEARN = 4096  # points that a direction is learned on, evenly from all; it is judged on all


def universal_at(
    task: Task,
    x: Float[Tensor, "n ..."],
    y: Shaped[Tensor, " n"],
    batch: int,
    progress: Progress,
) -> tuple[UniversalAt, ...]:
    """At each radius > 0: x - y delta where there are two classes, and x + delta.

    What a smaller radius found lies in the larger ball too, and is kept where nothing better was found there.
    """
    forms = (True, False) if task.subject.outputs <= 2 else (False,)
    wanted = [(radius, signed) for radius in task.radii for signed in forms]
    found: list[UniversalAt] = []
    best: dict[bool, UniversalAt] = {}
    with progress.track("universal directions", len(wanted)) as advance:
        for radius, signed in wanted:
            learned = _learned(task, x, y, radius, signed, batch)
            if signed in best and best[signed].broken > learned.broken:
                learned = replace(best[signed], radius=radius)
            best[signed] = learned
            found.append(learned)
            advance()
    return tuple(found)


def _learned(
    task: Task,
    x: Float[Tensor, "n ..."],
    y: Shaped[Tensor, " n"],
    radius: float,
    signed: bool,
    batch: int,
) -> UniversalAt:
    """The direction learned on some points, and the share of all points that it breaks."""
    subject = task.subject
    step = -(-len(x) // LEARN)
    few, labels = x[::step].to(subject.device), y[::step].to(subject.device)
    delta = learned_universal(
        subject.model, few, labels, radius, norm=task.norm.order, box=task.box, signed=signed
    )
    broken = [
        broken_by(
            subject.model,
            part.to(subject.device),
            own.to(subject.device),
            delta,
            signed=signed,
            box=task.box,
        ).cpu()
        for part, own in zip(x.split(batch), y.split(batch), strict=True)
    ]
    return UniversalAt(radius, signed, float(torch.cat(broken).double().mean()), delta.cpu())
