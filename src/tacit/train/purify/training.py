r"""Clean (Algorithm 1) and adversarial training (Algorithm 2) of the symmetric net (allenzhu2020, Section 4).

    each step:  a batch (x, y);  x <- x + A(f, x, y) where there is an attacker;
                w_i <- w_i + eta ( mean_n y_n l'_n slope_ni x_n - decay (||w_i|| + 1) w_i );  b grows (`Stage`)

with l'_n = 1/(1 + exp(y_n f(x_n))) and slope the sum of both indicators (Fact A.1): their expectation over the
noise, or the indicators themselves where `noise="sampled"` draws it as printed. Batches are fresh ones
(`SparseCoding.stream`), those of a fixed set (`set_batches`), or all of it. Neurons that cannot fire on a batch
are left out of the step (`course.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from tacit.base.shapes import Numbers, Rows
from tacit.errors import CallError, RunError
from tacit.nets.fired import Fired, fired, second_half_counts
from tacit.nets.symmetric import SymmetricNet
from tacit.train.descent.descend import batches as orders
from tacit.train.purify.attackers import Around, Attacker
from tacit.train.purify.checks import Noise, check_batch, check_call
from tacit.train.purify.course import Awake, Course, awake, moved_on
from tacit.train.purify.stages import Stage
from tacit.train.purify.watch import Watch

Batch = tuple[Rows, Numbers]

# slopes below which a neuron sleeps: in float32 the rounding of 1; in float64, where nothing is below rounding at
# the noise that the paper has, what leaves the weights right to 1e-9 after thousands of steps
NEGLIGIBLE = {torch.float32: 2.0**-24, torch.float64: 1e-9}
LOOK = 50  # steps between two looks at the losses


@dataclass(frozen=True)
class Snapshot:
    """After `step` updates: the net."""

    step: int
    net: SymmetricNet


@dataclass(frozen=True)
class Purified:
    """The trained net; after each step the loss of its batch and the share of neurons awake; what was left out.

    `left_out` bounds the length by which each neuron's single steps fell short of those of the full net, summed
    over all steps; `output_left_out` is the largest share of all sleepers together in f at one step.
    """

    net: SymmetricNet
    history: tuple[Snapshot, ...]
    loss: Float[Tensor, " steps"]
    awake: Float[Tensor, " steps"]
    left_out: Float[Tensor, " h"]
    output_left_out: float


@torch.no_grad()
def train_symmetric(
    net: SymmetricNet,
    batches: Iterable[Batch],
    stages: Sequence[Stage],
    *,
    attacker: Attacker | None = None,
    noise: Noise = "expected",
    negligible: float | None = None,
    generator: torch.Generator | None = None,
    record: Collection[int] = (),
) -> Purified:
    """Train a copy of `net` through the stages, one batch a step; with an `attacker` on attacked points.

    `negligible` is the slope below which a neuron sleeps through a step, by default 2^-24 in float32 and 1e-9 in
    float64; 0 takes every neuron at every step, as `noise="sampled"` does. `generator` is for sampled noise and
    attackers that draw. `record` lists the steps to keep (0: the start). Where no neuron can fire the bias has
    outgrown the signal: told at the step where it happens, and before training where it holds from the start.
    """
    if negligible is None:
        negligible = 0.0 if noise == "sampled" else NEGLIGIBLE.get(net.w.dtype, 0.0)
    check_call(net, stages, noise, negligible, generator)
    count = sum(stage.steps for stage in stages)
    if not all(0 <= k <= count for k in record):
        raise CallError(f"record={sorted(record)}: the steps that can be kept are 0 to {count}")
    course, watch, history = Course.begun(net), Watch(), []
    losses: list[Tensor] = []
    share: list[float] = []
    source = iter(batches)
    step = 0
    for stage in stages:
        for x, y in taken(source, stage.steps, count, step):
            if step == 0:
                check_batch(net, x, y)
            course.sigma = stage.noise * course.level
            if step in record:
                history.append(Snapshot(step, course.net()))
            who = awakened(course, x, attacker, negligible)
            watch.see(step, who, course, x)
            if attacker is not None:
                x, who = attacked(course, who, x, y, attacker, negligible, generator)
            losses.append(one_step(course, who, stage, x, y, noise, generator))
            share.append(who.count() / len(course.norm))
            course.level = stage.grown(course.level)
            step += 1
            if step % LOOK == 0 or step == count:
                look(losses[-LOOK:], course, step)
    course.sigma = stages[-1].noise * course.level
    if count in record:
        history.append(Snapshot(count, course.net()))
    told = course.left_out, float(course.output_left_out)
    return Purified(course.net(), tuple(history), torch.stack(losses), torch.tensor(share), *told)


def awakened(course: Course, x: Rows, attacker: Attacker | None, negligible: float) -> Awake:
    """Who can fire on the batch, wherever the attacker moves it."""
    norm, radius = (None, 0.0) if attacker is None else (attacker.norm, attacker.radius)
    return awake(course, x, norm, radius, negligible)


def attacked(
    course: Course,
    who: Awake,
    x: Rows,
    y: Numbers,
    attacker: Attacker,
    negligible: float,
    generator: torch.Generator | None,
) -> tuple[Rows, Awake]:
    """The points after the attack, and who can fire on them."""
    w, b, z, sigma = who.w, who.b, who.z, course.sigma
    if attacker.at_point and who.at_point is not None:
        near = who.at_point
        w, b, z = w.index_select(0, near), b[near], z.index_select(0, near)
    around = Around(SymmetricNet(w, b, sigma), x, z, second_half_counts(b, sigma))
    delta = attacker.delta(around, y, generator)
    return x + delta, who.after(who.z.addmm(who.w, delta.T), sigma, negligible)


def one_step(
    course: Course,
    who: Awake,
    stage: Stage,
    x: Rows,
    y: Numbers,
    noise: Noise,
    generator: torch.Generator | None,
) -> Float[Tensor, ""]:
    """Differentiate and move; the mean loss of the batch."""
    sigma, z = course.sigma, who.z
    both = second_half_counts(who.b, sigma)
    if noise == "sampled":
        seen = sampled(z, who.b, sigma, generator)
    else:
        seen = fired(z, who.b, sigma, both, stage.bias_step > 0)
    margin = y * seen.f
    pull = margin.neg().sigmoid_()
    each = (y * pull).mul_(1 / len(y))
    if seen.by_bias is not None:
        grown = (seen.by_bias * each).sum(1).mul_(stage.eta * stage.bias_step)
        index = slice(None) if who.index is None else who.index
        course.own[index] += grown
        course.centre()
    weight = (pull * x.norm(dim=1)).mean()
    moved_on(course, who, seen.slope.mul_(each), x, stage.eta, stage.decay, weight)
    return softplus(-margin).mean()


def sampled(
    z: Float[Tensor, "h n"], b: Float[Tensor, " h"], sigma: float, generator: torch.Generator | None
) -> Fired:
    """f and its derivatives with the noise drawn, once for each point and neuron (Algorithm 1, line 3)."""
    assert generator is not None
    shape = z.T.shape  # drawn point by point, as `SymmetricNet.sampled` does
    rho = torch.randn(shape, generator=generator, dtype=z.dtype, device=generator.device)
    shift = rho.to(z.device).mul_(sigma).sub_(b).T
    up, down = z + shift, shift - z
    one, other = (up >= 0).to(z.dtype), (down >= 0).to(z.dtype)
    return Fired((up.clamp_min(0) - down.clamp_min(0)).sum(0), one + other, other - one)


def set_batches(
    x: Rows, y: Numbers, batch: int | None = None, generator: torch.Generator | None = None
) -> Iterator[Batch]:
    """Batches of a fixed set without end: in each epoch a fresh order; batch=None is all points at every step."""
    if batch is not None and generator is None:
        raise CallError(f"batch={batch}: batches are drawn; give a generator")
    if batch is not None and not 1 <= batch <= len(x):
        raise CallError(f"batch={batch}: it is 1 to {len(x)}, the number of points")
    while True:
        steps = 1 if batch is None else -(-len(x) // batch)
        for rows in orders(len(x), batch, steps, generator, x.device):
            yield (x, y) if rows is None else (x[rows], y[rows])


def taken(source: Iterator[Batch], steps: int, count: int, done: int) -> Iterator[Batch]:
    """That many batches, and a call error where there are fewer."""
    for k in range(steps):
        found = next(source, None)
        if found is None:
            raise CallError(f"the batches ended after {done + k} steps: the stages have {count}")
        yield found


def look(losses: list[Tensor], course: Course, step: int) -> None:
    """Losses that are numbers, or an error that says what to change."""
    if not bool(torch.stack(losses).isfinite().all()) or not bool(course.norm.isfinite().all()):
        raise RunError(
            f"training diverged within {LOOK} steps of step {step} (largest ||w|| "
            f"{float(course.norm.max()):.3g}): lower eta"
        )
