r"""Section 5.1: gradient descent as recursions of coefficients of features and noises.

    w_sr = w_sr(0) + sum_j lambda_srj mu_j / ||mu_j||^2 + sum_i sigma_sri xi_i / ||xi_i||^2          (Lemma 5.1)

    lambda_srj += -(s eta / (n m)) sum_{i in I_j} l'_i ||mu_j||^2 [r in S_si]                         (2)
    sigma_sri  += -(s eta / (n m)) l'_i ||xi_i||^2 [r in S_si]                                        (3)
    b_sr       += -(s eta / (n m)) sum_i l'_i [r in S_si]                                   (proof of Lemma B.10)

with [r in S_si] = 1 where <w_sr, x_i> + b_sr >= 0, and l'_i = dl(y_i f(x_i))/df(x_i) = -y_i / (1 + exp(y_i
f(x_i))) as Appendix A.3 has it. Section 5.1 prints l'_i = l'(y_i f(x_i)), without y_i, and S_si with ">".

The recursions are closed: f at the points follows from the coefficients and from inner products of the data.
No weight vector is needed until one wants to see it (`rebuilt`).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.data import ClusterMixture, Samples
from tacit.nets import TwoLayerNet


@dataclass(frozen=True)
class State:
    """lambda (h, k), sigma (h, n) and b (h,) of the h = 2m neurons."""

    lam: Float[Tensor, "h k"]
    sigma: Float[Tensor, "h n"]
    b: Float[Tensor, " h"]


@dataclass(frozen=True)
class Seen:
    """At the points: own output times label, l'_i, and which neurons are active."""

    margin: Float[Tensor, " n"]
    slope: Float[Tensor, " n"]
    active: Bool[Tensor, "h n"]


@dataclass(frozen=True)
class Dynamics:
    """What the recursions need of the data and the start.

    `z` (n, k) marks the cluster of each point; the sizes are ||mu_j||^2 and ||xi_i||^2; `first`, `features` and
    `noises` are the products of w(0), mu_j / ||mu_j||^2 and xi_p / ||xi_p||^2 with the points.
    """

    start: TwoLayerNet
    y: Float[Tensor, " n"]
    z: Float[Tensor, "n k"]
    centres: Float[Tensor, "k d"]
    noise: Float[Tensor, "n d"]
    feature_size: Float[Tensor, " k"]
    noise_size: Float[Tensor, " n"]
    first: Float[Tensor, "h n"]
    features: Float[Tensor, "k n"]
    noises: Float[Tensor, "n n"]

    @property
    def own(self) -> Bool[Tensor, "h n"]:
        """Whether point i has the label of the neuron."""
        return self.start.v.sign().unsqueeze(1) == self.y

    @property
    def own_clusters(self) -> Bool[Tensor, "h k"]:
        """Whether cluster j has the label of the neuron."""
        labels = (self.z * self.y.unsqueeze(1)).sum(0).sign()
        return self.start.v.sign().unsqueeze(1) == labels

    def zero(self) -> State:
        """The coefficients at the start."""
        h, (n, k) = len(self.start.v), self.z.shape
        w = self.start.w
        return State(w.new_zeros(h, k), w.new_zeros(h, n), biases(self.start).clone())

    def seen(self, at: State) -> Seen:
        """f at the points, by inner products alone."""
        z = self.first + at.lam @ self.features + at.sigma @ self.noises + at.b.unsqueeze(1)
        margin = self.y * (self.start.v @ z.clamp_min(0))
        return Seen(margin, -self.y * torch.sigmoid(-margin), z >= 0)

    def step(self, at: State, seen: Seen, eta: float) -> State:
        """(2), (3) and the bias, with l'_i = seen.slope."""
        pull = -(eta / len(self.y)) * self.start.v.unsqueeze(1) * seen.slope * seen.active
        return State(
            at.lam + (pull @ self.z) * self.feature_size,
            at.sigma + pull * self.noise_size,
            at.b + pull.sum(1),
        )

    def rebuilt(self, at: State) -> Float[Tensor, "h d"]:
        """Lemma 5.1."""
        features = self.centres / self.feature_size.unsqueeze(1)
        noises = self.noise / self.noise_size.unsqueeze(1)
        return self.start.w + at.lam @ features + at.sigma @ noises


def dynamics_of(start: TwoLayerNet, mixture: ClusterMixture, samples: Samples) -> Dynamics:
    """The inner products, once; float64."""
    x, centres = samples.x, mixture.centres
    noise = x - centres[samples.z]
    feature_size, noise_size = centres.square().sum(1), noise.square().sum(1)
    return Dynamics(
        start,
        samples.y,
        torch.nn.functional.one_hot(samples.z, mixture.K).to(x),
        centres,
        noise,
        feature_size,
        noise_size,
        start.w @ x.T,
        (centres / feature_size.unsqueeze(1)) @ x.T,
        (noise / noise_size.unsqueeze(1)) @ x.T,
    )


def biases(net: TwoLayerNet) -> Float[Tensor, " h"]:
    """b, zero where there is none."""
    return torch.zeros_like(net.v) if net.b is None else net.b
