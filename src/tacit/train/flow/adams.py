"""One error-controlled step of the flow in loss-normalised time tau, d tau = (sum of the pulls) dt.

The two-step Adams-Bashforth step with variable lengths, one look at the data a step: the velocity is extrapolated
from the last two points. Its error is the difference to the trapezoidal rule, which the new look makes known: an
angle for directions, a relative one for masses, and what both do to the margins (a margin that is off by d makes
its pull off by a factor exp(d)). The first step, and the first after a merge, is Euler's.

At the kinks of p = 1 the field jumps. There the difference is as large as the motion itself, so a step is
accepted once it moves nothing by more than the tolerance: steps shrink with the tolerance, never to nothing, and
in the limit they follow the sliding (Filippov) solution.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.train.flow.ensemble import Ensemble, Members, chosen
from tacit.train.flow.field import Field, Points, Power, field_at
from tacit.train.flow.neurons import FIXED, Neurons

GROWTH, SHRINK, SAFETY = 1.6, 0.2, 0.9


@dataclass(frozen=True)
class Past(Ensemble):
    """The velocity one step ago and that step's length; inf where there is none."""

    du: Float[Tensor, "E k D"]
    dq: Float[Tensor, "E k"]
    h: Members


def no_past(neurons: Neurons) -> Past:
    """Nothing behind: the next step is Euler's."""
    h = torch.full_like(neurons.q[:, 0], math.inf, dtype=torch.float64)
    return Past(torch.zeros_like(neurons.u), torch.zeros_like(neurons.q), h)


@dataclass(frozen=True)
class Step:
    """Where a step led: `good` members arrived, the others are where they were. All per member."""

    neurons: Neurons
    field: Field
    past: Past
    good: Bool[Tensor, " E"]
    next_step: Members
    log_time: Members  # of the step alone
    spent: Float[
        Tensor, " E"
    ]  # by how much log L should have fallen: the integral of ||grad L||^2 / L
    rate: Members


def adams(
    neurons: Neurons,
    field: Field,
    past: Past,
    rate: Members,
    points: Points,
    p: Power,
    proposed: Members,
    longest: Members,
    log_left: Members,
    tolerance: float,
) -> Step:
    """One step of at most `longest`, and of no more than exp(log_left) in real time; `rate` is `fall` here."""
    h = torch.minimum(proposed, longest)
    du, dq = velocity(neurons, field)
    r = h / (2 * past.h)
    ahead_u, ahead_q = du + times(r, du - past.du), dq + times(r, dq - past.dq)
    arrived = neurons.moved(times(h, ahead_u), times(h, ahead_q))
    after = field_at(arrived, points, p)
    du2, dq2 = velocity(arrived, after)
    error = step_error(neurons, (du + du2) / 2 - ahead_u, (dq + dq2) / 2 - ahead_q, h, p)
    new_rate = fall(arrived, after)
    spent = 0.5 * h * (rate + new_rate)
    # the loss must fall by what the gradient spends: also where velocities are constant and masses explode
    gap = ((field.log_loss - after.log_loss).double() - spent).abs()
    error = torch.maximum(error, gap.nan_to_num(math.inf, posinf=math.inf))
    log_time = elapsed(field.log_pull.double(), after.log_pull.double(), h)
    good = (error <= tolerance) & (log_time <= log_left + 1e-4) & after.log_loss.isfinite()
    scale = SAFETY * (tolerance / error.clamp_min(1e-12)) ** (1 / 3)
    longer = torch.minimum(h * scale.clamp_min(SHRINK), GROWTH * proposed)
    return Step(
        chosen(good, arrived, neurons),
        chosen(good, after, field),
        chosen(good, Past(du, dq, h), past),
        good,
        torch.where(good, longer, h * scale.clamp(SHRINK, SAFETY)),
        torch.where(good, log_time, -math.inf),
        torch.where(good, spent, 0.0),
        torch.where(good, new_rate, rate),
    )


def times(h: Members, rate: Tensor) -> Tensor:
    """h * rate, member by member, in the dtype of the neurons."""
    return h.to(rate.dtype).reshape(-1, *(1,) * (rate.dim() - 1)) * rate


def velocity(neurons: Neurons, field: Field) -> tuple[Float[Tensor, "E k D"], Float[Tensor, "E k"]]:
    """du/dtau and dq/dtau."""
    return neurons.tilt.unsqueeze(-1) * field.turn, neurons.climb * field.G


def step_error(
    neurons: Neurons, du: Float[Tensor, "E k D"], dq: Float[Tensor, "E k"], h: Members, p: Power
) -> Members:
    """The larger of: the worst neuron's error (angle, or relative mass), and what all do to a margin together."""
    power = p if isinstance(p, float) else p.squeeze(-1)
    angle, mass = du.norm(dim=-1), 2 * dq.abs()
    margin = (neurons.log_mass.exp() * (power * angle + mass)).sum(-1)
    worst = torch.maximum(angle.amax(-1), mass.amax(-1))
    error = h * torch.maximum(worst, margin).double()
    return torch.where(error.isfinite(), error, math.inf)


def fall(neurons: Neurons, field: Field) -> Members:
    """-d log L / d tau = (sum of pulls / L) ||sum_i ghat_i grad margin_i||^2, in float64."""
    return (field.log_pull - field.log_loss).double().exp() * squares(neurons, field)[0]


def squares(neurons: Neurons, field: Field) -> tuple[Members, Members, Members]:
    """||g||^2, ||theta||^2 and <theta, g> for g = sum_i ghat_i grad margin_i, over all trained weights."""
    r2 = (2 * neurons.log_norm.double()).exp()
    tilt2, G = neurons.tilt.double().square(), field.G.double()
    both = neurons.kind != FIXED
    turn2 = field.turn.square().sum(-1).double()
    g2 = r2 * (tilt2 * (G.square() + turn2) + torch.where(both, G.square(), 0.0))
    theta2 = r2 * (1 + torch.where(both, tilt2, 0.0))
    inner = r2 * neurons.tilt.double() * G * torch.where(both, 2.0, 1.0)
    return g2.sum(-1), theta2.sum(-1), inner.sum(-1)


def elapsed(before: Members, after: Members, h: Members) -> Members:
    """log of the real time of a step: the integral of exp(-s) for s linear from `before` to `after`.

    (A left-point rule would be off by as much as the loss falls in the step.)
    """
    d = before - after
    mean = torch.where(d.abs() < 1e-6, d / 2, (torch.expm1(d) / d).abs().log())
    return h.log() - before + mean


def first_step(neurons: Neurons, field: Field, tolerance: float) -> Members:
    """A step that moves no neuron by more than the tolerance."""
    du, dq = velocity(neurons, field)
    speed = torch.maximum(du.norm(dim=-1).amax(-1), dq.abs().amax(-1)).double()
    return tolerance / speed.clamp_min(1e-300)


def span_of(log_left: Members, log_pull: Members, rate: Members) -> Members:
    """How long in tau the real time exp(log_left) is, if the pulls fall at the present rate."""
    z = log_left + log_pull.double()
    short = z.exp()
    grown = torch.nn.functional.softplus(z + rate.clamp_min(1e-300).log()) / rate.clamp_min(1e-300)
    return torch.where(rate * short < 1e-6, short, grown)
