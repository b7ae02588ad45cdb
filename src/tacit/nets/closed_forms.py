"""The classifiers that theory predicts or constructs, as nets, from the mixture they belong to.

| here           | papers                                     | function                                    |
| -------------- | ------------------------------------------ | ------------------------------------------- |
| `average_net`  | F of min2024 (3), f_FA and f_avg of li2025 | relu(<sum_+ mu, x> + b) - relu(<sum_- ...)  |
| `centre_net`   | F^(p) of min2024 (2)                       | sum_k y_k A_k relu(<mu_k, x>)^p             |
| `decoupled_net`| f_dec of li2025, Theorem D.3               | sum_k y_k relu(<mu_k, x> - ||mu_k||^2 / 2)  |
| `frei_net`     | the robust net of frei2023, Theorem 4.1    | w = 4 mu / d, b = -2, v = y                 |
| `prop48_net`   | li2025, Proposition 4.8                    | f_j = relu(<mu_j + sum_{J_s} mu_l, x>)      |
| `linear_rule`  | u of frei2023, Lemma 2.1                   | <sum_q y_q mu_q, x>                         |
"""

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.data.clusters import ClusterMixture
from tacit.errors import CallError
from tacit.nets.multiclass import MultiClassNet
from tacit.nets.rules import Linear
from tacit.nets.two_layer import TwoLayerNet


def average_net(mixture: ClusterMixture, b_plus: float = 0.0, b_minus: float = 0.0) -> TwoLayerNet:
    """The feature-averaging net relu(<S+, x> + b+) - relu(<S-, x> + b-), S+- the class sums of centres.

    With zero biases this is F of min2024, eq. (3) (sqrt(K1) mu_bar+ = S+), and f_FA of li2025,
    Definition 4.1 (|J+| mu_+ = S+); with any biases f_avg of li2025, Appendix D.1.
    """
    sums = torch.stack([class_sum(mixture, 1), class_sum(mixture, -1)])
    b = torch.tensor([b_plus, b_minus], dtype=torch.float64)
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)
    return TwoLayerNet(sums, signs, b)


def centre_net(
    mixture: ClusterMixture, p: float, A: Float[Tensor, " K"] | None = None
) -> TwoLayerNet:
    """F^(p)(x) = sum_k y_k A_k relu(<mu_k, x>)^p, min2024 eq. (2) (there A = 1)."""
    if A is not None and (A.shape != (mixture.K,) or not (A > 0).all()):
        raise CallError(
            f"A: {mixture.K} positive weights are needed; the sign is the cluster's label"
        )
    norm = mixture.centres.norm(dim=1)
    weight = torch.ones_like(norm) if A is None else A
    return TwoLayerNet(mixture.centres, mixture.labels * weight * norm ** (p - 1), p=p)


def decoupled_net(mixture: ClusterMixture) -> TwoLayerNet:
    """f_dec of li2025, Theorem D.3: one neuron a cluster, bias -||mu||^2/2 = -d/2."""
    half = mixture.centres.square().sum(1) / 2
    return TwoLayerNet(mixture.centres, mixture.labels, -half)


def frei_net(mixture: ClusterMixture) -> TwoLayerNet:
    """The robust net of frei2023, Theorem 4.1: w_j = 4 mu_j / d, b_j = -2, v_j = y_j, d = ||mu_j||^2."""
    squares = mixture.centres.square().sum(1, keepdim=True)
    b = torch.full((mixture.K,), -2.0, dtype=torch.float64)
    return TwoLayerNet(4 * mixture.centres / squares, mixture.labels, b)


def prop48_net(mixture: ClusterMixture) -> MultiClassNet:
    """The accurate but non-robust multi-class net of li2025, Proposition 4.8 (h = 1)."""
    positive = (mixture.labels > 0).unsqueeze(1)
    sums = torch.where(positive, class_sum(mixture, 1), class_sum(mixture, -1))
    return MultiClassNet((mixture.centres + sums).unsqueeze(1), mixture.labels)


def linear_rule(mixture: ClusterMixture) -> Linear:
    """u = sum_q y_q mu_q of frei2023, Lemma 2.1."""
    return Linear(mixture.labels @ mixture.centres)


def class_sum(mixture: ClusterMixture, sign: int) -> Float[Tensor, " D"]:
    """The sum of the centres of one class (zero for an empty class)."""
    return mixture.centres[mixture.labels * sign > 0].sum(0)
