r"""Figure 2 (a, b) and Figures 5 to 9: cosines of features and weights, and what theory says of every entry.

**The average.** If w is the sum of its class's training points, cluster j adds mu_j plus the mean of n_j noises,
of norm^2 sigma^2 d / n_j. With p = |J_s| clusters of n/k points and orthogonal centres of norm alpha sqrt(d),

    cos(w, mu_j) = 1 / sqrt(p (1 + k sigma^2 / (n alpha^2)))     (own class; `Setting.averaged` has cosines too)

That is 1/sqrt(5) = .447 for n -> inf, and .4450 at the paper's n = 1000.

**The other class** is not at zero. A neuron is pushed away from a point of the other class only while it is
active there. Its overlap with the noise of a point has sd sigma ||w||, so the push on a cluster ends when the
cluster lies z of these sd below zero: cos(w, mu_other) = -z sigma / (alpha sqrt(d)). Own coefficients grow at a
rate g, the others at -g Phi(-z); both keep pace when

    Phi(-z) = z (sigma/alpha) sqrt(p/d)          (2 labels)
    Phi(-z) = z (sigma/alpha) (k-1)/sqrt(d)      (k labels: k-1 others share the push)

At the baseline z = 1.53 and the cosine is -.028; with k labels z = .99, -.018. The own cosine loses
p cos^2 / 2 of itself to that: .444, and the diagonal of the 10-label net is .9936. With c > 0 the push must first
cancel the overlap p c of the own average with the other features: the weight is mu_+ - r mu_-, r = Phi(-z) near
1/3 at c = .09, and not the average mu_+.

**Every entry** (`reduced`). k numbers a neuron stand for its d weights: with w = w_0 + sum_j C_j (mu_j + mean
noise of j), C starts at 0 and

    C_j += eta (n_j/n) pull_j Phi((<w, mu_j> + b) / (sigma ||w||)),

where the pull is that of the loss at the centre mu_j. Only w_0 and the counts n_j go in. What is left out: that
a point has a noise of its own in the loss, and a memory of it in w (1/n_j of its cluster's pull).

**Dead neurons.** A neuron of the k-label net that none of its cluster's n_j points activates at the start has no
pull. The share u of active points is Phi((alpha/sigma) N(0, 1)), uniform on [0, 1] for alpha = sigma, so that
happens with probability E (1 - u)^(n_j) = 1/(n_j + 1), one in a hundred here. Only the other clusters move such a
neuron, and their pushes may wake it by chance (the larger eta / (h init), the likelier): the probability bounds
the share of neurons that stay dead. The caption's equivalent weight, the mean of h neurons, hides them.

The paper's T = 100 is below 1/eta, and d = 3072 below k^10: outside Theorem 4.5 and Assumption 4.3.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from tacit.data import ClusterMixture, Samples
from tacit.lab import Bench, Outcome
from tacit.measure import cosines
from tacit.nets import MultiClassNet, TwoLayerNet
from tacit.papers._shared.assumptions import missing_line
from tacit.papers.li2025._shared.synthetic import (
    binary_start,
    mixture_of,
    multi_start,
    train_binary,
    train_classes,
)
from tacit.papers.li2025.matrices.claims import label_claims, value_claims
from tacit.papers.li2025.matrices.figure import draw
from tacit.papers.li2025.matrices.settings import DEAD, Ablation, Labels, Setting
from tacit.train import Descended

__all__ = ["draw", "run"]

Pull = Callable[[Float[Tensor, "h k"]], Float[Tensor, "h k"]]
Net = TypeVar("Net", TwoLayerNet, MultiClassNet)


def run(config: Labels | Ablation, bench: Bench) -> Outcome:
    """Figure 2 (a, b), or an ablation."""
    return run_labels(config, bench) if isinstance(config, Labels) else run_values(config, bench)


def run_labels(config: Labels, bench: Bench) -> Outcome:
    """Both labellings on each data set."""
    seeds = bench.seeds(config.repeats)
    parts = [
        bench.part(f"seed{seed}", partial(both_labellings, config, bench, seed))
        for seed in bench.steps(seeds, "data sets")
    ]
    data = xr.concat(parts, "seed")
    data = data.assign_coords({"seed": seeds, "h": list(config.h), **config.signs})
    return Outcome(data, tuple(label_claims(data, config, bench)))


def run_values(config: Ablation, bench: Bench) -> Outcome:
    """The 2-label net on every data set at every value."""
    seeds = bench.seeds(config.repeats)
    cells = [(value, seed) for value in config.values for seed in seeds]
    parts = [
        bench.part(f"{value:g}-seed{seed}", partial(two_labels, config.at(value), bench, seed))
        for value, seed in bench.steps(cells, "trainings")
    ]
    rows = [parts[i : i + len(seeds)] for i in range(0, len(parts), len(seeds))]
    data = xr.concat([xr.concat(row, "seed") for row in rows], "value")
    settings = [config.at(value) for value in config.values]
    data["average"] = (("value", "side"), [setting.averaged(setting.n) for setting in settings])
    labels = {"value": [float(value) for value in config.values], "side": ["own", "other"]}
    data = data.assign_coords({"seed": seeds, **labels, **settings[0].signs})
    return Outcome(data, tuple(value_claims(data, config, bench)))


@dataclass(frozen=True)
class Problem:
    """A mixture, training points of it in float32 on the device, and how many each cluster has.

    Where points are few, `train` is in the orthonormal `axes` of its own span: an exact change of coordinates.
    """

    mixture: ClusterMixture
    train: Samples
    counts: Float[Tensor, " k"]
    axes: Float[Tensor, "d n"] | None

    def trained(self, net: Net, fit: Callable[[Net, Samples], Descended[Net]]) -> Tensor:
        """The weights after `fit`: descent moves them in the span of the points, and leaves the rest of them."""
        w = net.w.to(self.train.x)
        if self.axes is None:
            return fit(replace(net, w=w), self.train).net.w.cpu()
        start = replace(net, w=w @ self.axes)
        end = fit(start, self.train).net
        return (w + (end.w - start.w) @ self.axes.T).cpu()


def problem(setting: Setting, bench: Bench, seed: int) -> Problem:
    """The data set of one seed; settings that differ elsewhere share its noise."""
    stream = bench.generator("data", seed=seed)
    mixture = mixture_of(
        setting.d, setting.k, setting.k1,
        alpha=setting.alpha, sigma=setting.sigma, cosine=setting.cosine, generator=stream,
    )  # fmt: skip
    drawn = mixture.sample(setting.n, stream)
    bench.tell(missing_line(drawn, mixture))
    counts = torch.bincount(drawn.z, minlength=setting.k).to(torch.float64)
    x = drawn.x.to(bench.device, torch.float32)
    axes = torch.linalg.qr(x.T).Q if 2 * setting.n <= setting.d else None
    train = Samples(x if axes is None else x @ axes, drawn.y, drawn.z)
    return Problem(mixture, train, counts, axes)


def two_labels(setting: Setting, bench: Bench, seed: int, of: Problem | None = None) -> xr.Dataset:
    """Train the 2-label net: its matrix (feature, neuron), and the matrix that theory gives."""
    of = of or problem(setting, bench, seed)
    init, stream = setting.init, bench.generator("start", seed=seed)
    start = binary_start(setting.d, setting.m, init, init, stream)
    assert start.b is not None
    there = replace(start, v=start.v.to(of.train.x), b=start.b.to(of.train.x))
    w = of.trained(there, partial(train_binary, eta=setting.eta, T=setting.T))
    C = reduced(start.w, start.b, of, two_label_pull(of.mixture.labels, start.v), setting)
    found = {"cosine": matrix_of(w, of.mixture), "theory": entries_of(start.w, C, of).numpy()}
    return xr.Dataset({name: (("feature", "neuron"), matrix) for name, matrix in found.items()})


def both_labellings(config: Labels, bench: Bench, seed: int) -> xr.Dataset:
    """`two_labels`, and for each h the k-label net: the cosines of its mean weights, and its dead neurons."""
    of, k = problem(config, bench, seed), config.k
    mean_weight, theory, dead = [], [], []
    for h in config.h:
        stream = bench.generator("start", h, seed=seed)
        start = multi_start(config.d, of.mixture.labels, h, config.init, stream)
        w = of.trained(start, partial(train_classes, eta=config.eta, T=config.T))
        mean_weight.append(matrix_of(w.mean(1), of.mixture))
        alone = matrix_of(w.flatten(0, 1), of.mixture).reshape(k, k, h)  # feature, label, unit
        dead.append((alone[range(k), range(k)] < DEAD).sum())
        C = reduced(start.w.flatten(0, 1), None, of, many_label_pull(k, h), config)
        theory.append(entries_of(start.w.mean(1), C.unflatten(0, (k, h)).mean(1), of).numpy())
    found = {"mean_weight": mean_weight, "mean_theory": theory}
    entries = ("h", "feature", "label")
    many = {name: (entries, np.stack(matrices)) for name, matrices in found.items()}
    return two_labels(config, bench, seed, of).assign(many | {"dead": ("h", dead)})


def matrix_of(w: Float[Tensor, "h d"], mixture: ClusterMixture) -> npt.NDArray[np.float64]:
    """cos(mu_i, w_j), features as rows (the papers' way round)."""
    return cosines(TwoLayerNet(w, w.new_ones(len(w))), mixture.centres).T.numpy()


def two_label_pull(labels: Float[Tensor, " k"], v: Float[Tensor, " h"]) -> Pull:
    """Of the logistic loss: v_r y_j g(y_j f(mu_j)), f = sum_r v_r relu(...)."""
    return lambda active: v.unsqueeze(-1) * labels * torch.sigmoid(-labels * (v @ active))


def many_label_pull(k: int, h: int) -> Pull:
    """Of the cross-entropy: (1[i = j] - softmax(f(mu_j))_i) / h for the h neurons of label i."""

    def pull(active: Float[Tensor, "kh k"]) -> Float[Tensor, "kh k"]:
        chance = torch.softmax(active.unflatten(0, (k, h)).mean(1), 0)
        return (torch.eye(k, dtype=active.dtype) - chance).repeat_interleave(h, 0) / h

    return pull


def reduced(
    w: Float[Tensor, "h d"],
    b: Float[Tensor, " h"] | None,
    of: Problem,
    pull: Pull,
    setting: Setting,
) -> Float[Tensor, "h k"]:
    """The coefficients C after T steps (module docstring), from the weights and biases at the start."""
    gram, start = of.mixture.centres @ of.mixture.centres.T, w @ of.mixture.centres.T
    bias = torch.zeros(len(w), 1, dtype=w.dtype) if b is None else b.unsqueeze(-1)
    rate = setting.eta * of.counts / of.counts.sum()
    C = torch.zeros_like(start)
    for _ in range(setting.T):
        overlap = start + C @ gram + bias
        spread = of.mixture.sd * sizes(w, start, C, gram, of).unsqueeze(-1)
        change = rate * pull(overlap.clamp_min(0)) * torch.special.ndtr(overlap / spread)
        C = C + change
        bias = bias if b is None else bias + change.sum(-1, keepdim=True)
    return C


def sizes(
    w: Float[Tensor, "h d"],
    start: Float[Tensor, "h k"],
    C: Float[Tensor, "h k"],
    gram: Float[Tensor, "k k"],
    of: Problem,
) -> Float[Tensor, " h"]:
    """||w_0 + sum_j C_j (mu_j + mean noise of j)||, the noises orthogonal to all else."""
    noise = of.mixture.sd**2 * of.mixture.D / of.counts.clamp_min(1)
    squares = w.square().sum(-1) + (C * (2 * start + C @ gram + C * noise)).sum(-1)
    return squares.sqrt()


def entries_of(
    w: Float[Tensor, "h d"], C: Float[Tensor, "h k"], of: Problem
) -> Float[Tensor, "k h"]:
    """cos(mu_i, w_j) where w_j has come from w by the coefficients C."""
    gram, start = of.mixture.centres @ of.mixture.centres.T, w @ of.mixture.centres.T
    size = sizes(w, start, C, gram, of)
    return ((start + C @ gram) / size.unsqueeze(-1)).T / gram.diagonal().sqrt().unsqueeze(-1)
