"""Figure 1's clusters, and the distances from their centres to the decision boundaries.

The distance to f_FD's boundary is exact at any angles, by branch and bound (`certify/relu.py`). The region f = 0
in which all own neurons are off breaks a centre only where ties break.
"""

import math

import numpy as np
import numpy.typing as npt
import torch

from tacit.certify.relu.radius import relu_radius
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
    net, labels = decoupled_net(mixture), mixture.labels
    return relu_radius(net, mixture.centres, labels, ties_break=ties_break).breaking.numpy()
