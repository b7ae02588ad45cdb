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

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from torch import Tensor

from tacit.base.estimate import farthest, least, most
from tacit.data import ClusterMixture, Samples
from tacit.lab import Bench, Claim, Expected, Judge, Outcome, Part
from tacit.measure import Estimate, cosines, mean_of, proportion
from tacit.nets import MultiClassNet, TwoLayerNet
from tacit.papers._shared.assumptions import missing_line
from tacit.papers._shared.fits import listed
from tacit.papers.li2025._shared.synthetic import (
    binary_start,
    mixture_of,
    multi_start,
    train_binary,
    train_classes,
)
from tacit.papers.li2025.matrices.figure import NAMES, draw, of_class
from tacit.papers.li2025.matrices.settings import Ablation, Labels, Setting, Varied
from tacit.train import Descended

__all__ = ["draw", "run"]

Pull = Callable[[Float[Tensor, "h k"]], Float[Tensor, "h k"]]
Net = TypeVar("Net", TwoLayerNet, MultiClassNet)

NEAR = 0.01  # of a cosine
BARELY = "ours: .01, about two percent of 1/sqrt(5)"
DEAD = 0.5  # cos(mu_j, w_jr): neurons are near 0 or near 1
HALF = 0.5  # nearly diagonal: no entry off the diagonal above this share of the least on it
TOO_LARGE: dict[Varied, float] = {"eta": 1e-2, "init": 1e-3}  # what Figures 6 and 7 call so
WHERE = "Appendix E.1"
MOST_POINTS = 50_000  # of Figure 5
UNIFORM = "paper: own-class correlations are uniformly larger than those with the other class"
LEAD = "every own-class cosine exceeds every other-class one (the smallest less the largest, mean over data sets)"


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


def dying(setting: Setting) -> float:
    """P(no point of its cluster activates a neuron) = E (1 - u)^(n/k), u = Phi((alpha/sigma) N(0, 1)).

    By a midpoint rule over the quantiles of the normal.
    """
    silent = ndtr(-setting.alpha / setting.sigma * ndtri((np.arange(10**5) + 0.5) / 10**5))
    return float((silent ** (setting.n / setting.k)).mean())


def pushed(setting: Setting, p: float) -> float:
    """-z s/sqrt(d) where the push of the other clusters ends: Phi(-z) = z s sqrt(p/d), s = sigma/alpha."""
    s = setting.sigma / setting.alpha / math.sqrt(setting.d)
    return -s * float(brentq(lambda z: ndtr(-z) - z * s * math.sqrt(p), 0, 40))


def theorem_regime(setting: Setting) -> str:
    """Where a training stands to Theorems 4.5 and 4.7."""
    if setting.inside:
        return "inside: Assumption 4.3 and T >= 1/eta, with every constant 1"
    return "outside: Assumption 4.3 asks for d >= k^10 and n >= k^7, Theorem 4.5 for T >= 1/eta"


def figure_regime(config: Labels | Ablation) -> str:
    """Where a run stands to the paper's figure."""
    papers = Labels() if isinstance(config, Labels) else Ablation(config.vary)
    free = ("repeats", "h") if isinstance(config, Labels) else ("repeats", config.vary)
    if replace(config, **{name: getattr(papers, name) for name in free}) != papers:
        return "outside: sizes of our own"
    if isinstance(config, Ablation) and config.vary == "n" and max(config.n) < MOST_POINTS:
        return f"shortened: n up to {max(config.n)}, where Figure 5 has {MOST_POINTS}"
    return "inside: the figure's own sizes"


def over_seeds(entries: xr.DataArray, of: int = 1) -> Estimate:
    """The mean over data sets, each with one training, of the mean entry."""
    each = entries.mean([name for name in entries.dims if name != "seed"])
    return mean_of(each, of=of, over="data sets")


def lead(cosine: xr.DataArray) -> xr.DataArray:
    """The smallest own-class cosine less the largest other-class one, for each data set."""
    own, other = (of_class(cosine, own=own) for own in (True, False))
    return own.min(("feature", "neuron")) - other.max(("feature", "neuron"))


