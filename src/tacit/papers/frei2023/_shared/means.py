"""Mixtures of frei2023 in the coordinates of span(means): exact in law for every dimension.

Whatever depends on x through the means alone needs K coordinates, not d. Orthogonal means are then the
axes. K means drawn uniformly from the sphere are the rows of L, normalised, where L is lower triangular
with independent entries, L_ij ~ N(0,1) below the diagonal and L_ii ~ chi with d - i + 1 degrees of
freedom: Gram-Schmidt of K Gaussian vectors of R^d (Bartlett 1933). So d = 10^12 costs no more than 10^3.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tacit.data import ClusterMixture, cluster_mixture, orthogonal_centres
from tacit.papers._shared.assumptions import most_clusters
from tacit.papers.frei2023._shared.settings import Means


def spanned_mixture(
    means: Means, d: int, K: int, sigma: float, generator: torch.Generator
) -> ClusterMixture:
    """K means of norm sqrt(d) and noise sigma, half of the clusters (rounded down) positive."""
    if means == "orthogonal":
        centres = orthogonal_centres(K, K, math.sqrt(d))
    else:
        centres = math.sqrt(d) * sphere_frame(K, d, generator)
    return cluster_mixture(centres, K // 2, sigma)


def sphere_frame(K: int, d: int, generator: torch.Generator) -> Float[Tensor, "K K"]:
    """K independent uniform unit vectors of R^d, K <= d, in coordinates of their span."""
    rng = np.random.default_rng(generator.initial_seed())
    below = np.tril(rng.standard_normal((K, K)), -1)
    L = below + np.diag(np.sqrt(rng.chisquare(d - np.arange(K, dtype=float))))
    return torch.from_numpy(L / np.linalg.norm(L, axis=1, keepdims=True))


def least_dimension(
    K: int, sigma: Callable[[int], float], overlap: Callable[[int], float] | None = None
) -> int:
    """The smallest d from which on Assumption 2.2 admits K >= 2 clusters.

    (d - Delta + 1) / (p + Delta + 1) rises with d beyond e^2 and is below 1 before, so doubling and
    bisection find it.
    """

    def admits(d: int) -> bool:
        return most_clusters(d, sigma(d), overlap(d) if overlap else 0.0) >= K

    high = 8
    while not admits(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if admits(middle) else (middle, high)
    return high


def largest(admits: Callable[[float], bool], most: float) -> float:
    """The largest value in [0, most] that is admitted, where all below it are. What is found is admitted."""
    if admits(most):
        return most
    low, high = 0.0, most
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if admits(middle) else (low, middle)
    return low


def largest_overlap(d: float, K: int, sigma: float) -> float:
    """The largest p at which Assumption 2.2 admits K clusters, which it does at p = 0."""
    return largest(lambda p: most_clusters(d, sigma, p) >= K, d)


def leaning_mixture(d: int, K: int, sigma: float, lean: float) -> ClusterMixture:
    """K means of norm sqrt(d) with y_q y_r <mu_q, mu_r> = lean for q != r, in coordinates of their span.

    Of all means with products of that size, these have the longest u = sum_q y_q mu_q, or the shortest.
    """
    gram = torch.full((K, K), lean, dtype=torch.float64).fill_diagonal_(float(d))
    mixture = cluster_mixture(torch.linalg.cholesky(gram), K // 2, sigma)
    return replace(mixture, centres=mixture.labels.unsqueeze(1) * mixture.centres)


def small_noise(d: float) -> float:
    """sigma = 1/sqrt(d), Example 1's second case."""
    return 1 / math.sqrt(d)


def unit_noise(d: float) -> float:
    """sigma = 1, Example 1's first case."""
    return 1.0
