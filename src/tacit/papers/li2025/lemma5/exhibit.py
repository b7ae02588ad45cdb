r"""Section 5 on Figure 2a's own setting: the recursions, the margins, the activation sets, and lambda over time.

**lambda over time.** While every point is active in all m neurons of its sign and in none of the other, all
margins are near q = kappa lambda, kappa = 1 + k/n (a point's own noise, remembered with sigma = lambda k/n,
adds k/n), and (2) reads lambda' = (eta d / (m k)) / (1 + e^q). So

    q + e^q - 1 = kappa (d / (m k)) eta t,      lambda = q / kappa -> (1/kappa) ln(kappa (d / (m k)) eta t).

The paper's lambda ~ log(eta t) leaves out the factor d/(mk): 61 in Figure 2a, so that lambda is 4 at eta t = 1.

**Activation at the start.** Neuron r sees <w, x_i> = <w, mu_j> + <w, xi_i>, two Gaussians of one variance:
given the first, the points of cluster j are active independently with a probability that is uniform on [0, 1].
So |T_srj| is uniform on {0, ..., |I_j|}, and no point of a cluster activates a neuron with probability 1/(|I_j|
+ 1). Proposition A.12 has |T_srj| >= n/(3km^2) for all of the 2mk pairs with probability 1 - m^-0.01 - 2mk
exp(-n/(9km^2)), which is negative at Figure 2a's sizes. For n/k large a pair misses that with probability
1/(3m^2), all hold with probability (1 - 1/(3m^2))^(2mk), near exp(-2k/(3m)): with m of the order k not 1 - o(1).
(Its proof takes the least <w, mu_j> over neurons, not over clusters too.)

**The start that Assumption 4.3 allows.** Lemma A.13, on which Lemma 5.5 at t = 1 rests, needs |<w(0), x_i>| <=
eta sqrt(d) / (n m). But sigma_w^2 = eta k^-5 with eta = d^-2 gives k^-2.5 / sqrt(d), which is larger by d n m
k^-2.5.
"""

import math
from functools import partial

import numpy as np
import torch
import xarray as xr

from tacit.data import Samples
from tacit.lab import Bench, Outcome
from tacit.nets import TwoLayerNet
from tacit.papers._shared.assumptions import missing_line
from tacit.papers.li2025._shared.coefficients import (
    Dynamics,
    Seen,
    State,
    biases,
    dynamics_of,
)
from tacit.papers.li2025._shared.readings import apart, estimated, ordered, reading_of
from tacit.papers.li2025._shared.synthetic import binary_start, mixture_of, train_binary
from tacit.papers.li2025.lemma5.claims import claims
from tacit.papers.li2025.lemma5.draws import inside as inside
from tacit.papers.li2025.lemma5.draws import starts as starts
from tacit.papers.li2025.lemma5.figure import draw as draw
from tacit.papers.li2025.lemma5.settings import Coefficients
from tacit.papers.li2025.sweeps.sweep import delta, growth

STRIDE = 0.04  # of the elapsed time: a step after T_long
MOMENTS = 12  # a decade


def run(config: Coefficients, bench: Bench) -> Outcome:
    """The trainings, one of them against descent, many starts, and one step inside the assumptions."""
    seeds = bench.seeds(config.repeats)
    courses = [bench.part(f"course.{s}", partial(followed, config, bench, s)) for s in seeds]
    parts = [
        xr.concat(courses, "seed").assign_coords(t=courses[0].t),
        bench.part("descent", partial(compared, config, bench)),
        bench.part("starts", partial(starts, config, bench)),
        xr.concat(
            [bench.part(f"inside.{s}", partial(inside, config, bench, s)) for s in seeds], "seed"
        ),
    ]
    data = xr.merge(parts)
    law = [growth(config.d, config.k, config.n, config.m, t) for t in config.eta * data.t.values]
    data["theory"] = ("time", law)
    return Outcome(data, claims(data, config, bench))


def moments(config: Coefficients) -> list[int]:
    """Steps to look at, until T_long: all small ones, then MOMENTS a decade."""
    count = round(MOMENTS * math.log10(config.T_long)) + 1
    wanted = np.geomspace(1, config.T_long, count).round().astype(int)
    return sorted({0, config.T, *wanted.tolist()})


def problem_of(
    config: Coefficients, bench: Bench, seed: int
) -> tuple[Dynamics, Samples, TwoLayerNet]:
    """The recursions of one training, its sample and the net it starts from."""
    stream = bench.generator("data", seed=seed)
    mixture = mixture_of(config.d, config.k, config.k1, generator=stream)
    samples = mixture.sample(config.n, stream)
    bench.tell(missing_line(samples, mixture))
    start = binary_start(config.d, config.m, config.sigma_w, config.sigma_w, stream)
    return dynamics_of(start, mixture, samples), samples, start


def followed(config: Coefficients, bench: Bench, seed: int) -> xr.Dataset:
    """One training: coefficients by the recursions to T_long and beyond, and the sample's properties."""
    problem, samples, _ = problem_of(config, bench, seed)
    at, rows, looked = problem.zero(), [], moments(config)
    for t in bench.steps(range(config.T_long + 1), "steps"):
        seen = problem.seen(at)
        if t in looked:
            rows.append(read(problem, at, seen, t))
        if t < config.T_long:
            at = problem.step(at, seen, config.eta)
    rows += later(problem, at, config)
    data = xr.Dataset({name: ("time", np.array([row[name] for row in rows])) for name in rows[0]})
    data["A6"] = ("property", list(sample_properties(problem, samples).values()))
    return data.set_coords("t")


