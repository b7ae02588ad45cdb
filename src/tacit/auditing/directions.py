"""One perturbation for all points, learned at each radius, and how much of the data it breaks."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack.universal import broken_by, learned_universal
from tacit.auditing.record import UniversalAt
from tacit.auditing.task import Task
from tacit.base.progress import Progress
from tacit.base.shapes import Inputs, Labels, Numbers, Which

LEARN = 4096  # points that a direction is learned on, evenly from all; it is judged on all


def universal_at(
    task: Task, x: Inputs, y: Labels, batch: int, progress: Progress, *, gradients: bool
) -> tuple[tuple[UniversalAt, ...], Numbers]:
    """At each radius > 0: x - y delta where there are two classes, and x + delta; none without gradients.

    What a smaller radius found lies in the larger ball too, and is kept where nothing better was found there.
    Also the length of the shortest of these that breaks each point, inf where none does.
    """
    forms = (True, False) if task.subject.outputs <= 2 else (False,)
    wanted = [(radius, signed) for radius in task.radii for signed in forms if gradients]
    found: list[UniversalAt] = []
    best: dict[bool, UniversalAt] = {}
    shortest = torch.full((len(x),), torch.inf, dtype=torch.float64)
    with progress.track("universal directions", len(wanted)) as advance:
        for radius, signed in wanted:
            delta = _learned(task, x, y, radius, signed)
            broken = _judged(task, x, y, delta, signed, batch)
            # rounding must not make the perturbation longer than its radius
            size = min(radius, float(task.norm.size(delta.reshape(1, -1))))
            shortest = torch.where(broken, shortest.clamp_max(size), shortest)
            learned = UniversalAt(radius, signed, float(broken.double().mean()), delta.cpu())
            if signed in best and best[signed].broken > learned.broken:
                learned = replace(best[signed], radius=radius)
            best[signed] = learned
            found.append(learned)
            advance()
    return tuple(found), shortest


def _learned(
    task: Task, x: Inputs, y: Labels, radius: float, signed: bool
) -> Float[Tensor, "*shape"]:
    """The direction learned on some points."""
    subject = task.subject
    step = -(-len(x) // LEARN)
    few, labels = x[::step].to(subject.device), y[::step].to(subject.device)
    return learned_universal(
        subject.model, few, labels, radius, norm=task.norm.order, box=task.box, signed=signed
    )


def _judged(
    task: Task, x: Inputs, y: Labels, delta: Float[Tensor, "*shape"], signed: bool, batch: int
) -> Which:
    """Which of all points it breaks."""
    model, device = task.subject.model, task.subject.device
    parts = zip(x.split(batch), y.split(batch), strict=True)
    return torch.cat(
        [
            broken_by(
                model, part.to(device), own.to(device), delta, signed=signed, box=task.box
            ).cpu()
            for part, own in parts
        ]
    )
