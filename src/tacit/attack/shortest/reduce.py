r"""A two-layer net as few neurons in few dimensions: merge, prune, and turn to span(W).

With unit directions u_j, shifts s_j = b_j / ||w_j|| and masses A_j = v_j ||w_j||,

    f(x) = sum_j A_j relu(<u_j, x> + s_j)^p            (min2024, Section 2, rewritten)

so neurons with the same u and s are one neuron of the summed mass, a neuron with A = 0 is none, and f
depends on x through its coordinates in span(u_1, u_2, ...) alone: the shortest perturbation in l2 without a
box lies there. Neurons are merged where (u, s) agree to `ANGLE`, which changes f by at most about sum |A| p
||x||^(p-1) ||x|| ANGLE: what is found on the reduced net must still be verified on the net that was given.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.attack.norms import positive
from tacit.base.linalg import span_axes
from tacit.errors import CallError
from tacit.nets import TwoLayerNet

ANGLE = 1e-5  # largest distance between unit directions (and shifts) that are one neuron: cosine 1 - 5e-11
LARGEST_SVD = 256  # as many neurons as dimensions or more: beyond, the whole space is taken unseen
# a mass below this part of its sign's largest is lost in rounding, thousands of them too
MASSLESS = 1e-17


@dataclass(frozen=True)
class Reduced:
    """`net` (K neurons of unit norm in r coordinates, float64), `axes` (D, r), `group` (h,), `spread`.

    f(x) = net(x @ axes) up to merging. `group[j]` is the neuron of `net` that neuron j went into, -1 where
    it was pruned; `spread` is the largest distance of a merged neuron's (u, s) from its group's.
    """

    net: TwoLayerNet
    axes: Float[Tensor, "D r"]
    group: Int[Tensor, " h"]
    spread: float


def reduce_net(net: TwoLayerNet) -> Reduced:
    """Merge the parallel neurons of each sign, prune those with no mass, give coordinates of the span.

    Neurons with w = 0 pass on a constant where p = 1 and b > 0: they become one neuron with w = 0, b = 1.
    """
    if net.w.dim() != 2:
        raise CallError("an ensemble is reduced member by member: pass one net at a time")
    w, v = net.w.to(torch.float64), net.v.to(torch.float64)
    b = torch.zeros_like(v) if net.b is None else net.b.to(torch.float64)
    norm = w.norm(dim=1)
    still = norm == 0
    mass = torch.where(still, v * b.clamp_min(0) if net.p == 1 else 0.0, v * norm)
    unit = w / torch.where(still, 1.0, norm).unsqueeze(1)
    shift = torch.where(still, 1.0, b / torch.where(still, 1.0, norm))
    features = torch.cat([unit, shift.unsqueeze(1)], 1)
    # shifts have the unit of x: they are compared in parts of the largest
    largest = shift[~still].abs().amax() if bool((~still).any()) else shift.new_ones(())
    compared = torch.cat([unit, (shift / positive(largest)).unsqueeze(1)], 1)
    group = torch.full(v.shape, -1, dtype=torch.long, device=v.device)
    count = 0
    for sign in (1, -1):
        heard = mass * sign > MASSLESS * max((mass * sign).tolist(), default=0.0)
        here = heard.nonzero().squeeze(1)
        group[here] = parallel_groups(compared[here], mass[here].abs()) + count
        count = int(group.max()) + 1 if len(group) else 0
    kept = group >= 0
    merged = torch.zeros(count, features.shape[1], dtype=w.dtype, device=w.device)
    total = torch.zeros(count, dtype=w.dtype, device=w.device)
    total.index_add_(0, group[kept], mass[kept])
    merged.index_add_(0, group[kept], mass[kept].unsqueeze(1) * features[kept])
    merged = merged / total.unsqueeze(1)
    spread = (features[kept] - merged[group[kept]]).norm(dim=1).max() if count else torch.zeros(())
    directions = merged[:, :-1]
    length = directions.norm(dim=1, keepdim=True)
    directions = directions / torch.where(length > 0, length, 1.0)
    moving = directions[length.squeeze(1) > 0]
    axes = (
        torch.eye(w.shape[1], dtype=w.dtype, device=w.device)
        if len(moving) >= w.shape[1] > LARGEST_SVD
        else span_axes(moving)
        if len(moving)
        else w.new_zeros(w.shape[1], 0)
    )
    bias = None if net.b is None and not bool(still[kept].any()) else merged[:, -1]
    small = TwoLayerNet(directions @ axes, total, bias, net.p)
    return Reduced(small, axes, group, float(spread))


def parallel_groups(features: Float[Tensor, "m d"], mass: Float[Tensor, " m"]) -> Int[Tensor, " m"]:
    """Groups of rows within `ANGLE` of a leader, the heaviest row that has no group yet.

    Rows that are close have close projections on any direction, so a leader looks only at its neighbours in the
    order of one random projection: the cost is that of sorting where nothing is parallel.
    """
    m, d = features.shape
    generator = torch.Generator(features.device).manual_seed(0)
    probe = torch.randn(d, generator=generator, dtype=features.dtype, device=features.device)
    probe = probe / probe.norm()
    line, order = (features @ probe).sort()
    low = torch.searchsorted(line, line - ANGLE)
    high = torch.searchsorted(line, line + ANGLE, right=True)
    rank = order.argsort()
    ends = torch.stack([low[rank], high[rank]], 1).tolist()
    group = torch.full((m,), -1, dtype=torch.long, device=features.device)
    taken = [False] * m
    count = 0
    for leader in mass.argsort(descending=True, stable=True).tolist():
        if taken[leader]:
            continue
        first, last = ends[leader]
        window = order[first:last]
        if last - first > 1:
            free = window[group[window] < 0]
            near = (features[free] - features[leader]).norm(dim=1) <= ANGLE
            members = free[near]
        else:
            members = window
        group[members] = count
        for j in members.tolist():
            taken[j] = True
        count += 1
    return group
