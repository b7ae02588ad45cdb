"""The audit itself: every point from both sides, batch by batch; then one perturbation for all of them.

Broken means margin <= 0, for the clean accuracy too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from tacit.attack.losses import margin
from tacit.attack.norms import Norm, known_norm
from tacit.auditing.attacks import Attack, attack_of, unbroken
from tacit.auditing.averaging import averaging, means
from tacit.auditing.certificates import Certificate, certificate_of, nothing_proved
from tacit.auditing.choices import known_box, known_radii, natural_radii
from tacit.auditing.directions import universal_at
from tacit.auditing.points import labels_for, read_points
from tacit.auditing.record import AuditRecord
from tacit.auditing.subject import Subject, load_model, subject_of
from tacit.auditing.task import Task
from tacit.errors import CallError
from tacit.lab.bench import Progress
from tacit.lab.runner import choose_device
from tacit.measure.flags import raised_flags
from tacit.measure.robustness import consistent, robust_curve
from tacit.measure.statistics import proportion

BATCH = 1000
# what rounding is worth as a length: a share of the radius, and of the size of the point
RELATIVE = {torch.float64: 1e-6}
RELATIVE_ELSE = 1e-3
ROUNDINGS = 100


@dataclass(frozen=True)
class Seen:
    """What is kept of a batch: `right` and `changed` of all its points, the rest of those that are right.

    `proved` and `reachable` are the certificate's ends, `reached` is the attack's, `slack` is for rounding.
    """

    right: Bool[Tensor, " n"]
    changed: Bool[Tensor, " n"]
    proved: Float[Tensor, " m"]
    reachable: Float[Tensor, " m"]
    reached: Float[Tensor, " m"]
    slack: Float[Tensor, " m"]
    flat: Bool[Tensor, " m"]
    stuck: Bool[Tensor, " m"]
    lucky: Bool[Tensor, " m"]
    unsteady: Bool[Tensor, " m"]


def audit(
    model: Any,
    data: Any,
    *,
    norm: float | str = 2,
    radii: Sequence[float] | None = None,
    box: Sequence[float] | None = None,
    subclass: str | None = None,
    limit: int | None = None,
    black_box: bool = False,
    device: str = "auto",
    batch: int = BATCH,
    progress: Progress,
) -> AuditRecord:
    """See `tacit.audit`; `progress` is told of each batch."""
    if batch < 1:
        raise CallError(f"batch {batch}: at least 1 point at a time")
    known = known_norm(norm)
    given = None if radii is None else known_radii(radii)
    chosen = choose_device(device)
    name = str(Path(model).name) if isinstance(model, str | Path) else type(model).__name__
    points = read_points(data, subclass=subclass, limit=limit)
    model = load_model(str(model)) if isinstance(model, str | Path) else model
    home = _home(model)
    try:
        subject = subject_of(model, points.x, chosen, gradient=not black_box)
        x = points.x.to(subject.dtype).reshape(len(points.x), *subject.shape)
        limits = known_box(box, x)
        y = labels_for(points.y, subject.outputs)
        y = y.to(subject.dtype) if subject.outputs == 1 else y
        used = given or natural_radii(x.flatten(1), y, known)
        task = Task(
            subject, tuple(r for r in used if r > 0), known, limits, _class_means(x, y, subject)
        )
        certificate = certificate_of(task, x[:1].to(subject.device), y[:1].to(subject.device))
        attack = attack_of(task, queries_only=black_box)
        seen = _watched(task, certificate, attack, x, y, batch, progress)
        universal = () if black_box else universal_at(task, x, y, batch, progress)
        features = averaging(subject, x, y, points.subclass, batch)
    finally:
        if home is not None:
            model.to(home)
    lower, upper = _intervals(seen)
    return AuditRecord(
        model=name,
        n=len(x),
        norm=known.name,
        box=limits,
        clean=proportion(int(seen.right.sum()), len(x)),
        curve=robust_curve(lower, upper, used),
        flags=raised_flags(_shares(seen, lower, queries_only=black_box)),
        universal=universal,
        averaging=features,
        certificate=certificate.name,
        attack=attack.name,
        lower=lower,
        upper=upper,
    )


def _intervals(seen: Seen) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Each point's radius from below and above; 0 where the point is not right."""

    def spread(values: Float[Tensor, " m"], elsewhere: float = 0.0) -> Float[Tensor, " n"]:
        whole = torch.full((len(seen.right),), elsewhere, dtype=torch.float64)
        whole[seen.right] = values
        return whole

    # over all points, so that a contradiction names them by their own numbers
    reached = spread(seen.reached)
    lower = consistent(spread(seen.proved), reached, spread(seen.slack))
    reachable = spread(seen.reachable)
    return torch.minimum(lower, reachable), torch.minimum(reached, reachable)


