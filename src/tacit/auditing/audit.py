"""The audit itself: every point from both sides, batch by batch; then one perturbation for all of them.

Broken means margin <= 0, for the clean accuracy too.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.attack.losses import margin
from tacit.attack.target import ModelError
from tacit.auditing.attacks import Attack, attack_of, second_look, unbroken
from tacit.auditing.averaging import averaging
from tacit.auditing.certificates import certificate_of, nothing_proved
from tacit.auditing.choices import (
    known_box,
    known_count,
    known_radii,
    named_norm,
    natural_radii,
    within_reach,
)
from tacit.auditing.directions import universal_at
from tacit.auditing.points import labels_for, read_points
from tacit.auditing.record import AuditRecord
from tacit.auditing.rounding import double_of, rounding
from tacit.auditing.subject import Subject, importable_here, load_model, subject_of
from tacit.auditing.task import Task
from tacit.base.device import choose_device
from tacit.base.progress import Progress, Silent
from tacit.base.shapes import Inputs, Labels, Numbers, Which
from tacit.base.statistics import proportion
from tacit.certify.choice import Certificate
from tacit.errors import CallError
from tacit.measure.averaging import means
from tacit.measure.flags import raised_flags
from tacit.measure.robustness import consistent, robust_curve
from tacit.nets.kinds import first_tensor

BATCH = 1000
SILENT = Silent()


@dataclass(frozen=True)
class Seen:
    """What is kept of a batch: `right` and `changed` of all its points, the rest of those that are right.

    `proved` and `reachable` are the certificate's ends, `reached` is the attack's. What rounding is worth is a
    share `loose` of a length, and the length `fixed`.
    """

    right: Which
    changed: Which
    proved: Float[Tensor, " m"]
    reachable: Float[Tensor, " m"]
    reached: Float[Tensor, " m"]
    loose: Float[Tensor, " m"]
    fixed: Float[Tensor, " m"]
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
    progress: Progress = SILENT,
) -> AuditRecord:
    """How robust a classifier is: robust accuracy as intervals, flags, universal directions, averaging.

    `model`: one of tacit's nets, any torch module (in eval mode) or callable with one output or logits, or what
    `tacit audit` takes as text. `data`: a path to .npz, a dict with x and y, a tuple (x, y[, subclass]), or an
    iterable of such tuples, for instance a DataLoader. Points stay on the host, and `batch` of them at a time are
    moved to the device. `norm` is 1, 2 or inf. `radii`: none given, eight steps up to half the distance between
    classes. `box`: the ends between which perturbed points must stay. `subclass`: the key of subclass labels.
    `limit`: at most that many points. `black_box`: by queries alone, for models without gradients.
    `progress` is told of each batch.
    """
    known_count("batch", batch, "at least 1 point at a time")
    known = named_norm(norm)
    given = None if radii is None else known_radii(radii)
    chosen = choose_device(str(device))
    name = str(Path(model).name) if isinstance(model, str | Path) else type(model).__name__
    # the model may import what lies beside it as late as in its forward
    with importable_here(), torch.inference_mode(False):
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
            within_reach(used, subject.dtype)
            task = Task(
                subject, tuple(r for r in used if r > 0), known, limits, _class_means(x, y, subject)
            )
            certificate = certificate_of(task, x[:1].to(subject.device), y[:1].to(subject.device))
            attack = attack_of(task, queries_only=black_box)
            seen = _watched(task, certificate, attack, x, y, batch, progress)
            with _perturbed():
                left = _left(task, seen) & (not black_box)
                asked = second_look(task, x, y, left)
                universal, pushed = universal_at(
                    task, x, y, batch, progress, gradients=not black_box
                )
            features = averaging(subject, x, y, points.subclass, batch)
        finally:
            if home is not None:
                model.to(home)
    lower, upper = _intervals(seen, torch.minimum(asked.upper, pushed))
    shares = _shares(task, seen, lower, upper)
    beaten = _beaten(task, seen, pushed)
    shares |= {"universal-beats-attack": beaten, "queries-beat-gradients": asked.share}
    return AuditRecord(
        model=name,
        n=len(x),
        norm=known.name,
        box=limits,
        clean=proportion(int(seen.right.sum()), len(x)),
        curve=robust_curve(lower, upper, used),
        flags=raised_flags(shares | {"queries-only": float(black_box)}),
        universal=universal,
        averaging=features,
        certificate=certificate.name,
        attack=attack.name,
        lower=lower,
        upper=upper,
    )


@contextmanager
def _perturbed() -> Iterator[None]:
    """What a model fails at here, it fails at beside the points: at the points themselves it has passed."""
    try:
        yield
    except ModelError as error:
        raise CallError(
            f"{error} (at a perturbed point: where the model takes inputs of some range only, give that range as "
            "the box, --box LO,HI)"
        ) from error


def _spread(seen: Seen, values: Float[Tensor, " m"]) -> Numbers:
    """Numbers of the points that are right as numbers of all points, 0 elsewhere."""
    whole = torch.zeros(len(seen.right), dtype=torch.float64)
    whole[seen.right] = values
    return whole


def _left(task: Task, seen: Seen) -> Which:
    """Points that the attack has not broken at the largest radius, and that are not proved to be robust there."""
    most = max(task.radii, default=torch.inf)  # without a radius > 0 nothing is attacked
    known = torch.minimum(seen.reached, seen.reachable)
    return _spread(seen, ((known > most) & (seen.proved <= most)).double()) > 0


def _intervals(seen: Seen, others: Numbers) -> tuple[Numbers, Numbers]:
    """Each point's radius from below and above; 0 where the point is not right.

    `others` are lengths of perturbations that broke points and that are not the attack's.
    """
    # over all points, so that a contradiction names them by their own numbers
    reached = torch.minimum(_spread(seen, seen.reached), others)
    # where the rounding is beyond all bounds nothing contradicts
    slack = (_spread(seen, seen.loose) * reached).nan_to_num(nan=torch.inf, posinf=torch.inf)
    lower = consistent(_spread(seen, seen.proved), reached, slack + _spread(seen, seen.fixed))
    reachable = _spread(seen, seen.reachable)
    return torch.minimum(lower, reachable), torch.minimum(reached, reachable)


def _beaten(task: Task, seen: Seen, pushed: Numbers) -> float:
    """The share of the right points that a universal perturbation broke at a radius where the attack had not."""
    attacked = torch.minimum(seen.reached, seen.reachable)
    return _share(_between(task, pushed[seen.right], attacked))


def _between(task: Task, low: Float[Tensor, " m"], high: Float[Tensor, " m"]) -> Bool[Tensor, " m"]:
    """Where a radius lies in [low, high)."""
    radii = torch.tensor(task.radii, dtype=torch.float64).unsqueeze(1)
    return ((low <= radii) & (radii < high)).any(0)


def _share(flags: Bool[Tensor, " k"]) -> float:
    return float(flags.double().mean()) if len(flags) else 0.0


def _shares(task: Task, seen: Seen, lower: Numbers, upper: Numbers) -> dict[str, float]:
    """The number of each kind of flag that the batches tell of."""
    undecided = _between(task, lower[seen.right], upper[seen.right])
    return {
        "gradient-vanishes": _share(seen.flat & undecided),
        "loss-not-increasing": _share(seen.stuck & undecided),
        "random-beats-gradient": _share(seen.lucky),
        "not-monotone": _share(seen.unsteady),
        "output-random": _share(seen.changed),
        "no-certificate": _share(lower[seen.right] == 0),
    }


def _watched(
    task: Task,
    certificate: Certificate,
    attack: Attack,
    x: Inputs,
    y: Labels,
    batch: int,
    progress: Progress,
) -> Seen:
    """Every batch on the device, its numbers kept on the host."""
    subject = task.subject
    parts = list(zip(x.split(batch), y.split(batch), strict=True))
    # all points first: what is wrong with the scores is known before any attack
    scores = [subject.scores(few.to(subject.device)) for few, _ in parts]
    _check_signs(subject, torch.cat(scores).cpu(), y)
    proves = not certificate.name.startswith("none")
    exact = double_of(subject) if proves else None
    seen = []
    with progress.track("points", len(parts)) as advance:
        for (few, labels), first in zip(parts, scores, strict=True):
            here = few.to(subject.device), labels.to(subject.device), first
            seen.append(_one_batch(task, certificate, attack, exact, *here))
            advance()
    return Seen(*(torch.cat([getattr(part, one.name) for part in seen]) for one in fields(Seen)))


def _check_signs(subject: Subject, scores: Inputs, y: Labels) -> None:
    """One output that changes and is never negative is no score of which the sign is the class."""
    low, high = scores.min(), scores.max()
    if subject.outputs == 1 and len(y.unique()) == 2 and bool(0 <= low < high):
        raise CallError(
            "the model's one output is never negative on these points, though both classes are there: it looks "
            "like a probability or a label; drop the sigmoid, or subtract 0.5, so that the sign is the class"
        )


def _one_batch(
    task: Task,
    certificate: Certificate,
    attack: Attack,
    exact: Subject | None,
    x: Inputs,
    y: Labels,
    scores: Inputs,
) -> Seen:
    """Certificate and attack of the points that are right."""
    again = task.subject.scores(x)
    changed = ~torch.isclose(scores, again, rtol=1e-4, atol=1e-6).reshape(len(x), -1).all(1)
    margins = margin(scores, y)
    right = margins > 0
    x, y = x[right], y[right]
    some = len(x) > 0
    known = certificate.radii(x, y) if some else nothing_proved(x, y)
    with _perturbed():
        broken = attack.breaks(x, y) if some else unbroken(0)
    loose, fixed = rounding(task.norm, exact, x, y, margins[right])
    return Seen(
        right.cpu(),
        changed.cpu(),
        known.lower,
        known.upper,
        broken.upper,
        loose,
        fixed,
        broken.flat,
        broken.stuck,
        broken.lucky,
        broken.unsteady,
    )


def _class_means(x: Inputs, y: Labels, subject: Subject) -> Float[Tensor, "C ..."] | None:
    """The mean of each class (one output: of -1, then of +1), or None where a class has no point."""
    index = ((y + 1) / 2).long() if subject.outputs == 1 else y
    count = max(subject.outputs, 2)
    if len(index.unique()) < count:
        return None
    return means(x.flatten(1), index).to(subject.device).reshape(count, *subject.shape)


def _home(model: Any) -> torch.device | None:
    """Where the model's numbers are: a torch module moves itself, and is given back there."""
    first = first_tensor(model)
    return None if first is None else first.device
