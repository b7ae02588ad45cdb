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
from tacit.data.sparse_coding import (
    Assumption21,
    HiddenLaw,
    Piece,
    SparseCoding,
    SparseSamples,
    Spike,
    sparse_coding,
    two_level_law,
)

__all__ = [
    "Assumption21",
    "ClusterMixture",
    "HiddenLaw",
    "Piece",
    "Samples",
    "SparseCoding",
    "SparseSamples",
    "Spike",
    "cluster_mixture",
    "equiangular_centres",
    "min2024_mixture",
    "orthogonal_centres",
    "span_axes",
    "sparse_coding",
    "sphere_centres",
    "sqrt_d_mixture",
    "two_level_law",
]
