"""Lemma 2.1: the sign of u'x, u = sum_q y_q mu_q, is the label but for a probability of 2 d^(1 - ln(d)/2).

For given means the error has an exact law: y u'x is Gaussian in each cluster,

    P(y u'x <= 0) = (1/K) sum_j Q( y_j u'mu_j / (sigma ||u||) )

(orthogonal means: Q( sqrt(d) / (sigma sqrt(K)) )).

Inside Assumption 2.2 that is far below the bound and below anything a sample can show, so the law is
compared with the bound, and samples only with the law, outside, where they show errors; there the law passes the
bound where sigma sqrt(K) is of the order of sqrt(d).

Section 4.1.2 reads the same rule as w = u/d: w.h.p. 0 < y w'x <= O(1), and ||w|| = Omega(sqrt(k/d)), so that
|u'x|/||u||, the distance to its boundary, is O(sqrt(d/k)). Appendix B's chain, read upwards, has the constants:

    y u'x <= d + k (p + sigma sqrt(d) ln d) <= (11 d + 1)/10,    ||u||^2 >= k d - k^2 p >= 9/10 k d.

They are held against exact laws for orthogonal means, and for means that all lean to one side as far as the
assumption admits: these have the largest and the least y u'mu and ||u||.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.base.estimate import Certain
from tacit.data import ClusterMixture
from tacit.lab import Bench, Claim, Expected, Judge, Outcome
from tacit.measure import proportion
from tacit.nets import linear_rule
from tacit.papers._shared.assumptions import check_assumption, most_clusters
from tacit.papers._shared.fits import listed
from tacit.papers._shared.panels import THEORY, interval_dots, rows
from tacit.papers.frei2023._shared.laws import log_above, log_bound, log_error, off_law
from tacit.papers.frei2023._shared.means import (
    largest_overlap,
    leaning_mixture,
    small_noise,
    spanned_mixture,
)
from tacit.papers.frei2023._shared.settings import Means
from tacit.papers.frei2023.lemma2_1.settings import Separator

MEANS: tuple[Means, ...] = ("orthogonal", "sphere")
GRADIENT = math.sqrt(0.9)  # of ||w|| / sqrt(k/d)
LENGTH = (
    1.1 + 1e-3
) / GRADIENT  # of y u'x/||u|| over sqrt(d/k): 1/(10 d) is 1e-3 at most, d >= 100
NAMES = {"orthogonal": "orthogonal", "sphere": "random"}


def run(config: Separator, bench: Bench) -> Outcome:
    """Count errors outside the assumption; evaluate law and bound inside it."""
    data = xr.merge([bench.part("outside", lambda: outside(config, bench)), inside(config, bench)])
    return Outcome(data, tuple(claims(data, config, bench)))


def count_errors(mixture: ClusterMixture, n: int, generator: torch.Generator) -> int:
    """Errors of sign(u'x) among n samples in the coordinates of span(means); u'x = 0 is an error."""
    rule = linear_rule(mixture)
    chunk = max(2_000_000 // mixture.K, 1)
    return sum(int((rule(s.x) * s.y <= 0).sum()) for s in mixture.stream(n, generator, chunk))


def outside(config: Separator, bench: Bench) -> xr.Dataset:
    """Errors counted and ln of the law, by means, K and sigma."""
    shape = (len(MEANS), len(config.K), len(config.sigma))
    errors, law, admitted = np.zeros(shape, int), np.zeros(shape), np.zeros(shape, bool)
    for i in bench.steps(list(np.ndindex(shape)), "settings"):
        means, K, sigma = MEANS[i[0]], config.K[i[1]], config.sigma[i[2]]
        mixture = spanned_mixture(means, config.D, K, sigma, bench.generator("means", means, K))
        errors[i] = count_errors(mixture, config.n, bench.generator("outside", means, K, sigma))
        law[i] = log_error(mixture)
        admitted[i] = check_assumption(mixture, config.D).holds
    dims = ("means", "K", "sigma")
    return xr.Dataset(
        {"errors": (dims, errors), "log_law": (dims, law), "admitted": (dims, admitted)},
        coords={"means": list(MEANS), "K": list(config.K), "sigma": list(config.sigma)},
    )


def inside(config: Separator, bench: Bench) -> xr.Dataset:
    """Law and bound at the largest K that the assumption admits, orthogonal means; Section 4.1.2 beside it."""
    found = []
    for d in config.inside:
        K = most_clusters(d, small_noise(d))
        mixture = spanned_mixture("orthogonal", d, K, small_noise(d), bench.generator("unused"))
        every = [mixture, *leaning(d, K, small_noise(d))]
        assert all(check_assumption(one, d).holds for one in every)
        found.append([K, log_error(mixture), log_bound(d), *section412(every, d)])
    names = ("most_K", "inside_law", "bound", "margin", "length", "gradient")
    columns = np.array(found).T
    return xr.Dataset(
        {name: ("d", column) for name, column in zip(names, columns, strict=True)},
        coords={"d": list(config.inside)},
    )


def leaning(d: int, K: int, sigma: float) -> list[ClusterMixture]:
    """2 and K means that lean to either side as far as the assumption admits, but for rounding."""
    return [
        leaning_mixture(d, k, sigma, side * largest_overlap(d, k, sigma) * (1 - 1e-9))
        for k in sorted({2, K})
        for side in (1, -1)
    ]


def section412(every: list[ClusterMixture], d: int) -> tuple[float, float, float]:
    """Of all means the largest ln P(y w'x > 11/10 + 1/(10 d)) and ln P(y u'x/||u|| > LENGTH sqrt(d/k)), and the
    least ||w|| / sqrt(k/d)."""
    sizes = [float(linear_rule(one).u.norm()) for one in every]
    margin = max(log_above(one, (11 * d + 1) / 10) for one in every)
    length = max(
        log_above(one, LENGTH * math.sqrt(d / one.K) * size)
        for one, size in zip(every, sizes, strict=True)
    )
    least = min(size / math.sqrt(one.K * d) for one, size in zip(every, sizes, strict=True))
    return margin, length, least


def claims(data: xr.Dataset, config: Separator, bench: Bench) -> Iterator[Claim]:
    """The bound inside, by the exact law; that counts follow the law."""
    gaussian = "y u'x is Gaussian in each cluster: its error is a closed form"
    judge = bench.claims(
        "Section 2, Lemma 2.1", source="formula", bar="paper: 2 d^(1 - ln(d)/2)",
        regime="inside: the largest k that Assumption 2.2 admits, sigma = 1/sqrt(d)",
    )  # fmt: skip
    least = Certain(float((data.inside_law / data.bound).min()), gaussian, len(config.inside))
    text = f"ln of the exact error over ln of the bound, the least of d = {listed(config.inside)}"
    yield judge("bound", text, Expected(min=1.0), least, any_size=True)

    yield from linear_claims(data, config, judge)

    admitted = int(data.admitted.sum())
    side = f"outside: {admitted} of {data.admitted.size} settings at d = {config.D} satisfy Assumption 2.2"
    judge = judge.but(source="check", bar="ours: one percent of the points", regime=side)
    off = off_law(data.errors, config.n, np.exp(data.log_law))
    text = f"counted errors less the exact law, the farthest off of {data.errors.size} settings"
    yield judge("law", text, Expected(max=0.01), off)


def linear_claims(data: xr.Dataset, config: Separator, judge: Judge) -> Iterator[Claim]:
    """Section 4.1.2: y w'x = O(1), ||w|| = Omega(sqrt(k/d)), a flip at O(sqrt(d/k)); Appendix B's numbers."""
    judge = judge.but(
        where="Section 4.1.2, the linear model", source="order",
        regime="inside: orthogonal means, and means that lean as far as Assumption 2.2 admits",
    )  # fmt: skip
    of, n = f"(d = {listed(config.inside)})", len(config.inside)
    law = "y u'x is Gaussian in each cluster: a closed form"
    for id, what, bar in (
        ("margin", "ln P(y w'x > 11/10 + 1/(10 d))", "derived: Appendix B's chain and probability"),
        ("length", f"ln P(y u'x/||u|| > {LENGTH:.4g} sqrt(d/k))",
         "derived: 11/10 over sqrt(9/10), and Lemma 2.1's probability"),
    ):  # fmt: skip
        text = f"{what}, exactly, over ln of Lemma 2.1's bound, the least {of}"
        found = Certain(float((data[id] / data.bound).min()), law, n)
        yield judge(id, text, Expected(min=1.0), found, bar=bar, any_size=True)
    text = f"||w|| over sqrt(k/d), the least {of}"
    found = Certain(float(data.gradient.min()), "a formula in the means", n)
    yield judge("gradient", text, Expected(min=GRADIENT), found, any_size=True,
                bar="derived: k d - k^2 p >= 9/10 k d, by the assumption")  # fmt: skip


def draw(data: xr.Dataset, config: Separator) -> Figure:
    """Counts on the exact law outside; law and bound inside."""
    figure = Figure(figsize=(10.5, 4))
    left, right = figure.subplots(1, 2)
    law_panel(left, data, config)
    bound_panel(right, data)
    return figure


def law_panel(axes: Axes, data: xr.Dataset, config: Separator) -> None:
    """Counted errors by the exact law for the same means: the diagonal."""
    law = np.exp(data.log_law.values)
    seen = law[data.errors.values > 0]
    ends = np.array([seen.min(initial=0.1) / 3, 1])
    axes.plot(ends, ends, **THEORY, label="exact law")
    axes.axhline(
        math.exp(log_bound(config.D)), **{**THEORY, "linestyle": ":"}, label="the lemma's bound"
    )
    for index, means in enumerate(MEANS):
        errors = data.errors.values[index]
        found = [proportion(int(e), config.n) for e in errors.flat]
        shown = errors.flatten() > 0
        interval_dots(
            axes, law[index].flatten()[shown], rows(found)[:, shown], index, f"{NAMES[means]} means"
        )
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    axes.set_xlabel(r"law: mean of $Q(y_j u^\top\mu_j/(\sigma\Vert u\Vert))$ over the clusters")
    axes.set_ylabel(r"counted $P(y\,u^\top x\leq 0)$")
    axes.set_title(f"outside the assumption: $d={config.D}$, $k\\leq{max(config.K)}$")
    axes.legend(loc="upper left")


def bound_panel(axes: Axes, data: xr.Dataset) -> None:
    """-log10 of law and bound at the largest K."""
    d = data.d.values
    axes.plot(d, -data.bound / math.log(10), **THEORY, label=r"bound $2d^{1-\ln(d)/2}$")
    axes.plot(d, -data.inside_law / math.log(10), "o", color="C0", label="exact law, largest $k$")
    for at, K, law in zip(d, data.most_K.values, data.inside_law.values, strict=True):
        axes.annotate(
            f"$k={int(K)}$",
            (at, -law / math.log(10)),
            (0, 7),
            textcoords="offset points",
            ha="center",
        )
    axes.set(xscale="log", yscale="log", ylim=(2, float(-data.inside_law.min()) * 3))
    axes.set(xlim=(d.min() / 1.6, d.max() * 1.6), xlabel="$d$")
    axes.set_ylabel(r"$-\log_{10}P(y\,u^\top x\leq 0)$ (higher: fewer errors)")
    axes.set_title(r"inside the assumption, $\sigma=1/\sqrt{d}$")
    axes.legend(loc="center right", bbox_to_anchor=(1, 0.45))