def _shares(seen: Seen, lower: Float[Tensor, " n"], *, queries_only: bool) -> dict[str, float]:
    """The number of each kind of flag, in the order of `tacit.measure.flags.KINDS`."""

    def share(flags: Bool[Tensor, " k"]) -> float:
        return float(flags.double().mean()) if len(flags) else 0.0

    return {
        "gradient-vanishes": share(seen.flat),
        "loss-not-increasing": share(seen.stuck),
        "random-beats-gradient": share(seen.lucky),
        "not-monotone": share(seen.unsteady),
        "output-random": share(seen.changed),
        "queries-only": float(queries_only),
        "no-certificate": share(lower[seen.right] == 0),
    }


def _watched(
    task: Task,
    certificate: Certificate,
    attack: Attack,
    x: Float[Tensor, "n ..."],
    y: Shaped[Tensor, " n"],
    batch: int,
    progress: Progress,
) -> Seen:
    """Every batch on the device, its numbers kept on the host."""
    parts = list(zip(x.split(batch), y.split(batch), strict=True))
    seen = []
    with progress.track("points", len(parts)) as advance:
        for few, labels in parts:
            here = few.to(task.subject.device), labels.to(task.subject.device)
            seen.append(_one_batch(task, certificate, attack, *here))
            advance()
    return Seen(*(torch.cat([getattr(part, one.name) for part in seen]) for one in fields(Seen)))


def _one_batch(
    task: Task,
    certificate: Certificate,
    attack: Attack,
    x: Float[Tensor, "n ..."],
    y: Shaped[Tensor, " n"],
) -> Seen:
    """Certificate and attack of the points that are right."""
    subject = task.subject
    scores, again = subject.scores(x), subject.scores(x)
    changed = ~torch.isclose(scores, again, rtol=1e-4, atol=1e-6).reshape(len(x), -1).all(1)
    right = margin(scores, y) > 0
    x, y = x[right], y[right]
    some = len(x) > 0
    proved, reachable = certificate.ends(x, y) if some else nothing_proved(x, y)
    broken = attack.breaks(x, y) if some else unbroken(0)
    return Seen(
        right.cpu(),
        changed.cpu(),
        proved.cpu(),
        reachable.cpu(),
        broken.upper,
        _rounding(task.norm, x, broken.upper),
        broken.flat,
        broken.stuck,
        broken.lucky,
        broken.unsteady,
    )


def _rounding(
    norm: Norm, x: Float[Tensor, "n ..."], upper: Float[Tensor, " n"]
) -> Float[Tensor, " n"]:
    """The length that the rounding of the model's type is worth."""
    size = norm.size(x.flatten(1)).double().cpu()
    share = RELATIVE.get(x.dtype, RELATIVE_ELSE)
    return share * upper + ROUNDINGS * torch.finfo(x.dtype).eps * size


def _class_means(
    x: Float[Tensor, "n ..."], y: Shaped[Tensor, " n"], subject: Subject
) -> Float[Tensor, "C ..."] | None:
    """The mean of each class (one output: of -1, then of +1), or None where a class has no point."""
    index = ((y + 1) / 2).long() if subject.outputs == 1 else y
    count = max(subject.outputs, 2)
    if len(index.unique()) < count:
        return None
    return means(x.flatten(1), index).to(subject.device).reshape(count, *subject.shape)


def _home(model: Any) -> torch.device | None:
    """Where a torch module's parameters are, so that it can be given back there."""
    if not isinstance(model, nn.Module):
        return None
    return next((tensor.device for tensor in (*model.parameters(), *model.buffers())), None)
