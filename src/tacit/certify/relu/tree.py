r"""Branch and bound over the opposite neurons of a ReLU net: many points, best nodes first.

A node fixes some opposite neurons on, some off, and leaves the others free. Within the ball of radius R, the
shortest breaking move known so far, a free neuron's value stays in z -+ R ||w||_dual: there relu lies below
its chord, and a sign that cannot change is settled. So every node is a convex set that holds all shorter
breaking moves of its kind (`relu_node.py`), with a certified distance. A node that is no closer than R
is done; another is split at the free neuron whose chord is farthest above relu at the node's nearest point. A
node without free neurons is exact, {sum_own relu(z) <= sum_T z}, and the union of these over T is the broken set.

**From above.** From a node's nearest point, T := the opposite neurons that are on there, the nearest
point of T's set, and again (the convex-concave procedure): a point of that set breaks the net whatever T was.
Values are shifted a little against the break, so that it is seen in float64 too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int, Int8
from torch import Tensor

from tacit.certify.relu.node import DUAL, Nodes, Sides, Solved, Values, lines, nodes_of
from tacit.certify.relu.shapes import Chosen, Owners, PerNode, Shares

TIGHT = 1e-9  # relative: two ends this close are one radius
WIDTH = 16384  # nodes solved together
STEPS = 6  # of the convex-concave procedure
SHIFT, HARDER = 1e-14, 10.0  # relative: the first shift, and the factor where it was not enough
LOOSE = 1e-12  # relative: rounding in f at a point of a set without interior
ALIKE = 1e-6  # relative: a move that breaks is kept although one this much shorter breaks up to rounding

Solver = Callable[[Nodes, Shares, PerNode], Solved]
Breaks = Callable[[Owners, Float[Tensor, "N D"], float], Chosen]


@dataclass(frozen=True)
class ClassTask:
    """Points of one class under one net: what is searched.

    `breaks(i, delta, loose)` asks the net itself whether delta breaks point i, up to `loose`. `empty`: all
    opposite neurons off may break a point (f = 0 counts, or a constant speaks against the class).
    """

    sides: Sides
    values: Values
    norm: float
    solver: Solver
    breaks: Breaks
    empty: bool


@dataclass(frozen=True)
class Best:
    """The shortest breaking moves so far; where there is none, the search goes as far as `reach`."""

    upper: Float[Tensor, " n"]
    delta: Float[Tensor, "n D"]
    reach: Float[Tensor, " n"]

    @property
    def ball(self) -> Float[Tensor, " n"]:
        """R: only shorter moves matter."""
        return torch.where(torch.isinf(self.upper), self.reach, self.upper)


@dataclass(frozen=True)
class Pool:
    """Open nodes: their point, the state of each opposite neuron (1 on, -1 off, 0 free), bound, theta."""

    point: Owners
    state: Int8[Tensor, "N k"]
    bound: PerNode
    theta: Shares

    def at(self, here: Int[Tensor, " M"] | Chosen) -> Pool:
        """Some of the nodes."""
        return Pool(self.point[here], self.state[here], self.bound[here], self.theta[here])

    def plus(self, other: Pool) -> Pool:
        """Both."""
        return Pool(
            torch.cat([self.point, other.point]),
            torch.cat([self.state, other.state]),
            torch.cat([self.bound, other.bound]),
            torch.cat([self.theta, other.theta]),
        )


def roots(task: ClassTask) -> Pool:
    """One node a point, every neuron free."""
    own, opp = task.values.own, task.values.opp
    return Pool(
        torch.arange(len(own)),
        torch.zeros(opp.shape, dtype=torch.int8),
        torch.zeros(len(own), dtype=own.dtype),
        (own > 0).to(own.dtype),
    )


def search(task: ClassTask, best: Best, budget: int) -> tuple[Float[Tensor, " n"], Best]:
    """Certified distances, at most `best.ball`, and the shortest breaking moves found.

    Each point gets `budget` nodes; when they are spent, the least bound of its open nodes stands.
    """
    pool = roots(task)
    for on in (task.values.opp > 0, torch.zeros_like(task.values.opp, dtype=torch.bool)):
        best = improve(task, best, pool.point, on, pool.theta)
    open_at = torch.full_like(best.upper, torch.inf)  # the least bound of what was not followed
    spent = torch.zeros(len(open_at), dtype=torch.long)

    def leave(nodes: Pool) -> None:
        open_at.scatter_reduce_(0, nodes.point, nodes.bound, "amin")

    while len(pool.point):
        affordable = spent + torch.bincount(pool.point, minlength=len(spent)) <= budget
        leave(pool.at(~affordable[pool.point]))
        pool = pool.at(affordable[pool.point])
        order = (pool.bound / best.ball[pool.point]).argsort()
        now, pool = pool.at(order[:WIDTH]), pool.at(order[WIDTH:])
        spent += torch.bincount(now.point, minlength=len(spent))
        seen = visit(task, now, best.ball)
        now, whole = seen.nodes, torch.isinf(seen.excess).all(1)  # no free neuron is left
        tried = closer(now, best) & (whole | is_first(now.point, now.bound))
        best = improve(task, best, now.point[tried], seen.on[tried], now.theta[tried])
        # a set without interior: its nearest point breaks up to rounding
        last = whole & (now.bound < best.ball[now.point] * (1 - ALIKE))
        rounded = task.breaks(now.point[last], seen.delta[last], LOOSE)
        best = shorter(task, best, now.point[last], seen.delta[last], rounded)
        left = closer(now, best)
        leave(now.at(left & whole))
        split = left & ~whole
        if split.any():
            pool = pool.plus(children(now.at(split), seen.excess[split]))
        pool = pool.at(closer(pool, best))
    return torch.minimum(open_at, best.ball * (1 - TIGHT)), best


@dataclass(frozen=True)
class Visited:
    """Bounded nodes and what their nearest points say: the move, the opposite neurons that are on there or
    fixed on, and by how much each free neuron's chord is above relu (-inf where a neuron is not free)."""

    nodes: Pool
    delta: Float[Tensor, "N D"]
    on: Bool[Tensor, "N k"]
    excess: Float[Tensor, "N k"]


