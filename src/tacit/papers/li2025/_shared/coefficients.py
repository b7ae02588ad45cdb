r"""Gradient descent as recursions of coefficients of features and noises (Section 5.1, Appendix C.2).

    w_r = w_r(0) + sum_j lambda_rj mu_j / ||mu_j||^2 + sum_i sigma_ri xi_i / ||xi_i||^2       (Lemmas 5.1, C.6)

With p_ri the step of neuron r at point i, a multiple of x_i, of which mu_j and xi_i take a share each,

    lambda_rj += sum_{i in I_j} p_ri ||mu_j||^2,    sigma_ri += p_ri ||xi_i||^2,    b_r += sum_i p_ri.

2 labels, neuron r of sign s (Lemma 5.2, (2) and (3); the bias is from the proof of Lemma B.10):

    p_ri = -(s eta / (n m)) l'_i [r in S_si],   l'_i = -y_i / (1 + exp(y_i f(x_i)))

as Appendix A.3 has l'_i; Section 5.1 prints l'_i = l'(y_i f(x_i)), without y_i, and S_si with ">" for ">=".

k labels, neuron r of label s (Corollary C.8; no biases):

    p_ri = -(eta / (n h)) l'_is [<w_sr, x_i> >= 0],   l'_is = exp(f_s(x_i)) / sum_p exp(f_p(x_i)) - [i in I_s]

The recursions are closed: f at the points follows from the coefficients and from inner products of the data.
No weight vector is needed until one wants to see it (`rebuilt`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.data import ClusterMixture, Samples
from tacit.nets import MultiClassNet, TwoLayerNet


@dataclass(frozen=True)
class State:
    """lambda (h, k), sigma (h, n) and b (h,) of all h neurons."""

    lam: Float[Tensor, "h k"]
    sigma: Float[Tensor, "h n"]
    b: Float[Tensor, " h"]


@dataclass(frozen=True)
class Seen:
    """2 labels, at the points: own output times label, l'_i, and which neurons are active."""

    margin: Float[Tensor, " n"]
    slope: Float[Tensor, " n"]
    active: Bool[Tensor, "h n"]


@dataclass(frozen=True)
class ClassSeen:
    """k labels, at the points: outputs, ln sum exp of the others, the own one (q_i), l'_is, active neurons."""

    logits: Float[Tensor, "k n"]
    others: Float[Tensor, " n"]
    margin: Float[Tensor, " n"]
    slope: Float[Tensor, "k n"]
    active: Bool[Tensor, "h n"]


@dataclass(frozen=True)
class Span:
    """The vectors behind the products: first weights, centres, noises."""

    w: Float[Tensor, "h d"]
    centres: Float[Tensor, "k d"]
    noise: Float[Tensor, "n d"]


@dataclass(frozen=True)
class Ground:
    """What the recursions need of the data and the start, whatever the loss.

    `z` (n, k) marks the cluster of each point; the sizes are ||mu_j||^2 and ||xi_i||^2; `first`, `features` and
    `noises` are the products of w(0), mu_j / ||mu_j||^2 and xi_p / ||xi_p||^2 with the points. Where `noises`
    is None the noises are orthogonal to each other and to the centres.
    """

    z: Float[Tensor, "n k"]
    feature_size: Float[Tensor, " k"]
    noise_size: Float[Tensor, " n"]
    first: Float[Tensor, "h n"]
    features: Float[Tensor, "k n"]
    noises: Float[Tensor, "n n"] | None
    span: Span | None

    def zero(self) -> State:
        """The coefficients at the start."""
        h, (n, k) = len(self.first), self.z.shape
        new = self.first.new_zeros
        return State(new(h, k), new(h, n), new(h))

    def before(self, at: State) -> Float[Tensor, "h n"]:
        """What reaches each neuron from each point, before the ReLU: by inner products alone."""
        noise = at.sigma if self.noises is None else at.sigma @ self.noises
        return self.first + at.lam @ self.features + noise + at.b.unsqueeze(1)

    def moved(self, at: State, pull: Float[Tensor, "h n"]) -> State:
        """After a step that adds pull_ri x_i to w_r."""
        return State(
            at.lam + (pull @ self.z) * self.feature_size,
            at.sigma + pull * self.noise_size,
            at.b,
        )

    def rebuilt(self, at: State) -> Float[Tensor, "h d"]:
        """Lemmas 5.1 and C.6."""
        assert self.span is not None, "products alone have no vectors"
        features = self.span.centres / self.feature_size.unsqueeze(1)
        noises = self.span.noise / self.noise_size.unsqueeze(1)
        return self.span.w + at.lam @ features + at.sigma @ noises


