r"""Section 5's open questions: clusters past linear separability, and separable data without clusters.

**Many clusters.** "We conjecture that our results hold even for a significantly larger number of clusters, such
that the data is not linearly separable." Here k means are uniform on the sphere of radius sqrt(d), and labels
are fair coins. By Cover (1965) an affine hyperplane splits k points in general position for
2 sum_{i <= d} binom(k-1, i) of the 2^k ways to label them: nearly always while k < 2(d+1), nearly never beyond.
Each data set's own answer is a linear program whose certificate is checked. All is outside Assumption 2.2.

**No clusters.** "Do ReLU networks that satisfy the KKT conditions generalize at least as well as max-margin
linear classifiers?" x is Gaussian or uniform on the sphere, y = sign(x_1), |x_1| >= gamma. The linear rule of
the largest margin is found exactly, by its dual: with a bias that counts in the norm, as in Problem (2), and
without (the law needs none).

Nets are where the flow of the exponential loss ends, at a finite loss: how far from a KKT point is told by the
residual, with its slackness. From large weights the residual stays large, and those nets are shown apart.
"""

import math
import warnings
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr
from jaxtyping import Float
from scipy.optimize import linprog
from torch import Tensor, nn

from tacit.attack import first_crossing, minimal
from tacit.base.shapes import Numbers, Rows
from tacit.certify import crown_radius, nearest_radius
from tacit.certify.nearest.radius import least_distance
from tacit.data import ClusterMixture, cluster_mixture, sphere_centres
from tacit.errors import RunError
from tacit.lab import Bench, Outcome
from tacit.measure import kkt_residual, log_loss
from tacit.measure.margins import margins
from tacit.nets import Linear, NearestNeighbour, TwoLayerNet
from tacit.papers._shared.assumptions import assumption_line, missing_line
from tacit.papers.frei2023._shared.means import small_noise
from tacit.papers.frei2023.beyond.claims import claims
from tacit.papers.frei2023.beyond.figure import draw as draw
from tacit.papers.frei2023.beyond.settings import RULES, SLACK, Beyond, Law
from tacit.train import FlowWarning, Until, gradient_flow

EVALUATIONS = 4000
TOLERANCE = 0.05
RAYS = 1000  # test points that are moved along u
PROVED = 1e-9  # a margin, relative to the largest coordinate, that is told from none


def run(config: Beyond, bench: Bench) -> Outcome:
    """Both questions, data set by data set."""
    by_k = [
        bench.part(f"k{K}", partial(clustered, K, config, bench))
        for K in bench.steps(config.K, "cluster counts")
    ]
    pairs = [(law, n) for law in config.laws for n in config.n]
    plain = [
        bench.part(f"{law}-{n}", partial(unclustered, law, n, config, bench))
        for law, n in bench.steps(pairs, "laws and sample sizes")
    ]
    by_law = [
        xr.concat(plain[start : start + len(config.n)], "n")
        for start in range(0, len(plain), len(config.n))
    ]
    data = xr.merge([xr.concat(by_k, "k"), xr.concat(by_law, "law")])
    data = data.assign_coords(
        k=list(config.K), n=list(config.n), law=list(config.laws), rule=list(RULES)
    )
    return Outcome(data, claims(data, config, bench))