def read(problem: Dynamics, at: State, seen: Seen, t: float) -> dict[str, float]:
    """The lemmas' readings, Lemma B.6's pairs of points, and the signs of Corollary B.5."""
    own, near = problem.own, problem.own_clusters
    return {
        **reading_of(problem, at, seen, t),
        **ordered(problem, seen),
        "own_negative": float(-torch.minimum(at.lam[near].min(), at.sigma[own].min())),
        "foreign_positive": float(torch.maximum(at.lam[~near].max(), at.sigma[~own].max())),
        "foreign_zero": float((at.sigma[~own] == 0).double().mean()),
    }


def compared(config: Coefficients, bench: Bench) -> xr.Dataset:
    """Descent in R^d to T against the recursions, with l'_i as it is and as printed; eqs. (4) and (17) at T."""
    problem, samples, start = problem_of(config, bench, bench.seed)
    looked = [t for t in moments(config) if t <= config.T]
    history = train_binary(start, samples, config.eta, config.T, looked).history
    nets = {moment.step: moment.net for moment in history}
    at = printed = problem.zero()
    errors = []
    for t in range(config.T + 1):
        if t in nets:
            w, b = nets[t].w, biases(nets[t])
            off = [apart(problem.rebuilt(state), w) for state in (at, printed)]
            errors.append([*off, float((at.b - b).abs().max() / b.abs().max())])
        if t < config.T:
            seen = problem.seen(at)
            bare = Seen(seen.margin, seen.slope * problem.y, seen.active)  # l'_i as printed
            printed = problem.step(printed, bare, config.eta)
            at = problem.step(at, seen, config.eta)
    names = ("recursion", "as_printed", "bias_error")
    found = {name: ("step", row) for name, row in zip(names, np.array(errors).T, strict=True)}
    fixed = {name: ((), value) for name, value in balance(problem, at, config).items()}
    return xr.Dataset(found | fixed, coords={"step": list(nets)})


def later(problem: Dynamics, at: State, config: Coefficients) -> list[dict[str, float]]:
    """The same recursions with steps that grow with the elapsed time, to eta t = late."""
    time, rows = config.eta * config.T_long, []
    due = time * 10 ** (1 / MOMENTS)
    while time < config.late:
        at = problem.step(at, problem.seen(at), STRIDE * time)
        time *= 1 + STRIDE
        if time >= due:
            rows.append(read(problem, at, problem.seen(at), time / config.eta))
            due *= 10 ** (1 / MOMENTS)
    return rows


def balance(problem: Dynamics, at: State, config: Coefficients) -> dict[str, float]:
    """Eq. (4) as printed and as Corollary B.4 has it; eq. (17): one step of q_hat against the printed factor."""
    own = problem.own_clusters
    ratio = problem.noise_size.unsqueeze(1) / problem.feature_size * problem.z
    inverse = problem.z * problem.feature_size / problem.noise_size.unsqueeze(1)
    off = [((at.sigma @ r - at.lam) / at.lam)[own].abs().max() for r in (ratio, inverse)]
    seen = problem.seen(at)
    after = problem.step(at, seen, config.eta)
    hat = [estimated(problem, s) for s in (at, after)]
    pull = seen.slope.abs()
    printed = (
        config.eta
        / (2 * config.n)
        * (problem.z @ (problem.z.T @ pull * problem.feature_size) + pull * problem.noise_size)
    )
    return {
        "eq4_printed": float(off[0]),
        "eq4_inverse": float(off[1]),
        "eq17": float(((hat[1] - hat[0]) / printed).mean()),
    }


def sample_properties(problem: Dynamics, samples: Samples) -> dict[str, float]:
    """Proposition A.6: each property as the largest ratio of what is bounded to its bound."""
    assert problem.span is not None, "a sample has vectors"
    assert problem.noises is not None, "a sample has vectors"
    centres, (n, k) = problem.span.centres, problem.z.shape
    d, x, z = centres.shape[1], samples.x, samples.z
    size, root, log = problem.noise_size.sqrt(), math.sqrt(d), math.log(d)
    # products of noises and of points, from those that the recursions have
    along = problem.features * problem.feature_size.unsqueeze(1)
    noises = problem.noises * problem.noise_size.unsqueeze(1)
    aside = along - (centres @ centres.T)[:, z]
    crossed, products = noises - aside[z].T, along[z] + noises
    other = z.unsqueeze(1) != z
    pair = ~torch.eye(n, dtype=torch.bool)
    same = products[~other & pair]
    share = n / k
    counts = problem.z.sum(0)
    return {
        "A6_1": float((size - root).abs().max()) / (2 * log),
        "A6_2": float(x.norm(dim=1).max()) / (3 * root),
        "A6_3": float(crossed[pair].abs().max()) / delta(d),
        "A6_4": float(aside.abs().max()) / delta(d),
        "A6_5": float(products[other].abs().max()) / delta(d),
        "A6_6": float(max(same.max() / (2 * d), d / 2 / same.min())),
        "A6_7": float((counts - share).abs().max()) / (math.sqrt(2 * share) * math.log(share)),
    }
