r"""The l2 radius of the 1-nearest-neighbour rule.

A point x of the own class is broken where some opposite training point j is at least as close as every
own one: the union over j of the polyhedra

    C_j = {x' : 2 <x_i - x_j, x'> <= ||x_i||^2 - ||x_j||^2 for all own i}.

**Bounds**, for any number of points: every half-space of C_j is at distance
h_ij = (||x - x_j||^2 - ||x - x_i||^2) / (2 ||x_i - x_j||), so the radius is at least min_j max_i h_ij; and on
the segment to x_j all half-spaces are entered by t_j = max_i h_ij ||x_i - x_j|| / <x_i - x_j, x - x_j>.

**Exact**: the least distance to C_j, cells in order of their bound until none can be closer. Each is a
quadratic program over the own points; few of them matter, so constraints are added as they are found
violated. Leaving some out enlarges C_j: every intermediate distance is a lower bound, which discards most
cells early.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from scipy.optimize import nnls
from torch import Tensor

from tacit.base.shapes import Numbers, Rows
from tacit.certify.interval import Radii, exactly
from tacit.nets import NearestNeighbour
from tacit.nets.rules import squared_distances

Array = npt.NDArray[np.float64]

CHUNK = 64
ADDED = 4  # constraints added at a time
VIOLATED = 1e-10  # relative to the length: rounding


@dataclass(frozen=True)
class Cells:
    """The training points as one class sees them, and the squared distances between the classes."""

    own: Float[Tensor, "k D"]
    opp: Float[Tensor, "m D"]
    apart: Float[Tensor, "k m"]

    @classmethod
    def of(cls, rule: NearestNeighbour, sign: int) -> Cells:
        """As seen from the class with this sign."""
        own, opp = rule.x[rule.y * sign > 0], rule.x[rule.y * sign < 0]
        return cls(own, opp, squared_distances(own, opp))

    def depths(self, x: Rows) -> tuple[Float[Tensor, "n m"], Float[Tensor, "n m"]]:
        """For each opposite j: max_i h_ij, and the length of the segment to x_j after which all
        half-spaces of C_j hold."""
        d_own = squared_distances(x, self.own).unsqueeze(2)
        d_opp = squared_distances(x, self.opp).unsqueeze(1)
        gap = d_opp - d_own
        # a half-space that holds at x (or between coincident points, everywhere) costs nothing; else
        # <x_i - x_j, x - x_j> = (apart + gap) / 2 > 0
        holds = (gap <= 0) | (self.apart == 0)
        depth = torch.where(holds, 0.0, gap / (2 * self.apart.sqrt())).amax(1)
        entry = torch.where(holds, 0.0, gap / (self.apart + gap)).amax(1)
        return depth, entry * d_opp.squeeze(1).sqrt()


def nearest_bounds(rule: NearestNeighbour, x: Rows, y: Numbers) -> Radii:
    """Lower and upper bounds, without a quadratic program."""
    lower, upper = torch.zeros_like(y), torch.zeros_like(y)
    for sign in (1, -1):
        cells = Cells.of(rule, sign)
        for mine in (y * sign > 0).nonzero().squeeze(1).split(CHUNK):
            depth, entered = cells.depths(x[mine])
            lower[mine], upper[mine] = depth.amin(1), entered.amin(1)
    return Radii(lower, upper).unless(y * rule(x) <= 0)


def nearest_radius(rule: NearestNeighbour, x: Rows, y: Numbers) -> Radii:
    """Exact radii, by quadratic programs over the cells that could hold the nearest broken point."""
    broken = y * rule(x) <= 0
    radius = torch.zeros_like(y)
    for sign in (1, -1):
        cells = Cells.of(rule, sign)
        for n in ((y * sign > 0) & ~broken).nonzero().squeeze(1).tolist():
            depth, entered = (t[0] for t in cells.depths(x[n : n + 1]))
            best = float(entered.amin())
            for j in depth.argsort().tolist():
                if depth[j] >= best:
                    break
                normal = 2 * (cells.own - cells.opp[j])
                bound = (normal * ((cells.own + cells.opp[j]) / 2 - x[n])).sum(1)
                best = cell_distance(normal.numpy(), bound.numpy(), best)
            radius[n] = best
    return exactly(radius)


def cell_distance(G: Array, h: Array, best: float) -> float:
    """min(best, distance from 0 to {G delta <= h}), adding violated constraints until none is left."""
    size = np.linalg.norm(G, axis=1)
    G, h, size = G[size > 0], h[size > 0], size[size > 0]  # coincident points constrain nothing
    if not len(h):
        return 0.0
    G, h = G / size[:, None], h / size
    active = [int(np.argmin(h))]
    for _ in range(len(h)):
        delta = least_distance(G[active], h[active])
        length = float(np.linalg.norm(delta))
        if length >= best:
            return best
        excess = G @ delta - h
        excess[active] = -np.inf
        worst = np.argsort(excess)[-ADDED:]
        violated = worst[excess[worst] > VIOLATED * max(length, 1e-300)]
        if not len(violated):
            return length
        active += violated.tolist()
    return length


def least_distance(G: Array, h: Array) -> Array:
    """The shortest delta with G delta <= h, by the dual: non-negative least squares.

    Lawson & Hanson, Solving Least Squares Problems, chapter 23: minimise ||E nu - f|| over nu >= 0
    with E = [-G'; -h'] and f = (0, ..., 0, 1); the residual r gives delta = -r_head / r_last.
    """
    scale = np.abs(h).max() or 1.0
    # only inner products of G's rows matter: its triangular factor stands in for it
    basis, triangle = np.linalg.qr(G.T)
    E = np.vstack([-triangle, -h[None] / scale])
    f = np.zeros(len(E))
    f[-1] = 1
    nu, _ = nnls(E, f)
    residual = E @ nu - f
    return np.asarray(basis @ (-residual[:-1] / residual[-1]) * scale)
