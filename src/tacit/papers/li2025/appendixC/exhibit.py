r"""Appendix C on Figure 2b's own setting: the recursions of the net with k labels, and what its induction says.

**Lemmas C.6 to C.8.** Neuron r of label s has lambda_srj of each feature and sigma_sri of each noise, as with
two labels (`lemma5`), but a step is -(eta/(n h)) l'_is: 1 - p at points of its own label, -p_s at all others.
That is the gradient of the mean cross-entropy, and is compared with descent.

**Proposition C.3** asks each of h k^2 pairs of a neuron and a cluster for n/(3 k^3 h^2) active points. |T_srj|
is uniform on {0, ..., |I_j|} (derived in `lemma5`), so a pair misses that with probability 1/(3 k^2 h^2) for
n/k large, and all hold with probability (1 - 1/(3 k^2 h^2))^(h k^2), near exp(-1/(3h)): .717 at h = 1, .895 at
h = 3, whatever k is. The proposition has 1 - (hk)^-.01 - ..., which goes to 1. (As Proposition A.12: the least
<w, mu_j> is one over h k^2 pairs, not over hk neurons.)

**Lemma C.5** has every own pair active after one step. At Figure 2b's start one step moves <w, x> by about eta
d/(2hk), and a neuron that no own point activates at the start (probability 1/(|I_j| + 1)) not at all. Trainings
with such a neuron are made again for all but the claims on that event (`redrawn`), which short trainings count.

**eps** is 58 at these sizes and multiplies up to 67 k^2: which bounds are empty here is said of each, with the
size that it would take. `li2025.eps` judges them at such a size.
"""

import math
from functools import partial

import numpy as np
import torch
import xarray as xr

from tacit.lab import Bench, Outcome
from tacit.nets import MultiClassNet
from tacit.papers._shared.assumptions import missing_line
from tacit.papers.li2025._shared.coefficients import ClassDynamics, class_dynamics_of, followed
from tacit.papers.li2025._shared.compact import Problem, classes_net, compact_problem
from tacit.papers.li2025._shared.readings import apart, first_begun, watched
from tacit.papers.li2025._shared.starts import activated
from tacit.papers.li2025._shared.synthetic import train_classes
from tacit.papers.li2025.appendixC.claims import claims, n_of_C3
from tacit.papers.li2025.appendixC.figure import draw as draw
from tacit.papers.li2025.appendixC.settings import Classes

STRIDE = 0.1  # of the elapsed time: a step after T
LOOKS = 4  # a decade of steps
DRAWS = 1000


def run(config: Classes, bench: Bench) -> Outcome:
    """The trainings, one of them against descent, many starts, and one step inside the assumptions."""
    seeds = bench.seeds(config.repeats)
    courses = [
        bench.part(f"course.{s}", partial(course, config, bench, s))
        for s in bench.steps(seeds, "trainings")
    ]
    inner = [bench.part(f"inside.{s}", partial(inside, config, bench, s)) for s in seeds]
    data = xr.merge(
        [
            xr.concat(courses, "seed"),
            xr.concat(inner, "seed"),
            bench.part("descent", partial(compared, config, bench)),
            bench.part("starts", partial(starts, config, bench)),
            bench.part("draws", partial(drawn, config, bench)),
        ]
    )
    return Outcome(data, claims(data, config, bench))


def problem_of(
    config: Classes, bench: Bench, stream: torch.Generator
) -> tuple[Problem, MultiClassNet]:
    """A sample and a start, in the coordinates of their span."""
    problem = compact_problem(config.d, config.k, config.k1, config.n, config.k * config.h, stream)
    bench.tell(missing_line(problem.train, problem.mixture))
    return problem, classes_net(problem.rows, problem.mixture, config.sigma_w, torch.float64)


def born(
    config: Classes, bench: Bench, seed: int
) -> tuple[Problem, MultiClassNet, ClassDynamics, int]:
    """The first of a stream's draws in which each neuron has an active own point; how many had none."""
    stream = bench.generator("classes", seed=seed)

    def draw() -> tuple[Problem, MultiClassNet, ClassDynamics]:
        problem, net = problem_of(config, bench, stream)
        return problem, net, class_dynamics_of(net, problem.mixture, problem.train)

    redrawn, found = first_begun((draw() for _ in range(DRAWS)), lambda drawn: drawn[2])
    return *found, redrawn