def clustered(K: int, config: Beyond, bench: Bench) -> xr.Dataset:
    """K clusters: one net for each repeat, all in one flow."""
    mixtures, trains, tests = [], [], []
    n = K * max(math.ceil(math.log(config.D) ** 2), 1)
    for seed in bench.seeds(config.repeats):
        stream = bench.generator("clusters", K, seed=seed)
        mixture = coin_mixture(K, config, stream)
        mixtures.append(mixture)
        trains.append(mixture.sample(n, stream, equal_counts=True))
        tests.append(mixture.sample(config.tests, stream))
        bench.tell(missing_line(trains[-1], mixture))
    bench.tell(assumption_line(mixtures[0]))
    x, y = (torch.stack([getattr(train, name) for train in trains]) for name in ("x", "y"))
    start = starts(config.D, config.h, config.small, config.repeats, bench.generator("start", K))
    nets = trained(start, x, y, config.log_loss)
    found = []
    for net, mixture, train, test in zip(nets, mixtures, trains, tests, strict=True):
        few = slice(config.points)
        rule = NearestNeighbour(train.x, train.y)
        near = test.x[few], test.y[few]
        found.append(
            {
                **fitted(net, train.x, train.y),
                "separable": separable(train.x, train.y),
                "error": wrong(net, test.x, test.y),
                "along_u": along_u(net, mixture, test.x[:RAYS], test.y[:RAYS]).numpy(),
                "lower": crown_radius(net, *near).numpy(),
                "upper": minimal(net, *near).radius.numpy(),
                "radius_1nn": nearest_radius(rule, *near).upper.numpy(),
            }
        )
    stream = bench.generator("draws", K)
    means = (coin_mixture(K, config, stream) for _ in range(config.draws))
    split = sum(separable(mixture.centres, mixture.labels) for mixture in means)
    dims = {"along_u": ("ray",), **dict.fromkeys(("lower", "upper", "radius_1nn"), ("point",))}
    data = {
        name: (("seed", *dims.get(name, ())), [row[name] for row in found]) for name in found[0]
    }
    return xr.Dataset({**data, "split": ((), split)})


def unclustered(law: Law, n: int, config: Beyond, bench: Bench) -> xr.Dataset:
    """n points: the linear rule, and a net for each start and data set; data sets in one flow."""
    sets, tests = [], []
    for seed in bench.seeds(config.sets):
        stream = bench.generator("plain", law, n, seed=seed)
        sets.append(wide_points(law, n, config, stream))
        tests.append(wide_points(law, config.tests, config, stream))
    x, y = (torch.stack(both) for both in zip(*sets, strict=True))
    linear = [
        [
            wrong(max_margin(*points, bias=b), *test)
            for points, test in zip(sets, tests, strict=True)
        ]
        for b in (True, False)
    ]
    rows = []
    for i, (h, init) in enumerate(zip(config.widths, config.inits, strict=True)):
        stream = bench.generator("plain start", law, n, i)
        nets = trained(starts(config.D, h, init, config.sets, stream), x, y, config.log_loss)
        rows.append(
            [
                {**fitted(net, *points), "error": wrong(net, *test)}
                for net, points, test in zip(nets, sets, tests, strict=True)
            ]
        )
    data: dict[str, Any] = {
        f"plain_{name}": (("start", "set"), [[one[name] for one in row] for row in rows])
        for name in rows[0][0]
    }
    return xr.Dataset({**data, "linear_error": (("rule", "set"), linear)})


def coin_mixture(K: int, config: Beyond, generator: torch.Generator) -> ClusterMixture:
    """Independent means and fair labels, both classes present; in law the positive clusters may come first."""
    K1 = 0
    while not 0 < K1 < K:
        K1 = int(torch.randint(2, (K,), generator=generator).sum())
    sd = config.sigma or small_noise(config.D)
    return cluster_mixture(sphere_centres(K, config.D, math.sqrt(config.D), generator), K1, sd)


def wide_points(
    law: Law, n: int, config: Beyond, generator: torch.Generator
) -> tuple[Rows, Numbers]:
    """n points of the law with |x_1| >= gamma, by rejection, both classes present; y = sign(x_1)."""
    kept: list[Tensor] = []
    while sum(map(len, kept)) < n or len(torch.cat(kept)[:n, 0].sign().unique()) < 2:
        x = torch.randn(2 * n, config.D, generator=generator, dtype=torch.float64)
        if law == "sphere":
            x *= math.sqrt(config.D) / x.norm(dim=1, keepdim=True)
        kept.insert(0, x[x[:, 0].abs() >= config.gamma])
    x = torch.cat(kept)[:n]
    return x, x[:, 0].sign()


