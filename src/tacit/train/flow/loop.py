"""The loop of the flow: steps, merges, records and stops for an ensemble, in one tensor program."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.errors import CallError
from tacit.train.flow.adams import Past, Step, adams, fall, first_step, no_past, span_of, squares
from tacit.train.flow.ensemble import Ensemble, Members
from tacit.train.flow.field import Field, Points, Power, field_at, outputs, products
from tacit.train.flow.history import History, Recorder
from tacit.train.flow.lineage import Lineage, after_merge, unmerged
from tacit.train.flow.merge import grouped, merged, ripe_neurons
from tacit.train.flow.neurons import Neurons
from tacit.train.flow.until import Until

MERGE_EVERY = 8
FITTED = 1.0  # a least margin: tiny neurons on their way to a cluster nobody fits yet make it positive, no more
WINDOW = 200  # steps after which a flow that has got nowhere is at rest


@dataclass(frozen=True)
class Course(Ensemble):
    """Where the members in hand stand; numbers of a member in float64."""

    neurons: Neurons
    field: Field
    past: Past
    book: Lineage
    step: Members
    log_time: Members
    spent: Members
    first_loss: Members
    merge_error: Members
    looks: Members
    rest: Bool[Tensor, " E"]
    rate: Members  # -d log L / d tau

    def after(self, step: Step) -> Course:
        """The course one step on."""
        return Course(
            step.neurons, step.field, step.past, self.book, step.next_step,
            torch.logaddexp(self.log_time, step.log_time), self.spent + step.spent,
            self.first_loss, self.merge_error, self.looks + 1, self.rest, step.rate,
        )  # fmt: skip

    @property
    def residual(self) -> Members:
        """sin of the angle between theta (retired neurons included) and -grad L; 1 where that is no descent."""
        g2, theta2, inner = squares(self.neurons, self.field)
        theta2 = theta2 + self.book.retired.exp()
        cosine = inner / (g2 * theta2).sqrt().clamp_min(1e-300)
        return torch.where(cosine > 0, (1 - cosine.square()).clamp_min(0).sqrt(), 1.0)


@dataclass(frozen=True)
class Ended:
    """One member at its end (E = 1 in its tensors)."""

    neurons: Neurons
    book: Lineage
    stopped: str
    log_time: float
    log_loss: float
    margin: float
    residual: float
    looks: int
    energy_error: float
    merge_error: float
    history: History | None


def follow(
    neurons: Neurons,
    points: Points,
    p: Power,
    until: Until,
    *,
    tolerance: float,
    merge_angle: float,
    frames: int,
    log_marks: Sequence[float],
    watch: Float[Tensor, "m D"],
) -> list[Ended]:
    """The flow of every member to its end; members that have ended leave the program.

    Recorded are up to 2 `frames` moments spread over the steps, or the moments `log_marks` (log real time).
    """
    E = neurons.u.shape[0]
    course = departure(neurons, points, p, tolerance, watch)
    recorders = [Recorder(frames if frames else None) for _ in range(E)]
    ids = list(range(E))
    ended: dict[int, Ended] = {}
    rounds, tidy_at, then, since = 0, MERGE_EVERY, course, 0
    if frames:
        note(course, [recorders[i] for i in ids], watch)
    while True:
        reasons = [reason(course, i, until) for i in range(len(ids))]
        if any(reasons):
            for i, why in enumerate(reasons):
                if why:
                    one = torch.tensor([i])
                    last = course.members(one)
                    if frames:
                        recorders[ids[i]].end(*next(moments(last, watch)))
                    if merge_angle > 0:
                        power = p if isinstance(p, float) else p[one]
                        last = tidied(last, points.members(one), power, watch, merge_angle)
                    ended[ids[i]] = closed(last, why, recorders[ids[i]])
            stay = torch.tensor([not why for why in reasons])
            if not bool(stay.any()):
                return [ended[i] for i in range(E)]
            course, points, then = course.members(stay), points.members(stay), then.members(stay)
            p = p if isinstance(p, float) else p[stay]
            ids = [i for i, why in zip(ids, reasons, strict=True) if not why]
        goal = next_marks(course.log_time, until, log_marks)
        log_left = remaining(course.log_time, goal)
        rate = course.rate
        longest = span_of(log_left, course.field.log_pull, rate)
        longest = torch.minimum(longest, unflipped(course, p))
        if until.log_loss is not None:
            longest = torch.minimum(longest, until_loss(course, until.log_loss))
        step = adams(
            course.neurons, course.field, course.past, rate, points, p, course.step, longest,
            log_left, tolerance,
        )  # fmt: skip
        course = course.after(step)
        rounds += 1
        due = step.good if frames else step.good & (course.log_time >= goal - 1e-6)
        if frames or (log_marks and bool(due.any())):
            here = [i for i in due.nonzero().flatten().tolist() if recorders[ids[i]].due()]
            if here:
                members = course.members(torch.tensor(here))
                note(members, [recorders[ids[i]] for i in here], watch)
        if rounds - since >= WINDOW:
            course, then = replace(course, rest=nowhere(then, course, tolerance)), course
            since = rounds
        if merge_angle > 0 and rounds >= tidy_at:
            before = course.neurons.q.shape[1]
            course = tidied(course, points, p, watch, merge_angle)
            fewer = course.neurons.q.shape[1] < before
            then, since = (course, rounds) if fewer else (then, since)
            # looking for neighbours costs as much as some steps: seldom, where there was nothing to merge
            tidy_at = rounds + (MERGE_EVERY if fewer else max(MERGE_EVERY, rounds // 2))


def departure(
    neurons: Neurons, points: Points, p: Power, tolerance: float, watch: Float[Tensor, "m D"]
) -> Course:
    """The course at time 0."""
    field = field_at(neurons, points, p)
    if not bool(field.log_loss.isfinite().all()):
        raise CallError(
            f"the loss is not finite at the start: the weights are too large for {neurons.u.dtype}"
        )
    step = first_step(neurons, field, tolerance)
    zero = torch.zeros_like(step)
    return Course(
        neurons, field, no_past(neurons), unmerged(neurons, watch), step, zero - math.inf, zero,
        field.log_loss.double(), zero, zero + 1, zero > 0, fall(neurons, field),
    )  # fmt: skip


def reason(course: Course, i: int, until: Until) -> str:
    """Why member i stops now, or nothing."""
    if until.log_loss is not None and float(course.field.log_loss[i]) <= until.log_loss + 1e-6:
        return "loss"
    if until.time is not None and float(course.log_time[i]) >= math.log(until.time) - 1e-6:
        return "time"
    # before the points are fitted theta is parallel to -grad L at every saddle too
    fitted = float(course.field.margin[i]) > FITTED
    if until.residual is not None and fitted and float(course.residual[i]) <= until.residual:
        return "direction"
    if bool(course.rest[i]) or float(course.step[i]) > 1e200:
        return "rest"
    return "budget" if float(course.looks[i]) + 2 > until.evaluations else ""


def nowhere(then: Course, now: Course, tolerance: float) -> Bool[Tensor, " E"]:
    """Whether a window of steps led nowhere: loss, directions and masses where they were, to the tolerance.

    (At a minimum, and at a kink, explicit steps tremble by about that much. A slow start is no rest: steps grow
    until something moves.)
    """
    turned = (now.neurons.u - then.neurons.u).norm(dim=-1).amax(-1)
    grown = 2 * (now.neurons.q - then.neurons.q).abs().amax(-1)
    fell = (now.field.log_loss - then.field.log_loss).abs()
    return (torch.maximum(turned, grown) < tolerance) & (fell < tolerance / 10)


def until_loss(course: Course, goal: float) -> Members:
    """How long in tau the loss needs to the goal, if -log L goes on growing as the margins do, exponentially in
    tau (f is homogeneous), once it is above 1."""
    loss = course.field.log_loss.double()
    # a little beyond: in float32 a step that aims at the goal itself may end short of it, again and again
    above = 1.002 * (loss - goal).clamp_min(0.0) + 2e-4
    scale = loss.abs().clamp_min(1.0)
    return scale * torch.log1p(above / scale) / course.rate.clamp_min(1e-300)


def unflipped(course: Course, p: Power) -> Members:
    """The longest step in which no inactive product <u, x_i> that decays to 0 becomes positive.

    It decays as exp(-p G T tau), and never crosses; a step that overshoots wakes a point up. Where p < 2 the
    neuron then turns to it at once (z^(p-1) is steep at 0); from p = 2 on it makes no difference. Half of the
    time constant is safe for the extrapolated velocity.
    """
    power = torch.full_like(course.step, p) if isinstance(p, float) else p.flatten().double()
    decay = power * (course.field.G * course.neurons.tilt).amax(-1).double()
    return torch.where(power < 2, 0.5 / decay.clamp_min(1e-300), math.inf)


def next_marks(log_time: Members, until: Until, log_marks: Sequence[float]) -> Members:
    """The next moment (log) that each member must meet: a recorded one or the end; inf if there is none."""
    last = math.inf if until.time is None else math.log(until.time)
    marks = torch.tensor([*sorted(log_marks), math.inf], dtype=torch.float64).to(log_time.device)
    ahead = torch.searchsorted(marks, log_time + 1e-6, right=True).clamp_max(len(marks) - 1)
    return marks[ahead].clamp_max(last)


def remaining(log_time: Members, goal: Members) -> Members:
    """log(exp(goal) - exp(log_time))."""
    gap = (log_time - goal).clamp_max(-1e-12)
    return torch.where(goal.isinf(), math.inf, goal + torch.log(-torch.expm1(gap)))


def moments(course: Course, watch: Float[Tensor, "m D"]) -> Iterator[tuple[Tensor, ...]]:
    """The present moment of each member, as a record keeps it."""
    mass, side, cosines = course.book.all_neurons(course.neurons, watch)
    field = course.field
    yield from zip(
        course.log_time, field.log_loss, field.margin, course.residual, mass, side, cosines,
        strict=True,
    )  # fmt: skip


def note(course: Course, recorders: Sequence[Recorder], watch: Float[Tensor, "m D"]) -> None:
    """Write the present moment of each member into its record."""
    for recorder, moment in zip(recorders, moments(course, watch), strict=True):
        recorder.add(*moment)


def tidied(
    course: Course, points: Points, p: Power, watch: Float[Tensor, "m D"], angle: float
) -> Course:
    """The course with neurons that have met merged, and those that cannot matter retired."""
    neurons = course.neurons
    fitted = course.field.margin > FITTED
    # before points are fitted unripe neurons stay: where nearly all are, a look for neighbours is wasted
    if not bool(fitted.any()) and not bool(ripe_neurons(neurons).double().mean() > 0.1):
        return course
    grouping = grouped(neurons, touched(neurons, points), fitted, angle)
    if grouping is None:
        return course
    fewer = merged(neurons, grouping)
    sample = points.x[:, :: max(1, points.x.shape[1] // 1000)]
    before, after = outputs(neurons, sample, p), outputs(fewer, sample, p)
    scale = before.abs().amax(-1).clamp_min(1e-30)
    change = ((after - before).abs().amax(-1) / scale).double()
    # f is 2-homogeneous in tiny weights too, but there a change of f changes no margin
    error = course.merge_error + change * scale.double().clamp_max(1.0)
    field = field_at(fewer, points, p)
    return Course(
        fewer, field, no_past(fewer), after_merge(course.book, neurons, grouping, watch), course.step,
        course.log_time, course.spent, course.first_loss, error, course.looks + 1, course.rest,
        fall(fewer, field),
    )  # fmt: skip


def touched(neurons: Neurons, points: Points) -> Bool[Tensor, "E k"]:
    """Whether some point activates the neuron."""
    rows = max(1, 20_000_000 // neurons.q.numel())
    parts = [
        products(neurons.u, points.x[:, i : i + rows]).amax(-1) > 0
        for i in range(0, points.x.shape[1], rows)
    ]
    return torch.stack(parts).any(0)


def closed(one: Course, why: str, recorder: Recorder) -> Ended:
    """What a member leaves behind."""
    drop = float(one.first_loss - one.field.log_loss.double())
    return Ended(
        one.neurons,
        one.book,
        why,
        float(one.log_time),
        float(one.field.log_loss),
        float(one.field.margin),
        float(one.residual),
        int(one.looks),
        abs(drop - float(one.spent)) / max(abs(drop), 1e-12),
        float(one.merge_error),
        recorder.history() if recorder.held else None,
    )
