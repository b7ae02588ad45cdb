"""Scouting: which directions matter, found on a few weighted points, before all data are looked at.

From small weights the neurons first turn, all of them, while the net is still zero: the only long part of the
flow in which thousands of neurons move. Here it is followed on a coreset, m label-wise k-means centres with their
counts as weights, in coordinates of the coreset's span (exact: the field lies in it; of a direction's part
outside only the length is needed). Once the coreset is fitted, neurons have met; they are merged, those without
mass retired, and the masses of the few that are left scaled back by one common factor to MASS, where the net is
still near zero. From there the flow goes on on all data: directions and masses align again, on all points, and
what the coreset got wrong is forgotten as exp(-time). `drift_of` says how far each direction moved in that.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.base.shapes import Numbers, Rows
from tacit.train.flow.field import Points
from tacit.train.flow.lineage import Lineage, chained, unmerged
from tacit.train.flow.loop import Ended, follow
from tacit.train.flow.neurons import BALANCED, FIXED, Neurons
from tacit.train.flow.until import Until

MASS = 0.05  # summed |A| from which all data are followed
LIGHT = 1e-4  # groups with less than this share of their sign's mass are left behind
OUTSIDE = 0.05  # a direction may keep so much outside the coreset's span
ROUGH = 0.1  # the tolerance that is enough for a scout
ANGLE = 0.05  # neurons closer than this are one to the scout
PART, NEAR_ZERO = 2500, -0.7  # so many points are enough until the log-loss has fallen by this
LLOYD = 4
SEEN = 2000  # points that k-means looks at


@dataclass(frozen=True)
class Scouted:
    """The few neurons to go on with, which of those found they are, the moment (log time) at which their mass was
    MASS, and the scouting itself."""

    neurons: Neurons
    heavy: Bool[Tensor, " k"]
    log_time: float
    ended: Ended

    @property
    def places(self) -> Int[Tensor, "1 h"]:
        """Which neuron to go on with each first neuron belongs to; -1 for those left behind."""
        number = torch.where(self.heavy, self.heavy.long().cumsum(0) - 1, -1)
        place = self.ended.book.place
        return torch.where(place >= 0, number[place.clamp_min(0)], -1)


def scouted(
    neurons: Neurons,
    points: Points,
    p: float,
    m: int,
    tolerance: float,
    until: Until,
    generator: torch.Generator,
) -> Scouted | None:
    """Scout one member on m points; None where it shows nothing: weights too large, or not aligned in time."""
    few = coreset(points, m, generator)
    axes, _ = torch.linalg.qr(few.x[0].T)
    inside = neurons.u @ axes
    outside = (1 - inside.square().sum(-1, keepdim=True)).clamp_min(0).sqrt()
    flat = Points(torch.nn.functional.pad(few.x @ axes, (0, 1)), few.y, few.log_c, few.loss)
    start = replace(neurons, u=torch.cat([inside, outside], -1))
    start = start.moved(torch.zeros_like(start.u), torch.zeros_like(start.q))
    # |f| <= sum |A| max ||x||^p: the mass at which the net is still near zero
    near = math.log(MASS) - p * float(points.x[0].norm(dim=-1).max().clamp_min(1e-30).log())
    total = float(points.log_c.logsumexp(-1))
    if bool((neurons.kind == FIXED).any()) or float(start.log_mass.logsumexp(-1)) >= near:
        return None
    if until.log_loss is not None and until.log_loss > total + NEAR_ZERO:
        return None
    # below the lightest point's share of the loss every point is fitted, and no cluster is left out
    goal = min(float(flat.log_c.logsumexp(-1)) - 3.0, float(flat.log_c.min()) - 1.0)
    [ended] = follow(
        start,
        flat,
        p,
        Until(log_loss=goal, evaluations=4000),
        tolerance=max(tolerance, ROUGH),
        merge_angle=ANGLE,
        frames=6,
        log_marks=(),
        watch=start.u.new_zeros(0, start.u.shape[2]),
    )
    if ended.stopped != "loss" or ended.history is None:
        return None
    found = ended.neurons
    mass, side = found.log_mass[0], found.side[0]
    share = mass - torch.where(
        side > 0,
        torch.where(side > 0, mass, -math.inf).logsumexp(0),
        torch.where(side < 0, mass, -math.inf).logsumexp(0),
    )
    heavy = share > math.log(LIGHT)
    if not bool(heavy.any()) or float(found.u[0, heavy, -1].max()) > OUTSIDE:
        return None
    u = found.u[:, heavy, :-1] @ axes.mT
    u = u / u.norm(dim=-1, keepdim=True)
    total = float(mass[heavy].logsumexp(0))
    q = 0.5 * (mass[heavy] - total + near).unsqueeze(0)
    kind = torch.full_like(q, BALANCED, dtype=torch.int64)
    kept = Neurons(u, q, torch.zeros_like(q), side[heavy].unsqueeze(0), kind)
    log_time = moment_of(ended, near)
    if until.time is not None and math.log(until.time / 2) < log_time:
        return None
    return Scouted(kept, heavy, log_time, ended)


def confirmed(
    ahead: Scouted,
    points: Points,
    p: float,
    until: Until,
    tolerance: float,
    merge_angle: float,
) -> Ended:
    """The flow of the scouted neurons on all data; on an eighth of them first, while the net is near zero."""
    u = ahead.neurons.u
    none = u.new_zeros(0, u.shape[2])
    log_time, book, neurons = ahead.log_time, unmerged(ahead.neurons, none), ahead.neurons
    plan = [(points, until)]
    if points.x.shape[1] >= 8 * PART:
        part = sampled(points, PART, torch.Generator().manual_seed(0))
        near_zero = float(points.log_c.logsumexp(-1)) + NEAR_ZERO
        # half of the time that is left: a part that needs more of it has told nothing
        most = None if until.time is None else (until.time - math.exp(log_time)) / 2
        plan.insert(0, (part, Until(log_loss=near_zero, time=most, evaluations=2000)))
    looks, merge_error = 0, 0.0
    for data, goal in plan:
        if goal is until and until.time is not None:
            goal = replace(until, time=until.time - math.exp(log_time))
        [end] = follow(
            neurons, data, p, goal, tolerance=tolerance, merge_angle=merge_angle, frames=0,
            log_marks=(), watch=none,
        )  # fmt: skip
        if data is not points and end.stopped != "loss":
            continue
        times = torch.tensor([log_time, end.log_time], dtype=torch.float64)
        log_time = float(times.logsumexp(0))
        book, neurons, looks = chained(book, end.book), end.neurons, looks + end.looks
        merge_error += end.merge_error
    first = left_behind(ahead, none)
    return replace(
        end, book=chained(first, book), log_time=log_time, looks=looks, merge_error=merge_error,
    )  # fmt: skip


def left_behind(ahead: Scouted, none: Float[Tensor, "0 D"]) -> Lineage:
    """The book of the scouting, with those not gone on with retired at the mass they had then."""
    book = ahead.ended.book
    flat = none.new_zeros(0, ahead.ended.neurons.u.shape[2])
    mass, side, _ = book.all_neurons(ahead.ended.neurons, flat)
    return replace(book, place=ahead.places, last_mass=mass, last_side=side)


def drift_of(ahead: Scouted, end: Ended) -> float:
    """The mean angle, weighted by mass, between the scouted directions and where they ended."""
    turned, mass = 0.0, 0.0
    for i, share in enumerate(ahead.neurons.log_mass[0].exp().tolist()):
        members = (ahead.places[0] == i).nonzero().flatten()
        at = int(end.book.place[0, members[0]])
        if at >= 0:
            cosine = float(ahead.neurons.u[0, i] @ end.neurons.u[0, at])
            turned += share * math.acos(max(-1.0, min(1.0, cosine)))
            mass += share
    return turned / mass if mass else math.inf


def moment_of(ended: Ended, log_mass: float) -> float:
    """log of the time at which the summed mass first reached exp(log_mass), between the recorded moments."""
    assert ended.history is not None
    total = ended.history.log_mass.logsumexp(1)
    after = int((total >= log_mass).nonzero()[0])
    before = max(after - 1, 0)
    step = float(total[after] - total[before])
    part = (log_mass - float(total[before])) / step if step > 0 else 1.0
    t0, t1 = (math.exp(float(ended.history.log_time[i])) for i in (before, after))
    return math.log(t0 + part * (t1 - t0))


def coreset(points: Points, m: int, generator: torch.Generator) -> Points:
    """m label-wise k-means centres of (a sample of) the points, with the points' summed weights."""
    share = (points.y[0] > 0).double().mean()
    points = sampled(points, SEEN, generator)
    x, y, c = points.x[0], points.y[0], points.log_c[0].exp()
    parts = []
    for label in (1.0, -1.0):
        mine = y == label
        count = int(mine.sum())
        if count == 0:
            continue
        k = max(1, min(count, round(m * float(share if label > 0 else 1 - share))))
        parts.append((*kmeans(x[mine], c[mine], k, generator), label))
    centres = torch.cat([centre for centre, _, _ in parts])
    weights = torch.cat([weight for _, weight, _ in parts])
    labels = torch.cat([torch.full_like(weight, label) for _, weight, label in parts])
    return Points(centres[None], labels[None], weights.log()[None], points.loss)


