"""Mixtures of Gaussian clusters grouped into two classes: the data of three of the papers.

    z ~ weights on [K],   y = labels[z] in {-1, +1},   x = centres[z] + sd * N(0, I_D)

(and, where a `noise` shape is named, coordinates of another law with mean 0 and variance 1 in place of N(0, 1)).

min2024 (Section 2): centres orthonormal, sd = alpha / sqrt(D). li2025 (Section 3): centres
orthogonal of norm sqrt(d), sd = 1 (or sigma). frei2023 (Section 2): centres of norm sqrt(d), nearly
orthogonal, sd = sigma <= 1. The first K1 clusters are positive. sd = 0 is the simplified data set of
min2024, Section 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.base.checks import check_finite
from tacit.base.linalg import span_axes
from tacit.base.shapes import Rows
from tacit.data.centres import orthogonal_centres
from tacit.errors import CallError

NoiseShape = Literal["gaussian", "uniform", "laplace", "student"]


@dataclass(frozen=True)
class Samples:
    """Points x, labels y in {-1, +1} and the hidden subclass z, with any leading batch of seeds."""

    x: Float[Tensor, "*batch n D"]
    y: Float[Tensor, "*batch n"]
    z: Int[Tensor, "*batch n"]


@dataclass(frozen=True)
class ClusterMixture:
    """The distribution: centres (K, D), labels (K,) of +-1, weights (K,) summing to 1, sd >= 0.

    `noise` is the law of each coordinate, whose standard deviation is sd (`unit_noise`).
    """

    centres: Float[Tensor, "K D"]
    labels: Float[Tensor, " K"]
    weights: Float[Tensor, " K"]
    sd: float
    noise: NoiseShape = "gaussian"

    @property
    def K(self) -> int:
        """Number of clusters (subclasses)."""
        return self.centres.shape[0]

    @property
    def D(self) -> int:
        """Dimension of x."""
        return self.centres.shape[1]

    @property
    def K1(self) -> int:
        """Number of positive clusters."""
        return int((self.labels > 0).sum())

    def sample(
        self,
        n: int,
        generator: torch.Generator,
        *,
        equal_counts: bool = False,
        dtype: torch.dtype = torch.float64,
    ) -> Samples:
        """n points, drawn in `dtype` (float32 is enough to train, and takes a third of the memory on the way).

        With `equal_counts`, cluster k gets its share of n (rounded to a neighbouring whole number) in place of a
        random count.
        """
        device = generator.device
        z = (
            apportion(n, self.weights).to(device)
            if equal_counts
            else torch.multinomial(self.weights.to(device), n, True, generator=generator)
        )
        x = unit_noise(self.noise, n, self.D, generator, dtype)
        # in place: n * D can be large
        x.mul_(self.sd).add_(self.centres.to(device, dtype)[z])
        return Samples(x, self.labels.to(device, dtype)[z], z)

    def stream(self, n: int, generator: torch.Generator, chunk: int = 20_000) -> Iterator[Samples]:
        """n points in chunks, for measurements that must not hold them all."""
        for start in range(0, n, chunk):
            yield self.sample(min(chunk, n - start), generator)

    def reduced(self) -> ClusterMixture:
        """The same mixture in coordinates of span(centres), of dimension rank <= K.

        Isotropic noise projected on a subspace is isotropic there, so whatever depends on x through
        the centres alone has the same law under the reduced mixture: Monte Carlo in K dimensions is
        exact in law, whatever D was. Other noise than Gaussian is not isotropic, and is refused.
        """
        if self.noise != "gaussian":
            raise CallError(
                f"noise={self.noise}: only Gaussian noise has the same law in the span of the centres"
            )
        return replace(self, centres=self.centres @ span_axes(self.centres))


def cluster_mixture(
    centres: Float[Tensor, "K D"],
    K1: int,
    sd: float,
    weights: Float[Tensor, " K"] | None = None,
    *,
    one_class: bool = False,
) -> ClusterMixture:
    """The mixture whose first K1 clusters are positive, checked.

    `weights` are relative (default: uniform, as in the papers). K1 = K leaves no negative class and
    is refused unless `one_class` says that this is meant (min2024, Appendix D.1).
    """
    centres = torch.as_tensor(centres, dtype=torch.float64)
    K = centres.shape[0]
    check_finite("a centre", centres, remedy="every coordinate must be a finite number")
    if not 1 <= K1 <= K:
        raise CallError(f"K1={K1} with K={K}: the positive clusters number 1 to {K - 1}")
    if K1 == K and not one_class:
        raise CallError(f"K1={K1} = K leaves no negative class: take K1 from 1 to {K - 1}")
    if not (math.isfinite(sd) and sd >= 0):
        raise CallError(f"noise sd {sd}: it is a finite number >= 0")
    share = torch.ones(K, dtype=torch.float64) if weights is None else weights.to(torch.float64)
    if share.shape != (K,) or not torch.isfinite(share).all() or not (share > 0).all():
        raise CallError(f"weights: {K} positive numbers are needed, one for each cluster")
    labels = torch.ones(K, dtype=torch.float64)
    labels[K1:] = -1
    return ClusterMixture(centres, labels, share / share.sum(), float(sd))


def min2024_mixture(
    D: int, K: int, K1: int, alpha: float, generator: torch.Generator | None = None
) -> ClusterMixture:
    """Orthonormal centres, noise sd alpha/sqrt(D) in each coordinate (min2024, Section 2)."""
    return cluster_mixture(orthogonal_centres(K, D, 1.0, generator), K1, alpha / math.sqrt(D))


def sqrt_d_mixture(
    d: int, k: int, k1: int, sigma: float = 1.0, generator: torch.Generator | None = None
) -> ClusterMixture:
    """Orthogonal centres of norm sqrt(d), noise sd sigma (li2025, Section 3; frei2023, Example 1)."""
    return cluster_mixture(orthogonal_centres(k, d, math.sqrt(d), generator), k1, sigma)


def unit_noise(
    shape: NoiseShape,
    n: int,
    D: int,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float64,
) -> Rows:
    """Independent coordinates of mean 0 and variance 1: N(0, 1), or by the inverse of a distribution function.

    With u uniform on (0, 1): uniform sqrt(3) (2u - 1); laplace -sign(2u-1) log(1 - |2u-1|) / sqrt(2); student,
    4 degrees of freedom and so no fourth moment, sign(2u-1) 2 sqrt(cos(arccos(sqrt a)/3)/sqrt a - 1) with
    a = 4u(1-u) (Shaw 2006, J. Comput. Finance 9(4)), over its standard deviation sqrt(2).
    """
    device = generator.device
    if shape == "gaussian":
        return torch.randn(n, D, generator=generator, dtype=dtype, device=device)
    u = torch.rand(n, D, generator=generator, dtype=torch.float64, device=device)
    side = (2 * u - 1).clamp(-1 + 1e-15, 1 - 1e-15)  # u = 0 would be infinitely far out
    if shape == "uniform":
        return (math.sqrt(3) * side).to(dtype)
    if shape == "laplace":
        return (-side.sign() * torch.log1p(-side.abs()) / math.sqrt(2)).to(dtype)
    root = ((1 - side) * (1 + side)).sqrt()
    size = (2 * (torch.cos(torch.arccos(root) / 3) / root - 1)).clamp_min(0).sqrt()
    return (side.sign() * size).to(dtype)


def apportion(n: int, weights: Float[Tensor, " K"]) -> Int[Tensor, " n"]:
    """n subclass indices in order, cluster k having n * weights[k] of them up to rounding."""
    edges = torch.round(weights.cumsum(0) * n).long()
    edges[-1] = n
    return torch.searchsorted(edges, torch.arange(n), right=True)
