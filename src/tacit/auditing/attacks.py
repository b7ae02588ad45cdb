"""Each point's radius from above: the attack that suits the model, and what it shows of itself."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from tacit.attack.ball.apgd import apgd
from tacit.attack.ball.black_box import black_box
from tacit.attack.ball.task import Attacked
from tacit.attack.losses import Loss, cross_entropy, margin
from tacit.attack.shortest.minimal import minimal
from tacit.auditing.task import Task
from tacit.base.shapes import Index, Inputs, Labels, Numbers, Which
from tacit.measure.robustness import not_monotone, shortest_broken
from tacit.nets.kinds import kind_of

SAMPLE = 50  # points that are left by an attack with gradients, and tried by queries
QUERIES = 100  # of each start there


@dataclass(frozen=True)
class Broken:
    """The shortest perturbation that an attack found (inf: none), and what it shows of the attack itself.

    `flat`: the gradient of the margin vanishes at the point. `stuck`: the margin was not lowered at the largest
    radius. `lucky`: random starts broke it sooner than gradient starts. `unsteady`: broken at a radius and not at
    a larger one.
    """

    upper: Numbers
    flat: Which
    stuck: Which
    lucky: Which
    unsteady: Which


@dataclass(frozen=True)
class Second:
    """Lengths at which queries alone broke points (inf: none found), and the share of those tried."""

    upper: Numbers
    share: float


@dataclass(frozen=True)
class Attack:
    """`breaks(x, y)` attacks points that are right."""

    name: str
    breaks: Callable[[Tensor, Tensor], Broken]


def attack_of(task: Task, *, queries_only: bool) -> Attack:
    """The strongest attack that there is for this kind of model."""
    subject = task.subject
    if not task.radii:
        return Attack("none: radius 0 needs none", lambda x, y: unbroken(len(x)))  # noqa: ARG005
    if queries_only:
        return Attack("black box (queries only)", lambda x, y: _black_box(task, x, y))
    kind = kind_of(subject.model)
    own = kind is not None and kind.shortest is not None
    if own and task.norm.order == 2 and task.box is None:
        return Attack("minimal norm", lambda x, y: _minimal(task, x, y))
    losses: list[Loss] = [margin] if subject.outputs <= 2 else [margin, cross_entropy]
    name = "APGD on the margin" + (" and on the cross-entropy" if len(losses) > 1 else "")
    return Attack(name, lambda x, y: _apgd(task, losses, x, y))


def unbroken(n: int) -> Broken:
    """Of n points nothing is broken, and nothing is known of the attack."""
    no = torch.zeros(n, dtype=torch.bool)
    return Broken(torch.full((n,), torch.inf, dtype=torch.float64), no, no, no, no)


def _minimal(task: Task, x: Tensor, y: Tensor) -> Broken:
    found = minimal(task.subject.model, x, y, norm=task.norm.order)
    flat = task.subject.gradient(x, y).abs().amax(1) == 0
    return replace(unbroken(len(x)), upper=found.radius.double().cpu(), flat=flat.cpu())


def _apgd(task: Task, losses: list[Loss], x: Tensor, y: Tensor) -> Broken:
    """The best of all losses; a point is stuck only where every loss is."""

    def run(x: Tensor, y: Tensor, loss: Loss, **starts: Any) -> Attacked:
        model, norm = task.subject.model, task.norm.order
        return apgd(
            model, x, y, task.radii, norm=norm, box=task.box, loss=loss, means=task.means, **starts
        )

    first = run(x, y, losses[0])
    parts = [read(task, one) for one in (first, *(run(x, y, loss) for loss in losses[1:]))]
    lucky = torch.zeros(len(x), dtype=torch.bool)
    chance = won_by_chance(first)
    if bool(chance.any()):
        again = run(x[chance], y[chance], losses[0], starts=("zero", "gradient"))
        later = first_index(again.broken) > first_index(first.broken[:, chance])
        lucky[chance.cpu()] = later.cpu()
    return replace(
        parts[0],
        upper=torch.stack([part.upper for part in parts]).amin(0),
        stuck=torch.stack([part.stuck for part in parts]).all(0),
        lucky=lucky,
    )


def _black_box(task: Task, x: Tensor, y: Tensor) -> Broken:
    model, norm = task.subject.model, task.norm.order
    return read(task, black_box(model, x, y, task.radii, norm=norm, box=task.box, means=task.means))


def second_look(task: Task, x: Inputs, y: Labels, left: Which) -> Second:
    """Queries on a few of the points that are left at the largest radius, evenly from all.

    A search that sees no gradient and breaks what gradients did not is the mark of masked gradients (Athalye,
    Carlini & Wagner 2018, Section 3.1).
    """
    upper = torch.full((len(x),), torch.inf, dtype=torch.float64)
    at = left.nonzero().flatten()
    if len(at) == 0:
        return Second(upper, 0.0)
    at = at[:: -(-len(at) // SAMPLE)]
    subject = task.subject
    few, labels = x[at].to(subject.device), y[at].to(subject.device)
    options: dict[str, Any] = {"norm": task.norm.order, "box": task.box, "means": task.means}
    run = black_box(subject.model, few, labels, task.radii[-1:], steps=QUERIES, **options)
    sizes = task.norm.size(run.delta[0].flatten(1)).double().unsqueeze(0)
    upper[at] = shortest_broken(run.broken, sizes, task.radii[-1:]).cpu()
    return Second(upper, float(run.broken.double().mean()))


def read(task: Task, run: Attacked) -> Broken:
    """The lengths of what broke, and how the attack behaved."""
    sizes = torch.stack([task.norm.size(delta.flatten(1)) for delta in run.delta]).double()
    return Broken(
        shortest_broken(run.broken, sizes, task.radii).cpu(),
        run.flat.cpu(),
        (~run.lowered[-1]).cpu(),
        torch.zeros(len(run.clean), dtype=torch.bool),
        not_monotone(run.alone).cpu(),
    )


def won_by_chance(run: Attacked) -> Which:
    """Points whose smallest success began at a random start."""
    random = torch.tensor(
        [name == "random" for name in run.starts] + [False], device=run.start.device
    )
    first = first_index(run.broken).clamp_max(len(run.broken) - 1).unsqueeze(0)
    # -1, nothing better than delta = 0, reads the last entry
    return random[run.start.gather(0, first).squeeze(0)] & run.broken.any(0)


def first_index(broken: Bool[Tensor, "R n"]) -> Index:
    """The first radius at which each point is broken; R where none is (what broke stays broken)."""
    return (~broken).sum(0)
