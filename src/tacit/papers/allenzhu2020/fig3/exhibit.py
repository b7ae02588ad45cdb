r"""Section 3's warm-up: what linear, polynomial and thresholded models can do, in closed form.

With M unitary only t = M^T x = z + N(0, sigma_x^2/d I) matters; by a change of signs w* is all ones. Models:

    linear        sum_i t_i                                        radius |sum_i t_i| / sqrt(d)
    thresholded   sum_i t_i 1[|t_i| >= b],  b = 1/(2 sqrt(k))      by `certify.thresholded`, to a thousandth
    relu          sum_i relu(t_i - b) - relu(-t_i - b)             likewise

**Every linear model.** For any u, E <u, z>^2 = ||u||^2 E[z_i^2], so by Chebyshev the radius of a linear model
exceeds r with probability at most E[z_i^2]/r^2: at most half of the points outlive sqrt(2 E[z_i^2]).

**What no model can do.** A point x = Mz that a perturbation takes to M z', z' another value of the hidden vector
with the other label, cannot be right at both: the distance from z to such a z' bounds the radius of every model
that is right on clean data. A near z' is found by the same search (`certify.menus`); any of them is a bound.

**Polynomials.** The logistic risk of q(t) = sum_e sum_i u_ei t_i^e is convex in u, and the law of (t, y) is
unchanged when coordinates are permuted, or all signs turned: the best q has one coefficient for each odd power,
and is fitted as such. Products of coordinates are not tried.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from tacit.certify.menus import Menus, shortest_squares
from tacit.certify.thresholded import l2_radius
from tacit.data.sparse_coding import HiddenLaw, SparseCoding, two_level_law
from tacit.lab import Bench, Outcome
from tacit.nets.smoothed import chance
from tacit.nets.thresholded import kept
from tacit.papers.allenzhu2020.fig3.claims import FEW, MANY, claims
from tacit.papers.allenzhu2020.fig3.figure import draw as draw
from tacit.papers.allenzhu2020.fig3.settings import WarmUp

MODELS = ("linear", "thresholded", "relu", "any")
DIRECTIONS = ("w*", "gaussian", "ten features")
NUMBERS = 4_000_000  # of a table that is held at once
LIMIT_ROUNDS = (
    5  # a nearest z of the other label is a sum of numbers that must fit: a near one will do
)
AXES = 10  # features of the sparse linear model


def run(config: WarmUp, bench: Bench) -> Outcome:
    """Radii without noise, accuracies with it, for each d; the law of ||z||_0."""
    parts = []
    for d in bench.steps(config.d, "dimensions"):
        found = bench.part(f"radii-{d}", partial(radii, config, bench, d))
        noisy = bench.part(f"noise-{d}", partial(noise, config, bench, d))
        parts.append(xr.merge([found, noisy]))
    data = xr.concat(parts, xr.Variable("d", list(config.d)))
    data["k"] = ("d", [config.k(d) for d in config.d])
    data["outside"] = ("fact", [outside(config, d) for d in config.fact])
    data = data.assign_coords(fact=list(config.fact))
    return Outcome(data, claims(data, config, bench))


def law_of(config: WarmUp, d: int) -> HiddenLaw:
    """The law of z_i."""
    return two_level_law(d, config.k(d))


def hidden(config: WarmUp, d: int) -> SparseCoding:
    """A model of which only z is drawn: its M has a shape and no memory."""
    M = torch.zeros(1, dtype=torch.float64).expand(d, d)
    return SparseCoding(M, torch.ones(d, dtype=torch.float64), law_of(config, d), config.k(d))


def outside(config: WarmUp, d: int) -> float:
    """Pr[||z||_0 is not in [FEW k, MANY k]], of a binomial law."""
    count, k = binom(d, law_of(config, d).nonzero), config.k(d)
    return float(count.cdf(math.ceil(FEW * k) - 1) + count.sf(math.floor(MANY * k)))


def radii(config: WarmUp, bench: Bench, d: int) -> xr.Dataset:
    """Radii of all models at sigma_x = 0, and of other linear ones; points of a chunk at a time."""
    stream, k = bench.generator("radii", d), config.k(d)
    model, law, b = hidden(config, d), law_of(config, d), 1 / (2 * math.sqrt(k))
    gaussian = torch.randn(d, generator=stream, dtype=torch.float64)
    ends, shares = [], []
    left = config.points
    while left:
        z, y = model.hidden(min(left, max(1, NUMBERS // d)), stream)
        left -= len(z)
        t, one = y.unsqueeze(1) * z, z.new_ones(d)
        tried = (one, gaussian, torch.where(torch.arange(d) < AXES, one, 0.0))
        shares.append(torch.stack([t @ u / u.norm() for u in tried]).clamp_min(0))
        hard, soft = (l2_radius(t, one, b, kind) for kind in (True, False))
        limit = label_radius(t, law)
        linear = shares[-1][0]
        ends.append(
            torch.stack([torch.stack([linear, hard.lower, soft.lower, limit[0]]),
                         torch.stack([linear, hard.upper, soft.upper, limit[1]])])
        )  # fmt: skip
    return xr.Dataset(
        {
            "radius": (("end", "model", "point"), torch.cat(ends, 2).numpy()),
            "linear": (("direction", "point"), torch.cat(shares, 1).numpy()),
            "second": ((), law.second_moment),
        },
        coords={
            "end": ["lower", "upper"],
            "model": list(MODELS),
            "direction": list(DIRECTIONS),
        },
    )


def label_radius(
    t: Float[Tensor, "n d"], law: HiddenLaw
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """How far the nearest hidden vector of the other label or of sum 0 is, where t = y z has sum t >= 0.

    Each coordinate stays in its part of {0} u [1/sqrt(k), 1] (and its negative), or goes to a lower one.
    """
    need = t.sum(1)
    values = [(p.low, p.high) for p in law.pieces]
    parts = torch.tensor(sorted([(-hi, -lo) for lo, hi in values] + [(0.0, 0.0), *values])).to(t)
    # zeros are all alike: as many as are ever needed, then the others
    step = min(low for low, _ in values)
    zeros = min(int(need.max() / step) + 1, t.shape[1])
    active = int((t != 0).sum(1).max())
    found = t.gather(1, t.abs().sort(1, descending=True).indices[:, :active])
    c = torch.cat([t.new_zeros(len(t), zeros), found], 1).unsqueeze(-1)
    low, high = parts[:, 0], parts[:, 1]
    hair = 1e-12
    own = (c >= low - hair) & (c <= high + hair)
    lower = (high < c - hair) | own
    near = torch.where(lower, (c - high).clamp_min(0), torch.inf)
    far = torch.where(lower, (c - low).clamp_min(0), torch.inf)
    # the own part comes first
    order = (~own).to(torch.int8).sort(dim=-1, stable=True).indices
    near, far = near.gather(-1, order), far.gather(-1, order)
    one = torch.ones_like(near)
    # padding, a second zero among the active, is like any other zero and may stay
    menus = Menus(near, far, one, 0 * one, ordered=zeros)
    squares = shortest_squares(menus, need.clamp_min(0), LIMIT_ROUNDS)
    # a sum of 0 is at the boundary already
    lower_end, upper_end = (torch.where(need > 0, s.sqrt(), 0.0) for s in squares)
    return lower_end, upper_end


def noise(config: WarmUp, bench: Bench, d: int) -> xr.Dataset:
    """How many of the samples each model gets right at each sigma_x; of the linear one the chance."""
    k = config.k(d)
    model, b = hidden(config, d), 1 / (2 * math.sqrt(k))
    sums: dict[str, list[Tensor]] = {"fit": [], "test": []}
    seen: list[Tensor] = []
    labels: dict[str, list[Tensor]] = {"fit": [], "test": []}
    signal = []
    for use in ("fit", "test"):
        stream, left = bench.generator("noise", d, use), config.samples
        while left:
            z, y = model.hidden(min(left, max(1, NUMBERS // d)), stream)
            left -= len(z)
            g = torch.randn(z.shape, generator=stream, dtype=z.dtype)
            powers = []
            models = []
            for sigma in config.sigma_x:
                t = torch.add(z, g, alpha=sigma / math.sqrt(d))
                powers.append(power_sums(t, config.degrees))
                if use == "test":
                    both = (y * kept(t, b, hard).sum(1) > 0 for hard in (True, False))
                    models.append(torch.stack(list(both)))
            sums[use].append(torch.stack(powers))
            labels[use].append(y)
            if use == "test":
                seen.append(torch.stack(models))
                signal.append(y * z.sum(1))
    (x, y), (test, truth) = (
        (torch.cat(sums[use], 2), torch.cat(labels[use])) for use in ("fit", "test")
    )
    right = [
        [polynomial_right(x[s, : e + 1], y, test[s, : e + 1], truth) for e in range(len(config.degrees))]
        for s in range(len(config.sigma_x))
    ]  # fmt: skip
    sizes = torch.tensor(config.sigma_x, dtype=torch.float64).unsqueeze(1)
    linear = chance(torch.cat(signal) / sizes)
    counts = torch.cat(seen, 2).sum(2)
    return xr.Dataset(
        {
            "polynomial": (("sigma_x", "degree"), np.array(right)),
            "linear_chance": (("sigma_x", "sample"), linear.numpy()),
            "thresholded": (("sigma_x",), counts[:, 0].numpy()),
            "relu": (("sigma_x",), counts[:, 1].numpy()),
        },
        coords={"sigma_x": list(config.sigma_x), "degree": list(config.degrees)},
    )


def power_sums(t: Float[Tensor, "n d"], degrees: Sequence[int]) -> Float[Tensor, "e n"]:
    """sum_i t_i^e for ascending odd e."""
    square, power, at, found = t.square(), t.clone(), 1, []
    for e in degrees:
        while at < e:
            power.mul_(square)
            at += 2
        found.append(power.sum(1))
    return torch.stack(found)


def polynomial_right(
    x: Float[Tensor, "e n"], y: Float[Tensor, " n"], test: Float[Tensor, "e m"], truth: Float[Tensor, " m"]
) -> int:  # fmt: skip
    """How many test points the fitted combination of power sums gets right."""
    scale = x.square().mean(1, keepdim=True).sqrt()
    model = LogisticRegression(C=1e6, fit_intercept=False, max_iter=1000)
    model.fit((x / scale).T.numpy(), y.numpy())
    score = torch.from_numpy(model.coef_[0]) @ (test / scale)
    return int((truth * score > 0).sum())