def visit(task: ClassTask, pool: Pool, ball: Float[Tensor, " n"]) -> Visited:
    """Bounds the nodes within the balls."""
    values, radius = task.values.at(pool.point), ball[pool.point]
    size = torch.linalg.vector_norm(task.sides.opp, ord=DUAL[task.norm], dim=1)
    size = size * (1 + task.sides.rounding) + task.sides.opp_lost
    slope, offset = lines(values.opp, radius.unsqueeze(1) * size, pool.state)
    solved = task.solver(nodes_of(task.sides, values, slope, offset), pool.theta, radius)
    bound = torch.maximum(pool.bound, solved.bound)
    if not task.empty:
        bound = torch.where((slope == 0).all(1), torch.inf, bound)
    z = values_at(task, pool.point, solved.delta)
    excess = torch.where(offset > 0, slope * z + offset - z.clamp_min(0), -torch.inf)
    nodes = replace(pool, bound=bound, theta=solved.theta)
    return Visited(nodes, solved.delta, (z > 0) | (slope == 1), excess)


def children(pool: Pool, excess: Float[Tensor, "N k"]) -> Pool:
    """Both signs of the free neuron with the largest excess."""
    at = excess.argmax(1, keepdim=True)
    on, off = (
        replace(pool, state=pool.state.scatter(1, at, torch.full_like(at, s, dtype=torch.int8)))
        for s in (1, -1)
    )
    return on.plus(off)


def improve(
    task: ClassTask, best: Best, point: Owners, on: Bool[Tensor, "N k"], theta: Shares
) -> Best:
    """The convex-concave procedure from sets `on` of opposite neurons."""
    shift, length = (torch.full_like(point, s, dtype=theta.dtype) for s in (SHIFT, 0.0))
    for _ in range(STEPS):
        possible = on.any(1) | task.empty
        point, on, theta, shift, length = (t[possible] for t in (point, on, theta, shift, length))
        if not len(point):
            break
        slope, values = on.to(theta.dtype), against(task, point, shift, length)
        nodes = nodes_of(task.sides, values, slope, torch.zeros_like(slope))
        solved = task.solver(nodes, theta, best.upper[point])
        broken = task.breaks(point, solved.delta, 0.0)
        near = solved.bound < best.upper[point]
        best = shorter(task, best, point, solved.delta, broken)
        now_on = values_at(task, point, solved.delta) > 0
        moving = near & (~broken | (now_on != on).any(1))
        on, theta = torch.where(broken.unsqueeze(1), now_on, on), solved.theta
        length = torch.linalg.vector_norm(solved.delta, ord=task.norm, dim=1)
        shift = torch.where(broken, shift, shift * HARDER)
        point, on, theta, shift, length = (t[moving] for t in (point, on, theta, shift, length))
    return best


def against(task: ClassTask, point: Owners, shift: PerNode, length: PerNode) -> Values:
    """The neurons' values, shifted against the break by a fraction of their size at moves of a length."""
    values = task.values.at(point)
    own, opp = (
        size + length.unsqueeze(1) * torch.linalg.vector_norm(w, ord=DUAL[task.norm], dim=1)
        for size, w in ((values.own_size, task.sides.own), (values.opp_size, task.sides.opp))
    )
    by = shift.unsqueeze(1)
    return replace(values, own=values.own + by * own, opp=values.opp - by * opp)


def shorter(
    task: ClassTask, best: Best, point: Owners, delta: Float[Tensor, "N D"], broken: Chosen
) -> Best:
    """Takes the moves that break and are shorter than what is known."""
    length = torch.linalg.vector_norm(delta, ord=task.norm, dim=1)
    better = broken & (length < best.upper[point])
    better &= is_first(point, torch.where(better, length, torch.inf))
    upper, moves = best.upper.clone(), best.delta.clone()
    upper[point[better]], moves[point[better]] = length[better], delta[better]
    return replace(best, upper=upper, delta=moves)


def values_at(task: ClassTask, point: Owners, delta: Float[Tensor, "N D"]) -> Float[Tensor, "N k"]:
    """The opposite neurons' values at the moved points."""
    return task.values.opp[point] + delta @ task.sides.opp.T


def closer(pool: Pool, best: Best) -> Chosen:
    """Nodes that may hold a shorter move."""
    return pool.bound < best.ball[pool.point] * (1 - TIGHT)


def is_first(point: Owners, key: PerNode) -> Chosen:
    """One node a point: that with the least key."""
    order = key.argsort()
    order = order[point[order].argsort(stable=True)]
    first = torch.ones_like(order, dtype=torch.bool)
    first[1:] = point[order][1:] != point[order][:-1]
    return torch.zeros_like(first).scatter(0, order, first)
