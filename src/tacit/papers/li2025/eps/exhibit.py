r"""Lemmas B.7 to B.26 and C.10 to C.26 at sizes where their eps is small.

    eps = max{2 ln N / (sqrt N - ln N), 4 k^2 ln d / sqrt d, k^2/n},   N = n/k points a cluster      (App. B.1)

**What makes it small.** The second term falls with d, the third with n, and the first with N alone, slowly: it
is 1 at N = 290, .1 at N = 50,000, .01 at 1.07e7. So few clusters, many points, any d beyond 10^8 or so.

**How so many points can be followed.** Gradient descent sees inner products only. Over d, those of two noises,
or of a noise and a centre, are of the order 1/sqrt(d), at most 4 ln d / sqrt(d) in the event of Proposition
A.6. In f they add up to k lambda 4 ln d / sqrt d at most: 2e-4 at d = 10^16, where we leave them out (`apart`).
Then a point is its cluster, the size of its noise, and its products with the first weights: two independent
Gaussians, of the centre and of the noise. A step costs h n instead of h n^2. A second setting keeps all
products (`exact`, in the coordinates of `compact`): what is about these products (B.11 to B.14, B.25, B.26) is
judged there.

**Time.** The first growing steps pass the start, which here is the largest that Assumption 4.3 allows: its
weights see sqrt(2d) sigma_w = sqrt(2/d) k^-2.5 at a point, and a step of descent moves lambda by 1/(4 d m k) or
so (1/(2 d h k) with k labels). So it takes of the order of sqrt(d) k^-1.5 steps for each neuron of a label until
the start is forgotten, not one as Lemmas B.1 and C.5 have it, and still only d^-3/2 of 1/eta = d^2. The first
steps have size eta; then they grow with the time that has passed, as a flow's may.

**What is set aside.** A neuron that no point of an own cluster activates at the start may stay off (`thm4_7`).
The lemmas assume that this does not happen (Propositions A.12, C.3): such draws are made again, and counted
(`redrawn`). Readings are taken once a decade of t.
"""

import math
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr

from tacit.lab import Bench, Outcome
from tacit.papers._shared.assumptions import missing_line
from tacit.papers.li2025._shared.coefficients import (
    ClassDynamics,
    Dynamics,
    Net,
    State,
    class_dynamics_of,
    dynamics_of,
    followed,
)
from tacit.papers.li2025._shared.compact import binary_net, classes_net, compact_problem
from tacit.papers.li2025._shared.lemmas import NETS
from tacit.papers.li2025._shared.readings import first_begun, watched
from tacit.papers.li2025.eps.claims import claims, sizes_of_start
from tacit.papers.li2025.eps.figure import draw as draw
from tacit.papers.li2025.eps.settings import Small

PLAIN = 8  # steps of size eta at the start
QUIET_STRIDE = 0.5
LOOKS = 1  # a decade
DRAWS = 100


def run(config: Small, bench: Bench) -> Outcome:
    """Both nets, with noises apart and with all products, in several trainings each."""
    parts = []
    for net in NETS:
        for size in ("apart", "exact"):
            found = [
                bench.part(f"{net}.{size}.{seed}", partial(course, config, bench, net, size, seed))
                for seed in bench.steps(bench.seeds(config.repeats), f"{net}, {size}")
            ]
            joined = xr.concat(found, "seed").rename(time=f"time_{size}")
            parts.append(joined.rename({name: f"{net}_{size}_{name}" for name in joined.data_vars}))
    parts.append(bench.part("starts", partial(largest_starts, config, bench)))
    data = xr.merge(parts).assign_coords(seed=bench.seeds(config.repeats))
    return Outcome(data, claims(data, config, bench))


def start_size(d: float, k: int) -> tuple[float, float]:
    """eta = 1/d^2, and sigma_w of sigma_w^2 = eta/k^5."""
    eta = float(d) ** -2
    return eta, math.sqrt(eta * float(k) ** -5)


