"""Theorem 4.1: w_j = 4 mu_j/d, b_j = -2, v_j = y_j has margin at least 1 and survives sqrt(d)/8.

On a point of cluster q the net is y (2 + 4 <mu_q, xi>/d) with probability 1 - o(1), all other neurons off. What
is left is a sum of Gaussian tails (`laws.log_failures`), far below what a sample can show: it is held against the
proof's 2 d^(1 - ln(d)/2) in closed form. For two orthogonal means both laws are exact (`margin_law`,
`radius_law`), and at small d samples follow them. At a mean the radius is sqrt(d)/2, four times what the theorem
states, where N = 0 counts as flipped; with sign(0) = -1, the paper's reading, that is so for positive points, and
negative ones need sqrt(d/2).

The proof's "sufficiently large d" in eq. (18), sqrt(d) >= 4 sigma ln d, follows from Assumption 2.2 (Lemma A.9).

Radii are exact for orthogonal means; for means on the sphere the figure has the certified interval.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
import xarray as xr

from tacit.base.estimate import Certain, Estimate, farthest
from tacit.certify import radius
from tacit.data import Samples
from tacit.lab import Bench, Claim, Expected, Outcome
from tacit.measure import critical_radius
from tacit.nets import TwoLayerNet, frei_net
from tacit.papers._shared.assumptions import check_assumption
from tacit.papers._shared.fits import listed
from tacit.papers.frei2023._shared.laws import (
    EIGHTH,
    log_bound,
    log_failures,
    margin_law,
    off_law,
    radius_law,
)
from tacit.papers.frei2023._shared.means import small_noise, spanned_mixture
from tacit.papers.frei2023._shared.settings import Means
from tacit.papers.frei2023.thm4_1.figure import draw as draw
from tacit.papers.frei2023.thm4_1.settings import Robust

QUANTILES = np.linspace(0, 1, 401)
ATTACKED = 3000  # points with an interval (random means) or a second radius (sign(0) = -1)


def run(config: Robust, bench: Bench) -> Outcome:
    """Margins and radii by setting; failures in small dimensions."""
    settings = list(zip(config.D, config.K, config.sigma, config.means, strict=True))
    found = [
        bench.part(f"setting{i}", partial(one_setting, *s, config, bench))
        for i, s in enumerate(bench.steps(settings, "settings"))
    ]
    failures = bench.part("small", lambda: small_failures(config, bench))
    data = xr.merge([xr.concat(found, "setting"), failures])
    return Outcome(data, tuple(claims(data, config, bench)))


def one_setting(
    D: int, K: int, sigma: float, means: Means, config: Robust, bench: Bench
) -> xr.Dataset:
    """The tails of margin and radius over the proof's bound; critical radii and quantiles over sqrt(d)."""
    root, names = math.sqrt(D), (D, K, sigma, means)
    mixture = spanned_mixture(means, D, K, sigma or small_noise(D), bench.generator("means", D, K))
    net = frei_net(mixture)
    n = config.n if means == "orthogonal" else min(config.n, ATTACKED)
    radii = [
        radius(net, points.x, points.y)
        for points in mixture.stream(n, bench.generator("radius", *names))
    ]
    lower, upper = (
        torch.cat([getattr(r, end) for r in radii]) / root for end in ("lower", "upper")
    )
    points = mixture.sample(min(config.n, ATTACKED), bench.generator("strict", *names))
    found = [
        critical_radius(r, of=len(config.D)) for r in (lower, strict_radii(net, points) / root)
    ]
    quantiles = [np.quantile(r.numpy(), QUANTILES) for r in (lower, upper)]
    return xr.Dataset(
        {
            "tails": ("of", np.array(log_failures(mixture, D)) / log_bound(D)),
            "quantiles": (("side", "level"), np.stack(quantiles)),
            "critical": (("reading", "end"), [[e.value, e.low, e.high, e.n] for e in found]),
            "inside": ((), check_assumption(mixture, D).holds),
        },
        coords={
            "of": ["margin", "robust"], "side": ["lower", "upper"], "level": QUANTILES,
            "reading": ["radius", "radius.strict"], "end": ["median", "low", "high", "n"],
        },
    )  # fmt: skip


