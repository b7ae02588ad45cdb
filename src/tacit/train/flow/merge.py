"""Fewer neurons, the same function: merge those whose directions have met, retire those that cannot matter.

*Merged*: neurons of one sign whose directions are closer than `angle`. f depends on their summed A alone. The
merged neuron points along the A-weighted mean, so what changes in f is of second order in the angle. Its dynamics
are exact when the neurons are balanced (A' = 2 s G A is linear in A); a WIDE or TALL neuron is merged when its
hyperbolic angle e is above RIPE: there its mass obeys the balanced law to exp(-4e), its direction to exp(-2e).
FIXED neurons: A = a r has A' = a^2 G, so a^2 and A add up.

*Retired*: neurons that no point activates (they never move again: exact), and, per sign, once every point is
fitted, those with less than PRUNE of their sign's mass. Never against the mass of the other sign: that once
deleted a whole class.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.train.flow.neurons import BALANCED, FIXED, Neurons

RIPE = 4.0
LEADERS = 64
PRUNE = 1e-8


@dataclass(frozen=True)
class Grouping:
    """`group` (E, k): which new neuron each old one became part of, -1 if retired; `groups` of them at most."""

    group: Int[Tensor, "E k"]
    groups: int


def grouped(
    neurons: Neurons,
    active: Bool[Tensor, "E k"],
    fitted: Bool[Tensor, " E"],
    angle: float,
) -> Grouping | None:
    """Who merges with whom: the heaviest neuron left leads, and takes all within `angle` of it.

    At most LEADERS lead at one time; the lighter neurons then wait for the next.

    `active`: some point activates the neuron; `fitted`: every point of the member has a margin of order 1. None
    where the neurons would not become fewer by a tenth: not worth the work.
    """
    mass, side = neurons.log_mass, neurons.side
    share = mass - torch.where(side > 0, by_sign(mass, side > 0), by_sign(mass, side < 0))
    # a neuron that no point activates still speaks elsewhere: it goes only when it is light
    light = share < math.log(PRUNE)
    real = (neurons.sign != 0) & ~(light & (fitted.unsqueeze(1) | ~active))
    ripe, k = ripe_neurons(neurons), mass.shape[1]
    group = torch.full(mass.shape, -1, dtype=torch.int64, device=mass.device)
    waiting = real & ripe
    cosine = math.cos(angle)
    rank = torch.where(mass.isfinite(), mass, torch.finfo(mass.dtype).min)
    groups = 0
    rows = torch.arange(mass.shape[0], device=mass.device)
    while groups < LEADERS and bool(waiting.any()):
        lead = torch.where(waiting, rank, -math.inf).argmax(1)
        some = waiting[rows, lead]
        toward = neurons.u[rows, lead].unsqueeze(-1)
        near = (neurons.u @ toward).squeeze(-1) > cosine
        take = waiting & near & (side == side[rows, lead].unsqueeze(1))
        take[rows, lead] |= some
        group[take & some.unsqueeze(1)] = groups
        waiting &= ~take
        groups += 1
    alone = real & (group < 0)
    led = group.amax(1, keepdim=True) + 1
    group = torch.where(alone, led + alone.long().cumsum(1) - 1, group)
    groups = int(group.max()) + 1
    return Grouping(group, max(groups, 1)) if groups <= 0.9 * k else None


def ripe_neurons(neurons: Neurons) -> Bool[Tensor, "E k"]:
    """Which neurons obey the balanced law closely enough to be merged."""
    return (neurons.kind == BALANCED) | (neurons.kind == FIXED) | (neurons.q.abs() > RIPE)


def merged(neurons: Neurons, grouping: Grouping) -> Neurons:
    """The new neurons: those alone in their group as they were, the others summed into one."""
    E, _, D = neurons.u.shape
    k = grouping.groups
    device, dtype = neurons.u.device, neurons.u.dtype
    kept = grouping.group >= 0
    slot = torch.where(kept, grouping.group, k)  # retired ones go to a slot that is dropped
    heavy = heaviest(neurons.log_mass, slot, k)
    log_mass = neurons.log_mass
    scale = torch.where(kept, (log_mass - heavy.gather(1, slot)).exp(), 0.0).nan_to_num(1.0)
    total = torch.zeros(E, k + 1, dtype=dtype, device=device).scatter_add_(1, slot, scale)
    count = torch.zeros_like(total).scatter_add_(1, slot, kept.to(dtype))
    u = torch.zeros(E, k + 1, D, dtype=dtype, device=device)
    u.scatter_add_(
        1,
        slot.unsqueeze(-1).expand(-1, -1, D),
        torch.where(kept, scale, 0.0).unsqueeze(-1) * neurons.u,
    )
    first = leaders(slot, log_mass, k)
    alone = count[:, :k] == 1
    empty = count[:, :k] == 0
    pick = first[:, :k]
    lead = Neurons(
        neurons.u.gather(1, pick.unsqueeze(-1).expand(-1, -1, D)),
        *(getattr(neurons, name).gather(1, pick) for name in ("q", "log_k", "sign", "kind")),
    )
    side = neurons.side.gather(1, pick)
    sum_mass = heavy[:, :k] + total[:, :k].log()
    fixed = lead.kind == FIXED
    squares = torch.zeros_like(total).scatter_add_(
        1, slot, torch.where(kept & (neurons.kind == FIXED), (2 * neurons.log_k).exp(), 0.0)
    )
    log_a = 0.5 * squares[:, :k].clamp_min(1e-300 if dtype == torch.float64 else 1e-37).log()
    q = torch.where(fixed, sum_mass - log_a, 0.5 * sum_mass)
    mean = u[:, :k] / u[:, :k].norm(dim=-1, keepdim=True).clamp_min(1e-30)
    both = alone | empty
    return Neurons(
        torch.where(both.unsqueeze(-1), lead.u, mean),
        torch.where(both, torch.where(empty, 0.0, lead.q), q),
        torch.where(both, lead.log_k, torch.where(fixed, log_a, 0.0)),
        torch.where(empty, 0.0, torch.where(alone, lead.sign, side)),
        torch.where(
            empty, BALANCED, torch.where(both, lead.kind, torch.where(fixed, FIXED, BALANCED))
        ),
    )


def by_sign(mass: Float[Tensor, "E k"], mine: Bool[Tensor, "E k"]) -> Float[Tensor, "E 1"]:
    """log of the summed mass of one sign."""
    return torch.where(mine, mass, -math.inf).logsumexp(1, keepdim=True)


def heaviest(
    log_mass: Float[Tensor, "E k"], slot: Int[Tensor, "E k"], groups: int
) -> Float[Tensor, "E g"]:
    """The largest log-mass of each group (and of the slot of the retired), finite also for empty ones."""
    out = torch.full((log_mass.shape[0], groups + 1), -math.inf, dtype=log_mass.dtype)
    out = out.to(log_mass.device).scatter_reduce_(1, slot, log_mass, "amax")
    return torch.where(out.isfinite(), out, 0.0)


def leaders(
    slot: Int[Tensor, "E k"], log_mass: Float[Tensor, "E k"], groups: int
) -> Int[Tensor, "E g"]:
    """The heaviest neuron of each group."""
    order = log_mass.argsort(dim=1)  # ascending: the heaviest is written last
    out = torch.zeros(slot.shape[0], groups + 1, dtype=torch.int64, device=slot.device)
    for_order = slot.gather(1, order)
    top = torch.full_like(out, -1).scatter_reduce_(
        1, for_order, torch.arange(order.shape[1], device=slot.device).expand_as(order), "amax"
    )
    return torch.where(top >= 0, order.gather(1, top.clamp_min(0)), out)