@dataclass(frozen=True)
class Dynamics(Ground):
    """2 labels: `y` of the points, second layer `v` and first biases `first_b` of the 2m neurons."""

    y: Float[Tensor, " n"]
    v: Float[Tensor, " h"]
    first_b: Float[Tensor, " h"]

    @property
    def width(self) -> int:
        """m, the neurons whose mean an output is."""
        return len(self.v) // 2

    @property
    def own(self) -> Bool[Tensor, "h n"]:
        """Whether point i has the label of the neuron."""
        return self.v.sign().unsqueeze(1) == self.y

    @property
    def own_clusters(self) -> Bool[Tensor, "h k"]:
        """Whether cluster j has the label of the neuron."""
        labels = (self.z * self.y.unsqueeze(1)).sum(0).sign()
        return self.v.sign().unsqueeze(1) == labels

    def zero(self) -> State:
        """The coefficients at the start."""
        at = super().zero()
        return State(at.lam, at.sigma, self.first_b.clone())

    def seen(self, at: State) -> Seen:
        """f at the points."""
        z = self.before(at)
        margin = self.y * (self.v @ z.clamp_min(0))
        return Seen(margin, -self.y * torch.sigmoid(-margin), z >= 0)

    def step(self, at: State, seen: Seen, eta: float) -> State:
        """(2), (3) and the bias, with l'_i = seen.slope."""
        pull = -(eta / len(self.y)) * self.v.unsqueeze(1) * seen.slope * seen.active
        after = self.moved(at, pull)
        return State(after.lam, after.sigma, at.b + pull.sum(1))

    def log_pull(self, seen: Seen) -> Float[Tensor, " n"]:
        """ln |l'_i|."""
        return -torch.nn.functional.softplus(seen.margin)


@dataclass(frozen=True)
class ClassDynamics(Ground):
    """k labels: the first h neurons are those of label 0, and so on."""

    width: int

    @property
    def own(self) -> Bool[Tensor, "h n"]:
        """Whether point i has the label of the neuron."""
        return (self.z.T > 0).repeat_interleave(self.width, 0)

    @property
    def own_clusters(self) -> Bool[Tensor, "h k"]:
        """Whether cluster j is that of the neuron."""
        k = self.z.shape[1]
        return torch.eye(k, dtype=torch.bool).repeat_interleave(self.width, 0)

    def seen(self, at: State) -> ClassSeen:
        """The k outputs at the points."""
        z = self.before(at)
        logits = z.clamp_min(0).unflatten(0, (-1, self.width)).mean(1)
        own = self.z.T > 0
        others = torch.logsumexp(logits.masked_fill(own, -torch.inf), 0)
        margin = torch.where(own, logits, 0.0).sum(0)
        # 1 - p of the own label by its own formula: p itself rounds to 1
        rest = torch.exp(logits - torch.logaddexp(others, margin))
        slope = torch.where(own, -torch.sigmoid(others - margin), rest)
        return ClassSeen(logits, others, margin, slope, z >= 0)

    def step(self, at: State, seen: ClassSeen, eta: float) -> State:
        """Corollary C.8."""
        slope = seen.slope.repeat_interleave(self.width, 0)
        return self.moved(at, -(eta / (len(self.z) * self.width)) * slope * seen.active)

    def log_pull(self, seen: ClassSeen) -> Float[Tensor, " n"]:
        """ln |l'_i,c(i)|."""
        return torch.nn.functional.logsigmoid(seen.others - seen.margin)


Net = Dynamics | ClassDynamics
QUIET = 0.01


def followed(
    problem: Net, eta: float, plain: int, until: float, stride: float, quiet: float | None = None
) -> Iterator[tuple[float, State, Seen | ClassSeen]]:
    """(t, coefficients, what is seen) from t = 0: `plain` steps of size eta, then growing ones, to eta t = until.

    A growing step is `stride` times the elapsed time: a coefficient grows by about the step over the elapsed
    time, since the loss falls as one over time (`sweeps.sweep`). While every margin is below QUIET all
    derivatives are what they were at the start, to as much, and `quiet` may be a longer stride.
    """
    at, t = problem.zero(), 0.0
    while True:
        seen = problem.seen(at)
        yield t, at, seen
        if t >= until / eta * (1 - 1e-9):
            return
        still = quiet is not None and float(seen.margin.max()) < QUIET
        size = 1.0 if t < plain else max(t * (quiet if still and quiet else stride), 1.0)
        at = problem.step(at, seen, eta * size)  # type: ignore[arg-type]
        t += size


def dynamics_of(start: TwoLayerNet, mixture: ClusterMixture, samples: Samples) -> Dynamics:
    """2 labels: the inner products, once; float64."""
    return Dynamics(
        **products(start.w, mixture, samples), y=samples.y, v=start.v, first_b=biases(start)
    )


def class_dynamics_of(
    start: MultiClassNet, mixture: ClusterMixture, samples: Samples
) -> ClassDynamics:
    """k labels: the inner products, once; float64."""
    w = start.w.flatten(0, 1)
    return ClassDynamics(**products(w, mixture, samples), width=start.w.shape[1])


def products(w: Float[Tensor, "h d"], mixture: ClusterMixture, samples: Samples) -> dict[str, Any]:
    """The fields of a `Ground`."""
    x, centres = samples.x, mixture.centres
    noise = x - centres[samples.z]
    feature_size, noise_size = centres.square().sum(1), noise.square().sum(1)
    return {
        "z": torch.nn.functional.one_hot(samples.z, mixture.K).to(x),
        "feature_size": feature_size,
        "noise_size": noise_size,
        "first": w @ x.T,
        "features": (centres / feature_size.unsqueeze(1)) @ x.T,
        "noises": (noise / noise_size.unsqueeze(1)) @ x.T,
        "span": Span(w, centres, noise),
    }


def biases(net: TwoLayerNet) -> Float[Tensor, " h"]:
    """b, zero where there is none."""
    return torch.zeros_like(net.v) if net.b is None else net.b