def strict_radii(net: TwoLayerNet, points: Samples) -> torch.Tensor:
    """Radii of negative points where N = 0 does not break them (sign(0) = -1): the certified lower ends."""
    negative = points.y < 0
    return radius(net, points.x[negative], points.y[negative], ties_break=False).lower


def small_failures(config: Robust, bench: Bench) -> xr.Dataset:
    """Failures of margin and radius in small dimensions, two orthogonal means, sigma = 1."""
    rows = []
    for d in config.small:
        mixture = spanned_mixture("orthogonal", d, 2, 1.0, bench.generator("unused"))
        points = mixture.sample(config.n, bench.generator("small", d))
        net = frei_net(mixture)
        radii = radius(net, points.x, points.y).upper
        low = int((net(points.x) * points.y < 1).sum())
        rows.append([low, int((radii <= EIGHTH * math.sqrt(d)).sum())])
    law = [[margin_law(d), radius_law(d)] for d in config.small]
    dims = ("d", "event")
    return xr.Dataset(
        {"failures": (dims, np.array(rows)), "law": (dims, np.array(law))},
        coords={"d": list(config.small), "event": ["margin", "radius"]},
    )


def claims(data: xr.Dataset, config: Robust, bench: Bench) -> Iterator[Claim]:
    """The theorem by exact tails, on both sides of Assumption 2.2; the radius itself; small dimensions."""
    closed = "a union bound over closed-form tails"
    judge = bench.claims(
        "Section 4, Theorem 4.1", source="formula", bar="paper: 2 d^(1 - ln(d)/2), Appendix C",
        regime="inside: Assumption 2.2 holds in every setting",
    )  # fmt: skip
    exact = np.array(config.means) == "orthogonal"
    inside = data.inside.values.astype(bool)
    for side, mine in (("inside", exact & inside), ("outside", exact & ~inside)):
        settings = "; ".join(described(i, config) for i in range(len(mine)) if mine[i])
        regime = "" if side == "inside" else "outside: Assumption 2.2 holds in none of the settings"
        for id, event in (("margin", "y N(x) < 1"), ("robust", "radius <= sqrt(d)/8")):
            if mine.any():
                least = Certain(float(data.tails.sel(of=id)[mine].min()), closed, int(mine.sum()))
                text = (
                    f"ln P({event}), by exact tails, over ln of the bound, the least of: {settings}"
                )
                yield judge(
                    f"{id}.{side}", text, Expected(min=1.0), least, regime=regime, any_size=True
                )
    judge = judge.but(where="Appendix C", source="ours", bar="ours: one percent")
    for id, theory, text in (
        ("radius", 1 / 2, "critical radius over sqrt(d)/2 less 1, N = 0 broken (farthest)"),
        ("radius.strict", 0.5**0.5, "the same of negative points over sqrt(d/2), sign(0) = -1 (farthest)"),
    ):  # fmt: skip
        found = data.critical.sel(reading=id).values[exact & inside]
        if len(found):
            ratios = [
                Estimate(v / theory, a / theory, b / theory, int(n))
                for v, a, b, n in found.tolist()
            ]
            yield judge(id, text, Expected(max=0.01), farthest(ratios))

    judge = judge.but(regime="outside: two clusters at sigma = 1 need d >= 1,415,388")
    text = f"share of failures less its exact law, farthest off (d = {listed(config.small)}, sigma = 1, k = 2)"
    yield judge("small.law", text, Expected(max=0.01), off_law(data.failures, config.n, data.law),
                source="check", bar="ours: one percent of the points")  # fmt: skip


def described(i: int, config: Robust) -> str:
    """A setting in words."""
    noise = f"{config.sigma[i]:g}" if config.sigma[i] else "1/sqrt(d)"
    return f"d = {config.D[i]:,}, k = {config.K[i]}, sigma = {noise}"
