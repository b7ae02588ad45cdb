"""Classifiers that are no two-layer nets: linear, the Bayes rule, the nearest neighbour.

Each is called on points (n, D) and returns a score (n,) whose sign is the prediction.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base.checks import check_finite
from tacit.data.clusters import ClusterMixture
from tacit.errors import CallError
from tacit.nets.kinds import register
from tacit.nets.multiclass import log_odds
from tacit.nets.tensors import TensorNet


@dataclass(frozen=True)
class Linear(TensorNet):
    """f(x) = <u, x> + b."""

    u: Float[Tensor, " D"]
    b: float = 0.0

    def __call__(self, x: Float[Tensor, "n D"]) -> Float[Tensor, " n"]:
        """The signed score."""
        return x @ self.u + self.b


@dataclass(frozen=True)
class BayesRule(TensorNet):
    """The sign of log P(y=+1 | x) - log P(y=-1 | x) under the mixture; noise sd > 0.

    With g_k(x) = (<mu_k, x> - ||mu_k||^2 / 2) / sd^2 + log weight_k, the common term in ||x||^2
    drops out and the log-odds are LSE_{J+} g - LSE_{J-} g.
    """

    mixture: ClusterMixture

    def __post_init__(self) -> None:
        if self.mixture.sd == 0:
            raise CallError(
                "the Bayes rule needs noise: with sd = 0 use NearestNeighbour on the centres"
            )
        if self.mixture.K1 == self.mixture.K:
            raise CallError("the Bayes rule needs clusters of both classes")

    def logits(self, x: Float[Tensor, "n D"]) -> Float[Tensor, "n K"]:
        """g_k(x)."""
        mu, sd = self.mixture.centres, self.mixture.sd
        return (x @ mu.T - mu.square().sum(1) / 2) / sd**2 + self.mixture.weights.log()

    def __call__(self, x: Float[Tensor, "n D"]) -> Float[Tensor, " n"]:
        """The log-odds of the positive class."""
        return log_odds(self.logits(x), self.mixture.labels)


@dataclass(frozen=True)
class NearestNeighbour(TensorNet):
    """1-NN: the label of the closest of the training points x (m, D), y (m,) in {-1, +1}."""

    x: Float[Tensor, "m D"]
    y: Float[Tensor, " m"]

    def __post_init__(self) -> None:
        check_finite("the training set", self.x)
        if not ((self.y > 0).any() and (self.y < 0).any()):
            raise CallError("the nearest neighbour needs training points of both classes")

    def __call__(self, x: Float[Tensor, "n D"]) -> Float[Tensor, " n"]:
        """Squared distance to the nearest negative point minus that to the nearest positive one."""
        to_positive, to_negative = (
            squared_distances(x, self.x[self.y * sign > 0]).amin(1) for sign in (1, -1)
        )
        return to_negative - to_positive


def squared_distances(x: Float[Tensor, "n D"], z: Float[Tensor, "m D"]) -> Float[Tensor, "n m"]:
    """||x_i - z_j||^2 by differences: the expansion into inner products cancels far from the origin."""
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(x, z, compute_mode=mode).square()


register(
    Linear,
    name="linear",
    certificate="tacit.certify.radius:rule_radius",
    trainee="tacit.train.descent.checks:tensor_trainee",
    trained=("u",),
)
register(BayesRule, name="bayes_rule", certificate="tacit.certify.radius:bayes_rule_radius")
register(
    NearestNeighbour,
    name="nearest_neighbour",
    certificate="tacit.certify.radius:neighbour_radius",
)