def label_claims(data: xr.Dataset, config: Labels, bench: Bench) -> Iterator[Claim]:
    """Section 6.1, the caption of Figure 2, and what theory says of the same entries."""
    k, count = config.k, len(config.h)
    judge = bench.claims(
        "Theorem 4.5, Figure 2a", source="formula", bar=BARELY, regime=theorem_regime(config)
    )
    words_judge = judge.but(
        where="Section 6.1", source="words", bar=UNIFORM, regime=figure_regime(config)
    )
    our_judge = judge.but(source="ours", bar="ours: a tenth of it")
    own, other = (of_class(data.cosine, own=own) for own in (True, False))
    text = "2 labels: the own-class cosine is 1/sqrt(|J|), that of the class average"
    average = Expected(value=config.averaged(math.inf)[0], tolerance=NEAR)
    yield judge("own", text, average, over_seeds(own))
    yield words_judge("uniform", LEAD, Expected(min=0.0), over_seeds(lead(data.cosine)))

    eye = xr.DataArray(np.eye(k, dtype=bool), dims=("feature", "label"))
    on, off = data.mean_weight.where(eye), data.mean_weight.where(~eye)
    alike = abs(off).max(("feature", "label")) <= HALF * on.min(("feature", "label"))
    text = f"{k} labels: share of data sets where at no h an entry off the diagonal exceeds half the least on it"
    share = proportion(int(alike.all("h").sum()), data.sizes["seed"], over="data sets")
    yield words_judge("nearly", text, Expected(min=0.5), share, bar="ours: most data sets")
    text = f"{k} labels: the cosine of a living mean weight with its feature, 1/sqrt(1 + k sigma^2/(n alpha^2))"
    alone = 1 / math.sqrt(1 + k * (config.sigma / config.alpha) ** 2 / config.n)
    target, living = Expected(value=alone, tolerance=NEAR), on.where(on > DEAD)
    parts = [
        Part(f"h{h}", f"h = {h}", target, over_seeds(living.sel(h=h), of=count)) for h in config.h
    ]
    yield judge.but(where="Theorem 4.7, Figure 2b").family("diagonal", text, parts)

    if config.cosine == 0:
        halves = (config.k1, k - config.k1)
        rest = sum((k - p) * pushed(config, p) for p in halves) / k
        for id, who, rate, value, found in (
            ("other", "2 labels, other class", "sqrt(|J|/d)", rest, other),
            ("off", f"{k} labels, off the diagonal", "(k-1)/sqrt(d)", pushed(config, (k - 1) ** 2), off),
        ):  # fmt: skip
            text = f"{who}: cosine -z s/sqrt(d), Phi(-z) = z s {rate}, s = sigma/alpha: a push ends at silence"
            expected = Expected(value=value, tolerance=-value / 10)
            yield our_judge(id, text, expected, over_seeds(found))
    text = f"{k} labels: share of neurons that stay dead, at most that of those silent at their cluster at first"
    sets, neurons = data.sizes["seed"], data.sizes["seed"] * k * sum(config.h)
    share = proportion(int(data.dead.sum()), neurons, over=f"neurons of {sets} data sets")
    bar = "derived: E (1 - u)^(n/k), u the active share of a cluster; 1/(n/k + 1) at alpha = sigma"
    yield our_judge("dead", text, Expected(max=dying(config)), share, bar=bar)
    many = data.mean_weight - data.mean_theory
    gaps = [data.cosine - data.theory, *(many.sel(h=h) for h in config.h)]
    sizes = [over_seeds((gap**2).mean(gap.dims[1:]) ** 0.5, of=1 + count) for gap in gaps]
    text = "all entries by the reduced dynamics, k numbers a neuron: root mean square difference, largest matrix"
    yield our_judge("theory", text, Expected(max=NEAR / 2), most(sizes), bar="ours: half of .01")


def value_claims(data: xr.Dataset, config: Ablation, bench: Bench) -> Iterator[Claim]:
    """Averaging at each value but the baseline, which is Figure 2's; for Figures 6 and 7 also where it fails."""
    name, limit = NAMES[config.vary], TOO_LARGE.get(config.vary, math.inf)
    judge = bench.claims(WHERE, source="words", bar=UNIFORM, regime=figure_regime(config))
    small = [v for v in config.values if v < limit and config.at(v) != Setting()]
    own, average = of_class(data.cosine, own=True), data.average.transpose("value", "side")
    if small:
        found = [over_seeds(lead(data.cosine.sel(value=v)), of=len(small)) for v in small]
        text = f"{name} = {listed(small)}: {LEAD}"
        yield judge("uniform", text, Expected(min=0.0), least(found))
    # where the averages of the classes overlap, "a certain combination" (the abstract) is learned
    plain = [v for v in small if abs(float(average.sel(value=v, side="other"))) <= NEAR]
    if plain:
        parts = [
            Part(
                f"{v:g}", f"{name} = {v:g}",
                Expected(value=float(average.sel(value=v, side="own")), tolerance=NEAR),
                over_seeds(own.sel(value=v), of=len(plain)),
            )
            for v in plain
        ]  # fmt: skip
        text = f"{name} = {listed(plain)}: the own-class cosine is that of an average of the class's points"
        regime = theorem_regime(config.at(plain[0]))
        mean_judge = judge.but(where="Theorem 4.5", source="formula", bar=BARELY, regime=regime)
        yield mean_judge.family("own", text, parts)
    yield from too_large(data, config, judge)
    text = "mean own- and other-class cosine by the reduced dynamics, k numbers a neuron: largest difference"
    gaps = [of_class(data.cosine - data.theory, own=own) for own in (True, False)]
    count = 2 * len(config.values)
    off = [over_seeds(gap.sel(value=v), of=count) for gap in gaps for v in data.value.values]
    our_judge = judge.but(where="Section 5.1", source="ours", bar=BARELY)
    yield our_judge("theory", text, Expected(max=NEAR), farthest(off, 0.0))


def too_large(data: xr.Dataset, config: Ablation, judge: Judge) -> Iterator[Claim]:
    """Figures 6 and 7: averaging fails at the largest value that they show; and at the largest tried here."""
    shown, name = TOO_LARGE.get(config.vary, math.inf), NAMES[config.vary]
    own = of_class(data.cosine, own=True)
    bar = data.average.sel(side="own") - NEAR
    fails = data.value.values[(own.mean(("seed", "feature", "neuron")) < bar).values]
    first = f"averaging fails first at {min(fails):g}" if len(fails) else "nothing tried here fails"
    for value in config.values:
        if value < shown or value not in (shown, max(config.values)):
            continue
        id, source = ("necessary", "words") if value == shown else ("necessary.beyond", "ours")
        text = f"{name} = {value:g} is too large for averaging: the own-class cosine is not the average's"
        expected = Expected(max=float(bar.sel(value=value)))
        because = f"the weights still average at {name} = {value:g}; {first}"
        found = over_seeds(own.sel(value=value))
        yield judge(id, text, expected, found, source=source, bar=BARELY, because=because)