def course(config: Classes, bench: Bench, seed: int) -> xr.Dataset:
    """One training by the recursions: readings, the signs of the coefficients at the end, fresh noise."""
    problem, net, dynamics, redrawn = born(config, bench, seed)
    steps = followed(dynamics, config.eta, config.T, config.late, STRIDE)
    data, end = watched(dynamics, steps, config.late / config.eta, LOOKS)
    own, near = dynamics.own, dynamics.own_clusters
    noise = torch.randn(
        1000, net.w.shape[2], generator=bench.generator("fresh", seed=seed), dtype=torch.float64
    )
    logits = net.logits(problem.train.x)
    pull = torch.softmax(logits, 1)
    sizes = net.w.norm(dim=2) / config.sigma_w - math.sqrt(config.d)
    found = {
        "redrawn": redrawn,
        "own_negative": float(max(-end.lam[near].min(), -end.sigma[own].min())),
        "foreign_positive": float(max(end.lam[~near].max(), end.sigma[~own].max())),
        "foreign_zero": float((end.sigma[~own] == 0).double().mean()),
        "fresh": float((noise @ dynamics.rebuilt(end).T).abs().max()),
        "C1": float(sizes.abs().max()) / (2 * math.log(config.d)),
        "C4": float(max(config.k * pull.max() / 2, 1 / (2 * config.k * pull.min()))),
    }
    return data.assign({name: ((), value) for name, value in found.items()})


def compared(config: Classes, bench: Bench) -> xr.Dataset:
    """Descent to T_descent against the recursions: weights, and Corollary C.7."""
    problem, net, dynamics, _ = born(config, bench, bench.seed)
    moments = range(config.T_descent + 1)
    history = train_classes(net, problem.train, config.eta, config.T_descent, moments).history
    nets, errors = {m.step: m.net for m in history}, []
    at = dynamics.zero()
    for t in moments:
        w = nets[t].w.flatten(0, 1)
        shares = (at.sigma / dynamics.noise_size) @ dynamics.z * dynamics.feature_size
        scale = at.lam.abs().max().clamp_min(1e-300)
        errors.append(
            [apart(dynamics.rebuilt(at), w), float((shares - at.lam).abs().max() / scale)]
        )
        at = dynamics.step(at, dynamics.seen(at), config.eta)
    found = np.array(errors)
    return xr.Dataset(
        {"C6": ("step", found[:, 0]), "C7": ("step", found[:, 1])}, {"step": list(moments)}
    )


def starts(config: Classes, bench: Bench) -> xr.Dataset:
    """Short trainings from any start: which neurons begin without an own point, and which end so."""
    names: tuple[str, ...] = ("own_points", "begin_off", "end_off", "active_1")
    rows: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for start in bench.steps(range(config.starts), "starts"):
        problem, net = problem_of(config, bench, bench.generator("starts", start))
        dynamics = class_dynamics_of(net, problem.mixture, problem.train)
        seen = [
            s.active & dynamics.own
            for t, _, s in followed(
                dynamics, config.eta, config.T_start, config.eta * config.T_start, STRIDE
            )
            if t in (0, 1, config.T_start)
        ]
        points = dynamics.own.sum(1)
        found = (
            points,
            seen[0].sum(1) == 0,
            seen[-1].sum(1) == 0,
            seen[1].sum(1) / points.clamp_min(1),
        )
        for name, row in zip(names, found, strict=True):
            rows[name].append(row.double().numpy())
    return xr.Dataset({name: (("start", "neuron"), np.array(row)) for name, row in rows.items()})


def drawn(config: Classes, bench: Bench) -> xr.Dataset:
    """In how many of many starts each neuron has n/(3 k^3 h^2) active points or more in each cluster.

    Once with the setting's n, and once with so many that Proposition C.3 promises something.
    Products of the kh first weights with points, in units of sigma_w sqrt(d): Gaussians of one variance, whose
    dependence over neurons, of the order 1/sqrt(d), is left out here.
    """
    k, h, n = config.k, config.h, config.n
    rng = np.random.default_rng(int(torch.randint(2**62, (), generator=bench.generator("draws"))))
    reached = 0
    for _ in range(config.draws):
        cluster = rng.integers(k, size=n)
        along = rng.standard_normal((h * k, k))[:, cluster] + rng.standard_normal((h * k, n))
        reached += int(((along >= 0) @ np.eye(k)[cluster]).min() >= n / (3 * k**3 * h**2))
    many = n_of_C3(config)
    enough = activated(h * k, k, many, many / (3 * k**3 * h**2), config.draws, rng)
    return xr.Dataset({"reached": ((), reached), "reached_many": ((), enough)})


def inside(config: Classes, bench: Bench, seed: int) -> xr.Dataset:
    """d = k^10, n = k^7, eta = 1/d^2, sigma_w^2 = eta/k^5: the share of own pairs active after one step."""
    k = config.inside
    d, n = k**10, k**7
    eta = float(d) ** -2
    stream = bench.generator("inside", seed=seed)
    problem = compact_problem(d, k, (k + 1) // 2, n, k * config.h, stream)
    net = classes_net(problem.rows, problem.mixture, math.sqrt(eta * k**-5), torch.float64)
    after = train_classes(net, problem.train, eta, 1).net
    own = problem.train.z == torch.arange(k).unsqueeze(1)
    active = (after.w @ problem.train.x.T >= 0)[own.unsqueeze(1).expand(-1, config.h, -1)]
    return xr.Dataset({"inside_active": ((), float(active.double().mean()))})