def starts(d: int, h: int, init: float, E: int, generator: torch.Generator) -> TwoLayerNet:
    """E nets with Gaussian weights and biases of sd `init`."""
    shapes = ((E, h, d), (E, h), (E, h))
    w, v, b = (init * torch.randn(*s, generator=generator, dtype=torch.float64) for s in shapes)
    return TwoLayerNet(w, v, b)


def trained(
    start: TwoLayerNet, x: Float[Tensor, "E n D"], y: Float[Tensor, "E n"], log_loss: float
) -> list[TwoLayerNet]:
    """Where the flow of each member ends, merged."""
    until = Until(log_loss=log_loss, evaluations=EVALUATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlowWarning)  # whether a net fits is a claim of its own
        flowed = gradient_flow(start, x, y, until=until, tolerance=TOLERANCE)
    return [flowed.member(i) for i in range(len(x))]


def fitted(net: TwoLayerNet, x: Rows, y: Numbers) -> dict[str, float]:
    """Log-loss + log n (Theorem 2.1 begins below 0), and the residual of the KKT conditions."""
    kkt = kkt_residual(net, x, y, slack=SLACK)
    depth = float(log_loss(margins(net, x, y), "exp")) + math.log(len(x))
    return {"depth": depth, "stationarity": kkt.stationarity, "slackness": kkt.slackness}


def wrong(rule: TwoLayerNet | Linear, x: Rows, y: Numbers) -> float:
    """The share of points with y f <= 0."""
    return float((y * rule(x) <= 0).double().mean())


def along_u(net: TwoLayerNet, mixture: ClusterMixture, x: Rows, y: Numbers) -> Numbers:
    """The length of the shortest -y eta u that breaks each point, u = sum_q y_q mu_q; inf beyond sqrt(d)."""
    u = mixture.labels @ mixture.centres
    u = u * math.sqrt(mixture.D) / u.norm()
    return first_crossing(net, x, y, -y.unsqueeze(1) * u)


def separable(x: Rows, y: Numbers) -> bool:
    """Whether some y (<w, x> + b) is positive at every point, by a linear program, its answer proved.

    max t with y_i (<w, x_i> + b) >= t and |w|, |b| <= 1 in each coordinate. t > 0 is its own proof. Otherwise the
    multipliers lambda >= 0, sum lambda = 1, give t <= ||sum_i lambda_i y_i (x_i, 1)||_1 for every w and b.
    """
    rows = (y.unsqueeze(1) * nn.functional.pad(x, (0, 1), value=1.0)).numpy()
    count, columns = rows.shape
    found = linprog(
        np.append(np.zeros(columns), -1.0),
        A_ub=np.hstack([-rows, np.ones((count, 1))]),
        b_ub=np.zeros(count),
        bounds=[(-1, 1)] * columns + [(None, None)],
    )
    size = PROVED * np.abs(rows).max()
    if float((rows @ found.x[:-1]).min()) > size:
        return True
    multipliers = np.clip(-found.ineqlin.marginals, 0, None)
    if float(np.abs(multipliers @ rows).sum()) > size * multipliers.sum():
        raise RunError(
            "a linear program proved neither that the data is separable nor that it is not"
        )
    return False


def max_margin(x: Rows, y: Numbers, *, bias: bool) -> Linear:
    """The linear rule of the largest margin on separable points: min ||w||^2 + b^2, y (<w, x> + b) >= 1.

    The bias counts in the norm, as it does in Problem (2); without one, b = 0.
    """
    seen = nn.functional.pad(x, (0, 1), value=1.0) if bias else x
    normals: npt.NDArray[np.float64] = (-y.unsqueeze(1) * seen).numpy()
    found = torch.from_numpy(least_distance(normals, -np.ones(len(normals))))
    return Linear(found[:-1].clone(), float(found[-1])) if bias else Linear(found)