def sampled(points: Points, count: int, generator: torch.Generator) -> Points:
    """About `count` points at random, label by label (a rare class keeps a point), weighing as much as all."""
    n = points.x.shape[1]
    if n <= count:
        return points
    takes, gains = [], []
    for label in (1.0, -1.0):
        mine = (points.y[0] == label).nonzero().flatten().cpu()
        some = min(len(mine), max(count // 10, round(count * len(mine) / n)))
        takes.append(mine[torch.randperm(len(mine), generator=generator)[:some]])
        gains.append(torch.full((some,), math.log(len(mine) / some) if some else 0.0))
    take = torch.cat(takes).to(points.x.device)
    gain = torch.cat(gains).to(points.log_c)
    return Points(points.x[:, take], points.y[:, take], points.log_c[:, take] + gain, points.loss)


def kmeans(
    x: Rows, c: Numbers, k: int, generator: torch.Generator
) -> tuple[Float[Tensor, "k D"], Float[Tensor, " k"]]:
    """Lloyd's iteration from points drawn one after another, each far from those before (k-means++)."""
    square = x.square().sum(1)
    first = int(torch.randint(len(x), (1,), generator=generator))
    chosen = [first]
    far = distances(x, square, x[first : first + 1])[:, 0]
    for _ in range(k - 1):
        # double on the CPU: the same draw on every device
        weight = far.clamp_min(0).double().cpu() + 1e-300
        chosen.append(int(torch.multinomial(weight, 1, generator=generator)))
        new = distances(x, square, x[chosen[-1] : chosen[-1] + 1])[:, 0]
        far = torch.minimum(far, new)
    centres = x[chosen]
    for _ in range(LLOYD):
        own = distances(x, square, centres).argmin(1)
        centres, weight = means(x, c, own, centres)
    full = weight > 0
    return centres[full], weight[full]


def distances(x: Rows, square: Numbers, centres: Float[Tensor, "k D"]) -> Float[Tensor, "n k"]:
    """Squared distances to the centres."""
    return square[:, None] - 2 * x @ centres.T + centres.square().sum(1)


def means(
    x: Rows, c: Numbers, own: Int[Tensor, " n"], centres: Float[Tensor, "k D"]
) -> tuple[Float[Tensor, "k D"], Float[Tensor, " k"]]:
    """Weighted means of each cell and its weight; an empty cell keeps its centre, with weight 0."""
    belongs = torch.nn.functional.one_hot(own, len(centres)).to(x.dtype) * c[:, None]
    weight = belongs.sum(0)
    mean = (belongs.T @ x) / weight.clamp_min(1e-30)[:, None]
    return torch.where((weight > 0)[:, None], mean, centres), weight
