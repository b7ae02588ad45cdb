"""Settings shared by exhibits (without torch)."""

from typing import Literal

from tacit.errors import CallError
from tacit.papers._shared.checks import check_at_least, check_clusters

Means = Literal["orthogonal", "sphere"]


def check_dimensions(D: tuple[int, ...], K: tuple[int, ...]) -> None:
    """D and K pair up, both classes have a cluster, and the means fit into the dimension."""
    if len(D) != len(K):
        raise CallError(f"D has {len(D)} values and K {len(K)}: they pair up")
    check_at_least("K", K, 2, "both classes need a cluster")
    for d, k in zip(D, K, strict=True):
        check_clusters(k, k // 2, d)
