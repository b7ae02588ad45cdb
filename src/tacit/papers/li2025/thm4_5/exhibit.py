r"""Theorem 4.5 in sweeps of d, k, n and time: weights near class averages, and a radius of the order sqrt(d/k).

None of the settings is inside Assumption 4.3 (d >= k^10, n >= k^7, eta <= d^-2), nor is a time in the
theorem's window, 1/eta <= T <= exp(sqrt k) up to logarithms in the exponent: with eta = d^-2 and d = k^10 that
needs k^20 < exp(sqrt k), k above 46,000. What is tested is the trend.

**What to expect at finite n.** With margins balanced, a neuron is lambda (S_s/d + nu), S_s the sum of the
centres of its class and nu the noise of its |J_s| n/k own points, remembered with weight k/n each. So,
half of the clusters being positive,

    sqrt(d) ||w - lambda S_s/d|| / lambda  =  sqrt(d) ||nu||  ->  sqrt(|J_s| k/n)  =  k / sqrt(2n)

which falls with n alone: at fixed n no d makes it small (L4 of Lemma B.25; L2, the spread of lambda over
clusters, and L3, the other class's features, add to it and do fall). The noises make the two averages longer by
sqrt(1 + k/n), a fresh point has margin lambda, and so its distance to the boundary is lambda / ||w_+ - w_-||,
that is

    sqrt(d/k) / sqrt(1 + k/n).

The bias gathers what lambda gathers over each own cluster, once a point in place of d: b = lambda |J_s| / d.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from tacit.attack import li2025_rho, minimal
from tacit.certify import radius
from tacit.data import ClusterMixture
from tacit.lab import Bench, Outcome
from tacit.nets import TwoLayerNet
from tacit.papers._shared.assumptions import missing_line
from tacit.papers.li2025._shared.compact import Problem, binary_net, compact_problem
from tacit.papers.li2025._shared.synthetic import train_binary
from tacit.papers.li2025.sweeps.settings import Sweep
from tacit.papers.li2025.sweeps.sweep import Cell, course, swept
from tacit.papers.li2025.thm4_5.claims import claims
from tacit.papers.li2025.thm4_5.figure import draw as draw


def run(config: Sweep, bench: Bench) -> Outcome:
    """Train every setting with every seed and measure what the theorem speaks of."""
    axes: dict[str, Sequence[float]] = {name: getattr(config, name) for name in ("d", "k", "n")}
    base = Cell(config.d0, config.k0, config.n0)
    data = swept(
        axes,
        base,
        lambda cell: config.time if cell == base else (1.0,),
        lambda _: 1.0,
        partial(measure, config, bench),
        bench,
        bench.seeds(config.repeats),
    )
    data["certified"] = bench.part("certified", partial(certified, config, bench, base)).certified
    return Outcome(data, claims(data, config, bench))


def certified(config: Sweep, bench: Bench, base: Cell) -> xr.Dataset:
    """The base's attacked radii over certified ones, point by point: the attack of the sweeps is the shortest."""
    problem, net = binary_problem(config, bench, base, bench.seed)
    (trained,) = course(net, train_binary, problem.train, config.eta, config.steps, (1.0,))
    test = problem.mixture.sample(config.points, bench.generator("certified"))
    found = trained.double()
    attacked = minimal(found, test.x, test.y).radius
    ratio = attacked / radius(found, test.x, test.y).lower
    return xr.Dataset({"certified": ("point", ratio[attacked > 0].numpy())})


def binary_problem(
    config: Sweep, bench: Bench, cell: Cell, seed: int
) -> tuple[Problem, TwoLayerNet]:
    """The data of one setting and the net it starts from, in float32."""
    stream = bench.generator("binary", cell.name, seed=seed)
    problem = compact_problem(cell.d, cell.k, cell.k // 2, cell.n, 2 * config.m, stream)
    bench.tell(missing_line(problem.train, problem.mixture))
    return problem, binary_net(problem.rows, config.sigma_w, stream, torch.float32)


def measure(
    config: Sweep, bench: Bench, cell: Cell, times: Sequence[float], seed: int
) -> xr.Dataset:
    """One setting at each of the times."""
    problem, net = binary_problem(config, bench, cell, seed)
    mixture = problem.mixture
    test = mixture.sample(config.test, bench.generator("test", cell.name, seed=seed))
    few = slice(config.points)
    rho = -test.y.unsqueeze(1) * li2025_rho(mixture)
    rows = []
    for trained in course(net, train_binary, problem.train, config.eta, config.steps, times):
        found = trained.double()
        lam, away = averaged(found, mixture)
        spread, others, noise = parts_of(found, mixture, lam)
        reach = minimal(found, test.x[few], test.y[few]).radius
        rows.append(
            {
                "lam": lam,
                "close": float(away.max()) / lam,
                "spread": spread / lam,
                "others": others / lam,
                "noise": noise / lam,
                "bias": float(trained.b.abs().max()) if trained.b is not None else 0.0,
                "clean": float((found(test.x) * test.y > 0).double().mean()),
                "radius": float(reach.median()),
                "flipped": float((found(test.x + rho) * test.y <= 0).double().mean()),
                "halved": float((found(test.x + rho / 2) * test.y <= 0).double().mean()),
            }
        )
    return xr.Dataset({name: ("time", np.array([row[name] for row in rows])) for name in rows[0]})


def averaged(net: TwoLayerNet, mixture: ClusterMixture) -> tuple[float, Float[Tensor, " h"]]:
    """lambda, the mean over neurons of <w, S_s>/|J_s|, and sqrt(d) ||w - lambda S_s/d|| of each neuron."""
    own = (net.v.sign().unsqueeze(1) == mixture.labels).to(net.w)
    sums = own @ mixture.centres
    d = float(mixture.centres[0].square().sum())
    lam = float(((net.w * sums).sum(1) / own.sum(1)).mean())
    return lam, math.sqrt(d) * (net.w - lam / d * sums).norm(dim=1)


def parts_of(net: TwoLayerNet, mixture: ClusterMixture, lam: float) -> tuple[float, float, float]:
    """Lemma B.25's L2, L3 and the rest (L4, and L1): sqrt(d) times the lengths, the largest of a neuron each.

    L2: own coefficients <w, mu_j> off lambda. L3: those of the other class. The rest lies off the centres.
    """
    own = net.v.sign().unsqueeze(1) == mixture.labels
    d = float(mixture.centres[0].square().sum())
    along = net.w @ mixture.centres.T
    off = math.sqrt(d) * (net.w - along @ mixture.centres / d)
    pieces = (torch.where(own, along - lam, 0.0), torch.where(own, 0.0, along), off)
    spread, others, noise = (float(piece.norm(dim=1).max()) for piece in pieces)
    return spread, others, noise
