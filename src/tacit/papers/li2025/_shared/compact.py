r"""A problem of li2025 in the coordinates of its own span: exact in law, whatever d is.

Gradient descent stays in span(centres, noises, first weights). Orthogonal centres take one axis each. On those
k axes the noises and the first weights are independent standard Gaussians; in the d - k dimensions that are
left their n + h rows form a Gaussian matrix G, and every product that training needs is in G G' = L L'. The
factor L of Gram-Schmidt has independent standard Gaussians below its diagonal and chi variables with d - k, d -
k - 1, ... degrees of freedom on it (Bartlett 1933). So (n + h + k) coordinates stand for d of them: d = 10^6
costs what 10^3 does, and a fresh test point is a centre plus a standard Gaussian of these coordinates.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tacit.data import ClusterMixture, Samples, cluster_mixture, orthogonal_centres
from tacit.errors import CallError
from tacit.nets import MultiClassNet, TwoLayerNet


@dataclass(frozen=True)
class Problem:
    """A mixture with a training sample of it, and standard Gaussian rows to make first weights of."""

    mixture: ClusterMixture
    train: Samples
    rows: Float[Tensor, "h q"]


def compact_problem(d: int, k: int, k1: int, n: int, h: int, generator: torch.Generator) -> Problem:
    """n points of Definition 3.1 in R^d and h rows N(0, I_d), all in q = k + n + h coordinates."""
    if d < n + h + k:
        raise CallError(
            f"d={d} < n + h + k = {n + h + k} with n={n} points, {h} neurons, k={k} clusters: there "
            "are no fewer coordinates than d; raise d or lower n"
        )
    rng = np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
    count = n + h
    freedom = d - k - np.arange(count, dtype=float)
    L = np.tril(rng.standard_normal((count, count)), -1) + np.diag(np.sqrt(rng.chisquare(freedom)))
    noise = torch.from_numpy(np.hstack([rng.standard_normal((count, k)), L]))
    centres = orthogonal_centres(k, k + count, math.sqrt(d))
    mixture = cluster_mixture(centres, k1, 1.0)
    z = torch.from_numpy(rng.integers(k, size=n))
    x = mixture.centres[z] + noise[:n]
    return Problem(mixture, Samples(x, mixture.labels[z], z), noise[n:])


def binary_net(
    rows: Float[Tensor, "h q"], sigma_w: float, generator: torch.Generator, dtype: torch.dtype
) -> TwoLayerNet:
    """Section 3.2's start from 2m Gaussian rows, with sigma_b = sigma_w as Assumption 4.3 has it."""
    m = len(rows) // 2
    b = sigma_w * torch.randn(2 * m, generator=generator, dtype=torch.float64)
    v = torch.tensor([1 / m] * m + [-1 / m] * m, dtype=dtype)
    return TwoLayerNet((sigma_w * rows).to(dtype), v, b.to(dtype), fixed_v=True)


def classes_net(
    rows: Float[Tensor, "h q"], mixture: ClusterMixture, sigma_w: float, dtype: torch.dtype
) -> MultiClassNet:
    """Section 4.2's start: as many of the rows for each subclass."""
    w = (sigma_w * rows).unflatten(0, (mixture.K, -1))
    return MultiClassNet(w.to(dtype), mixture.labels.to(dtype))