def largest_starts(config: Small, bench: Bench) -> xr.Dataset:
    """sqrt(d) ||w(0)|| of 2k neurons, the longest of each start, at the largest start that is allowed."""
    d, _ = sizes_of_start(config)
    _, sigma_w = start_size(d, config.k)
    draws = []
    for seed in bench.seeds(config.repeats):
        stream = bench.generator("largest start", seed=seed)
        rng = np.random.default_rng(int(torch.randint(2**62, (), generator=stream)))
        draws.append(math.sqrt(d * rng.chisquare(d, 2 * config.k).max()) * sigma_w)
    return xr.Dataset({"largest_start": ("start", np.array(draws))})


def apart(config: Small, bench: Bench, net: str, stream: torch.Generator) -> tuple[Net, float]:
    """The setting whose noises are orthogonal; and eta."""
    d, k, n = float(config.d), config.k, config.n
    eta, sigma_w = start_size(d, k)
    rng = np.random.default_rng(int(torch.randint(2**62, (), generator=stream)))
    width = k if net == "two" else config.h
    h = 2 * width if net == "two" else k * width
    cluster = rng.integers(k, size=n)
    z = torch.nn.functional.one_hot(torch.from_numpy(cluster), k).double()
    along = rng.standard_normal((h, k))[:, cluster] + rng.standard_normal((h, n))
    fields: dict[str, Any] = {
        "z": z,
        "feature_size": torch.full((k,), d, dtype=torch.float64),
        "noise_size": torch.from_numpy(rng.chisquare(d, n)),
        "first": torch.from_numpy(sigma_w * math.sqrt(d) * along),
        "features": z.T.contiguous(),
        "noises": None,
        "span": None,
    }
    if net == "classes":
        return ClassDynamics(**fields, width=width), eta
    y = torch.where(torch.from_numpy(cluster) < config.k1, 1.0, -1.0).double()
    v = torch.tensor([1 / width] * width + [-1 / width] * width, dtype=torch.float64)
    b = torch.from_numpy(sigma_w * rng.standard_normal(h))
    return Dynamics(**fields, y=y, v=v, first_b=b), eta


def exact(config: Small, bench: Bench, net: str, stream: torch.Generator) -> tuple[Net, float]:
    """The setting with all products; and eta."""
    d, k = config.d_exact, config.k
    eta, sigma_w = start_size(d, k)
    h = 2 * k if net == "two" else k * config.h
    problem = compact_problem(d, k, config.k1, config.n_exact, h, stream)
    bench.tell(missing_line(problem.train, problem.mixture))
    if net == "two":
        start = binary_net(problem.rows, sigma_w, stream, torch.float64)
        return dynamics_of(start, problem.mixture, problem.train), eta
    classes = classes_net(problem.rows, problem.mixture, sigma_w, torch.float64)
    return class_dynamics_of(classes, problem.mixture, problem.train), eta


def course(config: Small, bench: Bench, net: str, size: str, seed: int) -> xr.Dataset:
    """One training: what the lemmas speak of, at LOOKS moments a decade; at the end, fresh noise."""
    stream = bench.generator(size, net, seed=seed)
    made = apart if size == "apart" else exact
    draws = (made(config, bench, net, stream) for _ in range(DRAWS))
    redrawn, (problem, eta) = first_begun(draws, lambda draw: draw[0])
    steps = followed(problem, eta, PLAIN, config.late, config.stride, QUIET_STRIDE)
    data, end = watched(problem, steps, config.late / eta, LOOKS)
    data["redrawn"] = ((), redrawn)
    if problem.span is not None:
        data["fresh"] = ((), fresh(config, bench, problem, end, net, seed))
    return data


def fresh(config: Small, bench: Bench, problem: Net, at: State, net: str, seed: int) -> float:
    """The largest |<w, xi>| over neurons and fresh noises: standard Gaussians of the compact coordinates."""
    w = problem.rebuilt(at)
    stream = bench.generator("fresh", net, seed=seed)
    noise = torch.randn(config.fresh, w.shape[1], generator=stream, dtype=torch.float64)
    return float((noise @ w.T).abs().max())
