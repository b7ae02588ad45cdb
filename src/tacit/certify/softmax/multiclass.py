r"""Radii of the multi-class net of li2025 (Section 4.2), f_j = mean_r relu(<w_jr, x>), any weights, in l2.

A point of class y is broken where sum_own e^{f_i} <= sum_opp e^{f_j}. Two certificates, the longer one counts.

**Sums.** Let u_j = mean_r w_jr, z_j = <u_j, x>, s_j = <u_j, delta>. Own logits: f_i >= relu(z_i + s_i) (Jensen).
Opposite ones: let w_jr = c_r u_j + e_r with mean c_r = 1, mean e_r = 0 (c_r > 0 the projection on u_j, or 1), and
t = z_j + s_j. Neuron r is on where c_r t > |<e_r, x + delta>|. From t = tau_j on, all are on and f_j = t; below,
f_j is at most what it is there, for it rises with t: f_j <= max(t, tau_j), where within radius rho (that of the
attack) tau_j = max_r (|<e_r, x>| + ||e_r|| rho) / c_r. One neuron a subclass: tau = 0, nothing is lost. Moves
cost ||delta||^2 >= sum_l s_l^2 / E_l for every diagonal E with E - (<u_l, u_m>) positive semidefinite. Now sums
and cost are separable, and `softmax_leader` bounds the least cost. A first E serves all cases: ||u_l||^2 times
the largest eigenvalue of the cosines. In the case that j is the largest opposite logit, and i the own one at x,
a move along u_j - u_i is what counts: `pair_diagonal` makes E_i and E_j as small as a little more for the
others lets them be, and for that move next to nothing is lost.

**Pieces.** Since max <= log-sum-exp <= max + ln K, every broken point has max_own f <= max_opp f + ln K_opp. Each
f_j is the largest of 2^h linear functions, f_j = max_A <u_jA, x>, u_jA = sum_{r in A} w_jr / h; so the broken
points lie in a union over (j, A) of polyhedra, no closer than the farthest of their half-spaces:
min_{j,A} max_i (<u_i - u_jA, x> - ln K_opp) / ||u_i - u_jA||. This is the better one for large logits, and where
no diagonal is near the Gram matrix.

The upper end is an attack: what breaks on the way to each opposite subclass, to all of them and to the nearest
pieces is shortened along the boundary (`attack.walk`); where the interval is still wide, a longer search follows.
Wide intervals are what nets without structure have: neurons that differ much within a subclass, large cosines.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.attack.norms import L2
from tacit.attack.shortest.minimal import moved_on
from tacit.attack.shortest.walk import first_broken, ranked, shortest, shortest_by_walk, walk
from tacit.base.linalg import span_axes
from tacit.base.shapes import Numbers, Rows
from tacit.certify.interval import Radii, between
from tacit.certify.softmax.leader import SLACK, Sums, least_cost
from tacit.errors import CallError
from tacit.nets import MultiClassNet
from tacit.nets.multiclass import log_odds

MOST_ENUMERATED = 8  # neurons a subclass: 2^h pieces each
REACH = 1.5  # hints go this far past the other subclass's level
WIDE = 0.1  # relative: such an interval is worth a longer search
WALKS = 2  # along the boundary, from the shortest of what was found
NEAREST = 3  # pieces that the attack aims at
MOST_PAIRED = 40  # subclasses: a diagonal for each pair
LIFT, LEAST_LIFT = 0.4, 0.005  # what the other opposite subclasses get above the largest eigenvalue
TINY = 1e-150
ROUNDING = 1e-15  # of an inner product, next to the two lengths


def multiclass_radius(net: MultiClassNet, x: Rows, y: Numbers) -> Radii:
    """The interval of each point, float64."""
    if not ((net.labels > 0).any() and (net.labels < 0).any()):
        raise CallError("a multi-class net needs subclasses of both classes")
    rows = net.w.flatten(0, 1)
    # of rows of one size: none is dropped for being short next to the others
    axes = span_axes(rows / rows.abs().amax(1, keepdim=True).clamp_min(TINY))
    low, small = x @ axes, replace(net, w=net.w @ axes)
    upper = shortest_found(net, x, y, small, low, axes)
    lower = torch.zeros_like(upper)
    for sign in (1, -1):
        mine = ((y == sign) & (upper > 0)).nonzero().squeeze(1)
        lower[mine] = by_pieces(small, low[mine], sign)
        # no radius, no bound of what neurons that differ within a subclass can do
        mine = mine[torch.isfinite(upper[mine])]
        sums = by_sums(small, low[mine], sign, upper[mine])
        lower[mine] = torch.maximum(lower[mine], sums)
    wide = (lower < (1 - WIDE) * upper).nonzero().squeeze(1)
    if len(wide) and axes.shape[1]:
        at, label = low[wide], y[wide]
        generator = torch.Generator(x.device).manual_seed(0)
        move = shortest_by_walk(MultiClassTarget(small), at, label, L2, None, generator, [])
        upper[wide] = torch.minimum(upper[wide], seen_to_break(net, x[wide], label, move @ axes.T))
    lower = lower.nan_to_num(0.0, torch.inf)  # weights past 1e150 overflow: nothing is certified
    return between(lower, upper)


def by_sums(net: MultiClassNet, x: Rows, sign: int, upper: Numbers) -> Numbers:
    """The certificate of sums for points of class `sign`, of use up to `upper`: the better of both diagonals."""
    own, opp = net.labels * sign > 0, net.labels * sign < 0
    u = net.w.mean(1)
    z, floor = x @ u.T, floors(net.w[opp], x, upper)
    norm = u.norm(dim=1).clamp_min(TINY)
    cosine = (u / norm.unsqueeze(1)) @ (u / norm.unsqueeze(1)).T
    most = torch.linalg.eigvalsh(cosine)[-1].clamp_min(1)
    E = sound_diagonal(cosine, most.expand(int(opp.sum()), len(u)))
    cost = 1 / (E * norm**2)
    squared = least_cost(Sums(z[:, own], z[:, opp], floor, cost[:, own], cost[:, opp], True))
    if len(u) > MOST_PAIRED:
        return squared.sqrt()
    lead = z.masked_fill(~own, -torch.inf).argmax(1)
    for i in lead.unique().tolist():
        mine = lead == i
        pairs = [pair_diagonal(cosine, most, own, i, j) for j in opp.nonzero().flatten().tolist()]
        cost = 1 / (sound_diagonal(cosine, torch.stack(pairs)) * norm**2)
        sums = Sums(
            z[mine][:, own], z[mine][:, opp], floor[mine], cost[:, own], cost[:, opp], False
        )
        squared[mine] = torch.maximum(squared[mine], least_cost(sums))
    return squared.sqrt()


def pair_diagonal(
    cosine: Float[Tensor, "k k"], most: Float[Tensor, ""], own: Bool[Tensor, " k"], i: int, j: int
) -> Float[Tensor, " k"]:
    """A diagonal above the cosine matrix, as low as can be at i and j.

    Others of the own class, mostly off, may cost little: they get most + 1; other opposite ones a little
    more than the largest eigenvalue. Then i and j get the largest eigenvalue of the Schur complement.
    """
    E = torch.where(own, most + 1, most + (LIFT * (most - 1)).clamp_min(LEAST_LIFT))
    pair = torch.tensor([i, j], device=E.device)
    rest = torch.ones_like(own).index_fill(0, pair, False).nonzero().squeeze(1)
    across = cosine[rest][:, pair]
    inner = E[rest].diag() - cosine[rest][:, rest]
    schur = cosine[pair][:, pair] + across.T @ torch.linalg.solve(inner, across)
    # below 1 only where both are silent, and no cost is infinite
    return E.index_fill(0, pair, float(torch.linalg.eigvalsh(schur)[-1].clamp_min(1)))


def sound_diagonal(cosine: Float[Tensor, "k k"], E: Float[Tensor, "c k"]) -> Float[Tensor, "c k"]:
    """E raised by what it lacks to be above the matrix, and by a hair for rounding."""
    lack = -torch.linalg.eigvalsh(torch.diag_embed(E) - cosine)[:, :1]
    return (E + lack.clamp_min(0)) * (1 + SLACK)


def floors(w: Float[Tensor, "j h D"], x: Rows, radius: Numbers) -> Float[Tensor, "n j"]:
    """tau_j within `radius`: f_j <= max(tau_j, mean_r <w_jr, x + delta>). 0 for one neuron."""
    u = w.mean(1, keepdim=True)
    along = (w * u).sum(2) / (u * u).sum(2).clamp_min(TINY)
    taus = []
    for c in (along, torch.ones_like(along)):
        rest = w - c.unsqueeze(2) * u
        size = torch.einsum("nd,jhd->njh", x, rest).abs() + radius[:, None, None] * rest.norm(dim=2)
        taus.append(torch.where(c > 0, size / c.clamp_min(TINY), torch.inf).amax(2))
    if w.shape[1] == 1:
        return torch.zeros_like(taus[0])
    return torch.minimum(*taus)


def by_pieces(net: MultiClassNet, x: Rows, sign: int) -> Numbers:
    """The certificate of half-spaces; 0 for more than 8 neurons a subclass."""
    if net.w.shape[1] > MOST_ENUMERATED:
        return torch.zeros_like(x[:, 0])
    own, opp = net.labels * sign > 0, net.labels * sign < 0
    depth = depths(net.w[own].mean(1), pieces_of(net.w[opp]), x, math.log(int(opp.sum())))
    return depth.amax(1).amin(1).clamp_min(0) * (1 - SLACK)


def pieces_of(w: Float[Tensor, "j h D"]) -> Float[Tensor, "a D"]:
    """All u_jA."""
    subsets = list(product((0.0, 1.0), repeat=w.shape[1]))
    choice = torch.tensor(subsets, dtype=w.dtype, device=w.device) / w.shape[1]
    return torch.einsum("ah,jhd->jad", choice, w).flatten(0, 1)


def depths(
    u: Float[Tensor, "i D"], pieces: Float[Tensor, "a D"], x: Rows, slack: float
) -> Float[Tensor, "n i a"]:
    """How far x is from {<u_i - piece, x> <= slack}, less rounding; negative inside."""
    gap = (x @ u.T).unsqueeze(2) - (x @ pieces.T).unsqueeze(1) - slack
    sizes = u.norm(dim=1).unsqueeze(1) + pieces.norm(dim=1)
    gap = gap - ROUNDING * x.norm(dim=1)[:, None, None] * sizes
    # by differences: products lose the digits of near-equal rows
    apart = torch.cdist(u, pieces, compute_mode="donot_use_mm_for_euclid_dist")
    return gap / apart.clamp_min(TINY)


def shortest_found(
    net: MultiClassNet,
    x: Rows,
    y: Numbers,
    small: MultiClassNet,
    low: Float[Tensor, "n r"],
    axes: Float[Tensor, "D r"],
) -> Numbers:
    """The length of the shortest move found in span(w), seen to break the given net; 0 broken clean, inf none."""
    upper = torch.zeros_like(y)
    here = (y * net(x) > 0).nonzero().squeeze(1)
    if not len(here):
        return upper
    if not axes.shape[1]:  # all weights are 0: nothing moves
        return upper.index_fill(0, here, torch.inf)
    target, at, label = MultiClassTarget(small), low[here], y[here]
    found = [first_broken(target, at, label, way, None) for way in hints(small, at, label)]
    # towards all at once is seldom the shortest at first, and often in the end
    starts = [found[0], *ranked(found, L2)[:WALKS]]
    move = shortest([walk(target, at, label, L2, None, start) for start in starts], L2)
    upper[here] = seen_to_break(net, x[here], label, move @ axes.T)
    return upper


def seen_to_break(net: MultiClassNet, x: Rows, y: Numbers, move: Rows) -> Numbers:
    """The lengths of moves that break the net, a hair longer where they must be; inf where one does not."""
    size = moved_on(MultiClassTarget(net), x, y, L2, None, move).norm(dim=1)
    return torch.where(size > 0, size, torch.inf)


@dataclass(frozen=True)
class MultiClassTarget:
    """The log-odds with their gradient sum_j (+- share of j in its class) grad f_j in closed form."""

    net: MultiClassNet

    def scores(self, x: Rows) -> Numbers:
        """log sum_{J+} exp f_j - log sum_{J-} exp f_j."""
        return self.net(x)

    def with_pullback(self, x: Rows) -> tuple[Numbers, Callable[[Numbers], Rows]]:
        """The log-odds, and v -> v_n times their gradient at x_n."""
        w, labels = self.net.w, self.net.labels
        z = (x @ w.flatten(0, 1).T).unflatten(1, w.shape[:2])
        f = z.clamp_min(0).mean(2)
        share = torch.empty_like(f)
        for sign in (1, -1):
            mine = labels * sign > 0
            share[:, mine] = sign * torch.softmax(f[:, mine], 1)

        def pullback(cotangent: Numbers) -> Rows:
            weight = (cotangent.unsqueeze(1) * share).unsqueeze(2) / w.shape[1]
            return (weight * (z > 0)).flatten(1) @ w.flatten(0, 1)

        return log_odds(f, labels), pullback


def hints(net: MultiClassNet, x: Rows, y: Numbers) -> list[Rows]:
    """Ways from the own subclass with the largest logit to all opposite ones, to each other one, and to pieces.

    Along u_j - u_i the two logits meet at (z_i - z_j) / ||u_j - u_i||^2; logit j is past all K own ones together
    ln K further on.
    """
    u = net.w.mean(1)
    z = x @ u.T
    other = net.labels * y.unsqueeze(1) < 0
    lead = u[z.masked_fill(other, -torch.inf).argmax(1)]
    mean = (other.to(z) @ u) / other.sum(1, keepdim=True)
    aims = [(mean, lead)] + [(u[j].expand_as(x), lead) for j in range(len(u))]
    if net.w.shape[1] <= MOST_ENUMERATED:
        near = [(torch.zeros_like(x), torch.zeros_like(x)) for _ in range(NEAREST)]
        for sign in (1, -1):
            mine = (y == sign).nonzero().squeeze(1)
            own, pieces = u[net.labels * sign > 0], pieces_of(net.w[net.labels * sign < 0])
            deepest, i = depths(own, pieces, x[mine], 0.0).max(1)
            for rank, a in enumerate(deepest.argsort(1)[:, :NEAREST].unbind(1)):
                near[rank][0][mine] = pieces[a]
                near[rank][1][mine] = own[i.gather(1, a.unsqueeze(1)).squeeze(1)]
        aims += near
    ways = []
    for aim, start in aims:
        way = aim - start
        length = math.log(len(u)) - (x * way).sum(1, keepdim=True).clamp_max(0)
        ways.append(REACH * way * length / (way * way).sum(1, keepdim=True).clamp_min(TINY))
    return ways
