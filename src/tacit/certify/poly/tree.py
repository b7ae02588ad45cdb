r"""Branch and bound for PolyReLU nets: a certified radius in any norm, any directions, any p > 1.

relu(z)^p is convex: on an interval [l, u] of its projection z_k an opposite neuron lies below its chord. A node
is a box of such intervals. With N(z) = (sum_own A_k relu(z_k)^p)^(1/p), a convex function of degree 1, and S =
sum_opp A_k (relu(l_k)^p + m_k (z_k - l_k)) + tau, m_k the chords' slopes, affine in delta, a broken point of
the node has N <= S^(1/p): it lies in {C <= 0} of the convex function

    C(delta) = N(z) - S^(1/p),     z = t + V delta.

(The p-th roots keep gradients from vanishing where all own projections meet 0. Below a small S the root
is replaced by its tangent, which lies above.) The tangent of C at **any** delta, with gradient g, says that
a broken point delta' of the node obeys C(delta) + <g, delta' - delta> <= 0: it is no closer than

    (C(delta) - <g, delta>)_+ / ||g||_dual.

The best delta is the minimiser of C over the ball of the radius to be proved (the goal): projected gradient
steps with Barzilai and Borwein's length. If C <= 0 is met in the ball, the node is cut. Outside its interval a
chord lies below the function, so the looseness is with projections inside theirs: the one with the largest gap
is cut, there. Where none has a gap, the goal is lowered. The radius is at least the least bound of what is
left.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.attack.norms import Norm
from tacit.base.shapes import Numbers, Rows
from tacit.certify.poly.merge import Shifted
from tacit.certify.poly.roots import power

STEPS = 25  # gradient steps a round
ROUNDS = 60
CLOSED = 1e-4  # the goal is this much below what the attack reached, relative
MARGIN = 0.1  # a cut stays this part of the interval away from its ends
ELEMENTS = 2**23  # of the largest array: points are taken in chunks
SHARP = 1e-5  # of N at the point: S^(1/p) is straight below this
ROUNDING = 1e-13
SLACK = 1e-9


@dataclass(frozen=True)
class Nodes:
    """Boxes: the point they belong to, the intervals of its opposite projections, and where to start."""

    point: Int[Tensor, " m"]
    low: Float[Tensor, "m K2"]
    high: Float[Tensor, "m K2"]
    delta: Float[Tensor, "m D"]

    def at(self, here: Tensor) -> Nodes:
        """Some of the nodes."""
        return Nodes(self.point[here], self.low[here], self.high[here], self.delta[here])


@dataclass(frozen=True)
class Bounded:
    """Of each node its bound, whether C <= 0 was met in the ball, and the delta reached."""

    bound: Float[Tensor, " m"]
    broken: Bool[Tensor, " m"]
    delta: Float[Tensor, "m D"]


def tree_lower(problem: Shifted, norm: Norm, delta: Rows, lower: Numbers, budget: int) -> Numbers:
    """No broken point is closer than this (or than `problem.radius`), in `norm`; at least `lower`.

    `delta` are good breaking moves, in the coordinates of V; about `budget` nodes a point are bounded at most.
    """
    proved = lower.clone()
    todo = (lower < problem.radius * (1 - CLOSED)).nonzero().squeeze(1)
    size = max(1, ELEMENTS // (max(problem.V.shape) * min(budget, 256)))
    for here in todo.split(size):
        found = search(problem.at(here), norm, delta[here], budget)
        proved[here] = torch.maximum(lower[here], found * (1 - SLACK))
    return proved


def search(problem: Shifted, norm: Norm, delta: Rows, budget: int) -> Numbers:
    """The least bound of the leaves of each point's tree."""
    opp = ~problem.own
    reach = norm.dual(problem.V)[opp] * problem.radius.unsqueeze(1) * (1 + SLACK)
    t = problem.t[:, opp]
    nodes = Nodes(torch.arange(len(t)), t - reach, t + reach, delta)
    goal = problem.radius * (1 - CLOSED)
    shrink = torch.full_like(goal, CLOSED)
    least = problem.radius.clone()
    used = torch.zeros_like(goal)
    for left_over in reversed(range(ROUNDS)):
        found = descend(problem, norm, nodes, goal[nodes.point])
        used.index_add_(0, nodes.point, torch.ones_like(found.bound))
        gap = chord_gap(problem, nodes, found.delta)
        loose = gap.amax(1) > 0 if gap.shape[1] else torch.zeros_like(found.broken)
        # truly broken below the goal: the attack was not the best, and less is to be proved
        beaten = torch.zeros_like(goal, dtype=torch.bool)
        beaten[nodes.point[found.broken & ~loose]] = True
        goal = torch.where(beaten, goal * (1 - shrink), goal)
        shrink = torch.where(beaten, (2 * shrink).clamp_max(0.5), shrink)
        more = (found.bound < goal[nodes.point]) & (used[nodes.point] < budget)
        if not left_over:
            more = torch.zeros_like(more)
        least.scatter_reduce_(0, nodes.point[~more], found.bound[~more], "amin")
        nodes = Nodes(nodes.point[more], nodes.low[more], nodes.high[more], found.delta[more])
        if not len(nodes.point):
            break
        nodes = cut(problem, nodes, gap[more], loose[more])
    return least


