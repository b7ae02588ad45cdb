"""The paper's synthetic setting (Sections 3, 4.2 and 6.1): its data, its two nets, and their training.

    x = mu_j + xi,  ||mu_j|| = alpha sqrt(d),  xi ~ N(0, sigma^2 I),  cos(mu_i, mu_j) = cosine
    2 labels    f = (1/m) sum_r relu(<w_+r, x> + b_+r) - (1/m) sum_r relu(<w_-r, x> + b_-r), logistic loss
    k labels    f_j = (1/h) sum_r relu(<w_jr, x>), cross-entropy

Gradient descent on all points, with relu'(0) = 1; the second layer is fixed.
"""

import math
from collections.abc import Collection

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.data import ClusterMixture, Samples, cluster_mixture, equiangular_centres
from tacit.nets import MultiClassNet, TwoLayerNet
from tacit.train import Descended, descend


def mixture_of(
    d: int,
    k: int,
    k1: int,
    *,
    alpha: float = 1.0,
    sigma: float = 1.0,
    cosine: float = 0.0,
    weights: Float[Tensor, " k"] | None = None,
    generator: torch.Generator | None = None,
) -> ClusterMixture:
    """Definition 3.1, with the scales and cosines of Appendix E.1; the first k1 clusters are positive."""
    centres = equiangular_centres(k, d, cosine, alpha * math.sqrt(d), generator)
    return cluster_mixture(centres, k1, sigma, weights)


def binary_start(
    d: int,
    m: int,
    sigma_w: float,
    sigma_b: float,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float64,
) -> TwoLayerNet:
    """Section 3.2: m neurons with second layer 1/m, then m with -1/m; Gaussian first layer and biases."""
    w = sigma_w * torch.randn(2 * m, d, generator=generator, dtype=torch.float64)
    b = sigma_b * torch.randn(2 * m, generator=generator, dtype=torch.float64)
    v = torch.tensor([1 / m] * m + [-1 / m] * m, dtype=dtype)
    return TwoLayerNet(w.to(dtype), v, b.to(dtype), fixed_v=True)


def multi_start(
    d: int,
    labels: Float[Tensor, " k"],
    h: int,
    sigma_w: float,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float64,
) -> MultiClassNet:
    """Section 4.2: h neurons for each of the k subclasses, no biases."""
    w = sigma_w * torch.randn(len(labels), h, d, generator=generator, dtype=torch.float64)
    return MultiClassNet(w.to(dtype), labels.to(dtype))


def train_binary(
    net: TwoLayerNet, samples: Samples, eta: float, T: int, record: Collection[int] = ()
) -> Descended[TwoLayerNet]:
    """Eq. (1): T steps of size eta on the mean logistic loss, in the dtype of the net."""
    x, y = samples.x.to(net.w), samples.y.to(net.w)
    return descend(net, x, y, step=eta, steps=T, loss="logistic", at_kink=1.0, record=record)


def train_classes(
    net: MultiClassNet, samples: Samples, eta: float, T: int, record: Collection[int] = ()
) -> Descended[MultiClassNet]:
    """Section 4.2: T steps of size eta on the mean cross-entropy of the clusters."""
    x, z = samples.x.to(net.w), samples.z.to(net.w.device)
    return descend(net, x, z, step=eta, steps=T, loss="logistic", at_kink=1.0, record=record)
