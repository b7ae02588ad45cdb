"""Where samples come from."""

from tacit.base.linalg import span_axes
from tacit.data.centres import equiangular_centres, orthogonal_centres, sphere_centres
from tacit.data.clusters import (
    ClusterMixture,
    Samples,
    cluster_mixture,
    min2024_mixture,
    sqrt_d_mixture,
)

__all__ = [
    "ClusterMixture",
    "Samples",
    "cluster_mixture",
    "equiangular_centres",
    "min2024_mixture",
    "orthogonal_centres",
    "span_axes",
    "sphere_centres",
    "sqrt_d_mixture",
]