def chord(nodes: Nodes, p: float) -> tuple[Float[Tensor, "m K2"], Float[Tensor, "m K2"]]:
    """Slope of the chord of relu(z)^p on each interval, and its value at the lower end."""
    low, high = (power(z.clamp_min(0), p) for z in (nodes.low, nodes.high))
    width = (nodes.high - nodes.low).clamp_min(1e-300)
    return (high - low) / width, low


def chord_gap(problem: Shifted, nodes: Nodes, delta: Float[Tensor, "m D"]) -> Float[Tensor, "m K2"]:
    """A_k (chord - relu^p) at delta, for projections inside their interval; at most 0 for the others."""
    slope, base = chord(nodes, problem.p)
    opp = ~problem.own
    z = problem.t[nodes.point][:, opp] + delta @ problem.V[opp].T
    gap = base + slope * (z - nodes.low) - power(z.clamp_min(0), problem.p)
    noise = 1e-12 * (base + power(nodes.high.clamp_min(0), problem.p))
    return torch.where(gap > noise, problem.A[opp] * gap, 0.0)


def cut(
    problem: Shifted, nodes: Nodes, gap: Float[Tensor, "m K2"], loose: Bool[Tensor, " m"]
) -> Nodes:
    """Two children at the widest gap; where there is none the node goes on as it is."""
    again, rest = nodes.at(~loose), nodes.at(loose)
    if not len(rest.point):
        return again
    opp = ~problem.own
    k = gap[loose].argmax(1, keepdim=True)
    z = problem.t[rest.point][:, opp] + rest.delta @ problem.V[opp].T
    low, high = rest.low.gather(1, k), rest.high.gather(1, k)
    room = MARGIN * (high - low)
    at = torch.minimum(torch.maximum(z.gather(1, k), low + room), high - room)
    below, above = rest.high.scatter(1, k, at), rest.low.scatter(1, k, at)
    return Nodes(
        torch.cat([again.point, rest.point, rest.point]),
        torch.cat([again.low, rest.low, above]),
        torch.cat([again.high, below, rest.high]),
        torch.cat([again.delta, rest.delta, rest.delta]),
    )


def descend(problem: Shifted, norm: Norm, nodes: Nodes, goal: Float[Tensor, " m"]) -> Bounded:
    """Minimise C over the ball of radius `goal`, and keep the best bound met on the way."""
    own, opp = problem.own, ~problem.own
    p, V, A = problem.p, problem.V, problem.A
    slope, base = chord(nodes, p)
    t = problem.t[nodes.point]
    rise = slope * (t[:, opp] - nodes.low)
    against = (base + rise) @ A[opp] + problem.tau[nodes.point]
    noise = (base + rise.abs()) @ A[opp]
    push = (slope * A[opp]) @ V[opp]
    ball = goal.unsqueeze(1)
    sharp = power(t[:, own].clamp_min(0), p) @ A[own] * SHARP**p + 1e-200

    def look(delta: Float[Tensor, "m D"]) -> tuple[Tensor, Tensor, Tensor]:
        """C, its gradient and the bound of the tangent at delta."""
        z = (t[:, own] + delta @ V[own].T).clamp_min(0)
        N = (power(z, p) @ A[own]) ** (1 / p)
        steep = (power(z / N.clamp_min(1e-100).unsqueeze(1), p - 1) * A[own]) @ V[own]
        S = against + (delta * push).sum(1)
        at = torch.maximum(S, sharp)
        lift = at ** (1 / p - 1) / p
        root = at ** (1 / p) + lift * (S - at)
        g = steep - lift.unsqueeze(1) * push
        C, along = N - root, (delta * g).sum(1)
        size = N + at ** (1 / p) + lift * (noise + (delta * push).sum(1).abs()) + along.abs()
        H = C - along - ROUNDING * size
        # g = 0 with H > 0: no point of the node is broken
        bound = torch.where(H > 0, H / norm.dual(g).clamp_min(1e-300), 0.0)
        return C, g, bound

    delta = norm.project(nodes.delta, ball, None)
    C, g, best = look(delta)
    step = goal / norm.dual(g).clamp_min(1e-300)
    for _ in range(STEPS):
        if bool(((best >= goal) | (C <= 0)).all()):
            break
        trial = norm.project(delta - step.unsqueeze(1) * g, ball, None)
        C_new, g_new, bound = look(trial)
        best = torch.maximum(best, bound)
        better = C_new < C
        s, dg = trial - delta, g_new - g
        bent = (s * dg).sum(1)
        longer = torch.where(bent > 0, (s * s).sum(1) / bent.clamp_min(1e-300), 4 * step)
        step = torch.where(better, longer, step / 4)
        row = better.unsqueeze(1)
        delta, g = torch.where(row, trial, delta), torch.where(row, g_new, g)
        C = torch.where(better, C_new, C)
    return Bounded(best, C <= 0, delta)
