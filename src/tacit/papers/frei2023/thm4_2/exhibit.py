r"""Theorem 4.2: one z = eta u, u = sum_q y_q mu_q, flips almost all test points of every trained net.

What to expect. The flow from a small start merges the neurons of each sign; on orthogonal means its limit is
about

    N(x) = relu(<S+, x>)/d - relu(<S-, x>)/d,     S+- the sum of the means of a class,

with margin 1 at every mean. At x = mu_r + xi, both neurons on, y N(x - y eta u) = 1 + y <u, xi>/d - eta k: the
flip comes at eta = (1 + y <u, xi>/d)/k, whatever the share c of the rarer class, and

    ||eta u|| ~ N(sqrt(d/k), sigma^2).

So the median is sqrt(d/k), the theorem's order with constant 1 and without c; 1 - eps of the points need
sqrt(d/k) + sigma Phi^-1(1 - eps); and at a mean no perturbation is shorter, for |N'| = ||u||/d where both are on.
The proof's eta_1 + eta_2 (Lemma D.7) is near 9/(ck), 18 times longer at c = 1/2: longer than sqrt(2d), the way to
another mean, unless k > 162. eta_1 alone (Lemma D.6) only turns the opposite neurons on.

The crossing along z is computed exactly (`trained.flip_etas`), the radius in all directions by `certify.radius`.
"""

import math
from functools import partial

import numpy as np
import torch
import xarray as xr

from tacit.attack.universal import broken_by, frei2023_z
from tacit.certify import radius
from tacit.data import Samples
from tacit.lab import Bench, Outcome
from tacit.nets import TwoLayerNet
from tacit.papers._shared.assumptions import assumption_line, check_assumption, missing_line
from tacit.papers.frei2023._shared.trained import (
    Setting,
    flip_etas,
    flowed,
    mixture_for,
    proof_eta,
    seen_by,
    start,
)
from tacit.papers.frei2023.thm4_2.claims import claims
from tacit.papers.frei2023.thm4_2.figure import draw as draw
from tacit.papers.frei2023.thm4_2.settings import Flipped
from tacit.papers.frei2023.thm4_2.sweeps import SWEEPS, every, sweep
from tacit.papers.frei2023.thm4_2.transfer import transfer

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
TWICE = 2.0  # times sqrt(d/k): one z for every point
RADII = 200  # test points whose exact radius is compared with the length along z


def run(config: Flipped, bench: Bench) -> Outcome:
    """Every setting of the sweeps with every seed; then transfer."""
    settings, seeds = every(config), bench.seeds(config.repeats)
    told = []
    for name in (*SWEEPS, "random"):
        lines = (
            assumption_line(mixture_for(s, bench.generator("means"))) for s in sweep(config, name)
        )
        told.append(next((line for line in lines if line), None))
    for line in dict.fromkeys(told):
        bench.tell(line)
    pairs = [(i, setting, seed) for i, setting in enumerate(settings) for seed in seeds]
    cells = [
        bench.part(f"setting{i}.{seed}", partial(measure, setting, config, bench, seed))
        for i, setting, seed in bench.steps(pairs, "nets")
    ]
    rows = [cells[at : at + len(seeds)] for at in range(0, len(cells), len(seeds))]
    data = xr.concat([xr.concat(row, "seed") for row in rows], "setting")
    data = data.assign_coords(seed=seeds, level=list(LEVELS))
    draws = bench.seeds(config.draws)
    moved = [
        bench.part(f"transfer.{seed}", partial(transfer, config, bench, seed))
        for seed in bench.steps(draws, "transfer")
    ]
    example = bench.part("example", partial(example2, config, bench))
    data = xr.merge([data, xr.concat(moved, "draw"), example])
    return Outcome(data, claims(data, config, bench))


def example2(config: Flipped, bench: Bench) -> xr.Dataset:
    """Median lengths along z with k = sqrt(d) random means, of `draws` data sets."""
    found = [
        [measure(one, config, bench, seed).length[LEVELS.index(0.5)] * one.unit
         for seed in bench.seeds(config.draws)]
        for one in bench.steps(sweep(config, "random"), "random means")
    ]  # fmt: skip
    return xr.Dataset({"example": (("dimension", "draw"), np.array(found, dtype=float))})


def measure(setting: Setting, config: Flipped, bench: Bench, seed: int) -> xr.Dataset:
    """One net: lengths along z over sqrt(d/k), the proof's z, and the exact radius."""
    stream = bench.generator("data", *setting.named, seed=seed)
    mixture = mixture_for(setting, stream)
    samples = mixture.sample(setting.n, stream)
    bench.tell(missing_line(samples, mixture))
    first = bench.generator("start", *setting.named, seed=seed)
    begin = start(setting.D, setting.h, setting.init, first)
    whole, log_loss = flowed(begin, samples, setting, bench.device)
    u = frei2023_z(mixture)
    along, size = whole.w @ u, float(u.norm())
    net, seen = seen_by(whole, mixture)
    test = seen.sample(config.tests, bench.generator("test", *setting.named, seed=seed))
    etas = flip_etas(net, test.x, test.y, along)
    # the theorem speaks of nets whose loss fell below 1/n
    fitted = log_loss < -math.log(setting.n)
    length = etas.numpy() * size / setting.unit if fitted else np.full(len(etas), np.nan)
    proof = proof_eta(mixture, setting.D)
    attempts = (TWICE * setting.unit / size, proof) if fitted else (math.nan, math.nan)
    return xr.Dataset(
        {
            "length": (("level",), np.quantile(length, LEVELS)),
            "error": ((), float((etas == 0).double().mean())),
            "flipped": (("by",), [flipped_share(net, test, along, eta) for eta in attempts]),
            "proof": ((), proof * size / setting.unit),
            "ratio": ((), radius_ratio(net, test, length * setting.unit)),
            "fitted": ((), fitted),
            "inside": ((), check_assumption(mixture).holds),
        },
        coords={"by": ["twice", "D.7"]},
    )


def flipped_share(net: TwoLayerNet, test: Samples, along: torch.Tensor, eta: float) -> float:
    """Of the points that are classified right, the share that x - y eta u breaks; NaN for no eta."""
    if math.isnan(eta):
        return math.nan
    right = net(test.x) * test.y > 0
    # in coordinates of span(w), u is any vector with the same products
    u = torch.linalg.lstsq(net.w, along.unsqueeze(1), driver="gelsd").solution.squeeze(1)
    broken = broken_by(net, test.x[right], test.y[right], eta * u, signed=True)
    return float(broken.double().mean()) if len(broken) else math.nan


def radius_ratio(net: TwoLayerNet, test: Samples, length: np.ndarray) -> float:
    """The median of exact radius / length along z over some points, where two neurons are left; else NaN."""
    if len(net.v) != 2 or float(net.v.prod()) >= 0 or np.isnan(length).any():
        return math.nan
    few = slice(RADII)
    found = radius(net, test.x[few], test.y[few]).upper.numpy()
    keep = length[few] > 0
    return float(np.median(found[keep] / length[few][keep]))
