"""Where the clusters sit: the arrangements of centres that the cluster papers use.

Every function returns centres as rows, (K, D), in float64. With a generator the arrangement is
turned by a random rotation; without one the centres lie along the first coordinate axes, which is
the same in law for isotropic noise.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.errors import CallError


def orthogonal_centres(
    K: int, D: int, norm: float = 1.0, generator: torch.Generator | None = None
) -> Float[Tensor, "K D"]:
    """K orthogonal centres of one norm: 1 in min2024 (Section 2), sqrt(d) in li2025 (Section 3)."""
    check_counts(K, D)
    return norm * frame(K, D, generator)


def equiangular_centres(
    K: int, D: int, cosine: float, norm: float = 1.0, generator: torch.Generator | None = None
) -> Float[Tensor, "K D"]:
    """K centres of one norm with <mu_i, mu_j> = cosine * norm^2 for i != j (li2025, Appendix E.1).

    The Gram matrix (1-c) I + c 11' has eigenvalues 1-c and 1 + (K-1) c, so c lies in
    [-1/(K-1), 1]; at the lower end the centres sum to zero (li2025, Figure 1) and span K-1
    dimensions only. Centres = frame' * sqrt(Gram).
    """
    low = -1 / (K - 1) if K > 1 else -1.0
    if not low - 1e-12 <= cosine <= 1:
        raise CallError(
            f"cosine={cosine}: {K} centres can have pairwise cosine {low:.6g} to 1, no other"
        )
    check_counts(K, D)
    # sqrt((1-c) I + c 11') = a I + b 11'
    a = math.sqrt(1 - cosine)
    b = (math.sqrt(max(1 + (K - 1) * cosine, 0.0)) - a) / K
    root = a * torch.eye(K, dtype=torch.float64) + b
    return norm * root @ frame(K, D, generator)


def sphere_centres(K: int, D: int, norm: float, generator: torch.Generator) -> Float[Tensor, "K D"]:
    """K centres drawn independently and uniformly from the sphere (frei2023, Example 1); K may exceed D."""
    check_some(K)
    drawn = torch.randn(K, D, generator=generator, dtype=torch.float64, device=generator.device)
    return norm * drawn / drawn.norm(dim=1, keepdim=True)


def frame(K: int, D: int, generator: torch.Generator | None) -> Float[Tensor, "K D"]:
    """K orthonormal rows: the first axes, or (with a generator) uniform among all frames."""
    if generator is None:
        return torch.eye(K, D, dtype=torch.float64)
    drawn = torch.randn(D, K, generator=generator, dtype=torch.float64, device=generator.device)
    q, r = torch.linalg.qr(drawn)
    return (q * r.diagonal().sign()).T.contiguous()


def check_counts(K: int, D: int) -> None:
    """At least one centre, and no more than there are dimensions."""
    check_some(K)
    if K > D:
        raise CallError(
            f"K={K} > D={D}: take K <= D, since {K} independent centres need {K} dimensions"
        )


def check_some(K: int) -> None:
    """At least one centre."""
    if K < 1:
        raise CallError(f"K={K}: at least one cluster is needed")
