r"""Figure 1's clusters, and the distances from their centres to the decision boundaries.

For few neurons at any angles the distance to f_FD's boundary is found exactly, by enumeration.

With u_j = <mu_j, x> + b_j and relu(u) = max(0, u), a point of the own class has y f <= 0 where, for some
subset T of the opposite neurons and every subset S of the own ones,

    sum_S u - sum_T u <= 0:

a union of 2^|opp| polyhedra. The nearest point of each is a least-distance problem; T empty is the region
f = 0 in which all own neurons are off, which breaks the point only where ties break.
"""

from __future__ import annotations

import math
from itertools import chain, combinations

import numpy as np
import numpy.typing as npt
import torch

from tacit.certify.nearest import least_distance
from tacit.data import ClusterMixture, cluster_mixture, equiangular_centres
from tacit.nets import decoupled_net

Array = npt.NDArray[np.float64]


def pentagon() -> ClusterMixture:
    """Five centres of norm 1 on a circle, the upper three positive."""
    turns = torch.tensor([0, 1, -1, 2, -2], dtype=torch.float64) / 5
    angle = math.pi / 2 + 2 * math.pi * turns
    return cluster_mixture(torch.stack([angle.cos(), angle.sin()], 1), 3, 0.0)


def simplex_mixture(K: int, D: int) -> ClusterMixture:
    """K centres of norm sqrt(D) that sum to zero, the first half (rounded up) positive."""
    centres = equiangular_centres(K, D, -1 / (K - 1), math.sqrt(D))
    return cluster_mixture(centres, (K + 1) // 2, 0.0)


def f_FA_distance(m: int, K: int) -> float:
    """sqrt((1 + (m-1) c) / m), c = -1/(K-1)."""
    return math.sqrt((1 - (m - 1) / (K - 1)) / m)


def f_FD_distance(K: float, reading: str) -> float:
    """1/2, or 1/sqrt(2 (1+c)) strictly."""
    return 0.5 if reading == "ties" else 1 / math.sqrt(2 * (1 - 1 / (K - 1)))


def moves_to_boundary(mixture: ClusterMixture, *, ties_break: bool) -> Array:
    """The shortest breaking move of each centre under f_FD, (K, D)."""
    net = decoupled_net(mixture)
    assert net.b is not None
    w, b, labels = net.w.numpy(), net.b.numpy(), mixture.labels.numpy()
    moves = []
    for x, y in zip(mixture.centres.numpy(), labels, strict=True):
        u = w @ x + b
        own, opp = (np.flatnonzero(labels * y * s > 0) for s in (1, -1))
        candidates = []
        for T in subsets(opp):
            if not T and not ties_break:
                continue
            rows = [(list(S), list(T)) for S in subsets(own) if S or T]
            G = np.array([w[S].sum(0) - w[T].sum(0) for S, T in rows])
            h = -np.array([u[S].sum() - u[T].sum() for S, T in rows])
            candidates.append(least_distance(G, h))
        moves.append(min(candidates, key=lambda move: float(np.linalg.norm(move))))
    return np.array(moves)


def subsets(items: npt.NDArray[np.intp]) -> list[tuple[int, ...]]:
    """All subsets, the empty one first."""
    sizes = range(len(items) + 1)
    return list(chain.from_iterable(combinations(items.tolist(), size) for size in sizes))
