"""The remark on 1-nearest-neighbour: at sigma = 1/sqrt(d) it needs a perturbation of the order sqrt(d).

Points of a cluster are O(1) apart, clusters sqrt(2d): 1-NN's boundary runs about halfway, at sqrt(d/2), while the
trained net breaks at sqrt(d/k), sqrt(k/2) times earlier. Both are measured exactly on the same data: n = k ln^2 d
training points, orthogonal means, fresh test points. The net is trained as in `frei2023.thm4.2`; its neurons
merge into two, so that its radii are exact too. Both classify a fresh point correctly w.h.p.: that is counted on
`fresh` points a data set, which cost no radius.

Two inputs of different labels are sqrt(2 + 2 sigma^2) sqrt(d) apart, so a perturbation of that length breaks any
classifier with a small error (Section 4): the farthest point of either rule is held against it.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.base.estimate import farthest, least
from tacit.base.estimate import most as largest
from tacit.certify import nearest_radius, radius
from tacit.lab import Bench, Claim, Expected, Judge, Outcome
from tacit.measure import mean_of, proportion
from tacit.nets import NearestNeighbour
from tacit.papers._shared.assumptions import check_assumption, most_clusters
from tacit.papers._shared.fits import exponent, listed
from tacit.papers._shared.panels import THEORY, interval_dots, rows
from tacit.papers.frei2023._shared.means import least_dimension, small_noise
from tacit.papers.frei2023._shared.trained import Setting, flowed, mixture_for, start
from tacit.papers.frei2023.nn1.settings import Neighbour

RULES = ("1-NN", "net")
RIGHT = 0.99


def run(config: Neighbour, bench: Bench) -> Outcome:
    """Critical radii of both rules by dimension and by the number of clusters, for each data set."""
    settings = [(D, config.K) for D in config.D] + [(config.at, K) for K in config.clusters]
    found = [
        bench.part(f"d{D}-k{K}", partial(one_setting, D, K, config, bench))
        for D, K in bench.steps(settings, "settings")
    ]
    by_d = xr.concat(found[: len(config.D)], "d").assign_coords(d=list(config.D))
    by_k = xr.concat(found[len(config.D) :], "k").assign_coords(k=list(config.clusters))
    data = by_d.assign({f"{name}_k": by_k[name] for name in ("radius", "inside")})
    return Outcome(data, tuple(claims(data, config, bench)))


def one_setting(D: int, K: int, config: Neighbour, bench: Bench) -> xr.Dataset:
    """The median and the largest radius of both rules over test points, and how many fresh ones are right."""
    setting = Setting(D, K, K // 2, small_noise(D), init=1e-6, log_loss=-50.0, h=20)
    shape = (len(RULES), config.repeats)
    medians, longest, right = np.empty(shape), np.empty(shape), np.empty(shape, int)
    for i, seed in enumerate(bench.seeds(config.repeats)):
        stream = bench.generator("data", D, K, seed=seed)
        mixture = mixture_for(setting, stream)
        train, test = mixture.sample(setting.n, stream), mixture.sample(config.tests, stream)
        net, _ = flowed(start(D, setting.h, setting.init, stream), train, setting, bench.device)
        neighbour = NearestNeighbour(train.x, train.y)
        radii = (
            nearest_radius(neighbour, test.x, test.y).upper,
            radius(net, test.x, test.y).upper,
        )
        medians[:, i] = [float(r.median()) for r in radii]
        longest[:, i] = [float(r.max()) for r in radii]
        fresh = mixture.sample(config.fresh, bench.generator("fresh", D, K, seed=seed))
        right[:, i] = [int((fresh.y * rule(fresh.x) > 0).sum()) for rule in (neighbour, net)]
    inside = check_assumption(mixture).holds
    return xr.Dataset(
        {
            "radius": (("rule", "seed"), medians),
            "longest": (("rule", "seed"), longest),
            "right": (("rule", "seed"), right),
            "inside": ((), inside),
        },
        coords={"rule": list(RULES), "seed": bench.seeds(config.repeats)},
    )


def claims(data: xr.Dataset, config: Neighbour, bench: Bench) -> Iterator[Claim]:
    """Exponents, which the remark bounds from one side; 1-NN's constant, and how much earlier the net breaks."""
    first, over = least_dimension(config.K, small_noise), "data sets"
    d, k = list(config.D), list(config.clusters)
    judge = bench.claims(
        "Section 4, remark on 1-nearest-neighbour", source="order", bar="ours: two percent of a unit",
        regime=f"{'inside' if min(d) >= first else 'outside'}: k = {config.K} is admitted from d = {first:,} on",
    )  # fmt: skip
    for rule, name, expected in (
        ("1-NN", "1-NN", Expected(min=0.5, tolerance=0.02)),
        ("net", "the trained net", Expected(max=0.5, tolerance=0.02)),
    ):
        text = f"exponent of d in the radius of {name} (d = {listed(d)}, k = {config.K})"
        slope = exponent(d, data.radius.sel(rule=rule).values, over=over)
        yield judge(f"exponent.{rule}", text, expected, slope)
    halves = data.radius.sel(rule="1-NN").values / np.sqrt(np.array(d) / 2)[:, None]
    off = farthest(mean_of(row, of=len(d), over=over) for row in halves)
    text = "1-NN's radius over sqrt(d/2) less 1, half of the way between two means (farthest)"
    bar = f"derived: noise of length 1 over the length sqrt(d) of a mean, d = {min(d)}"
    yield judge("constant", text, Expected(max=min(d) ** -0.5), off, source="ours", bar=bar)

    yield from word_claims(data, config, judge)

    most = most_clusters(config.at, small_noise(config.at))
    side = f"{'inside' if max(k) <= most else 'outside'}: d = {config.at} admits k <= {most}"
    judge = judge.but(regime=side, source="ours")
    ratio = (data.radius_k.sel(rule="1-NN") / data.radius_k.sel(rule="net")).values
    text = (
        f"exponent of k in 1-NN's radius over the trained net's (d = {config.at}, k = {listed(k)})"
    )
    slope = exponent(k, ratio, over=over)
    yield judge("exponent.k", text, Expected(value=0.5, tolerance=0.02), slope)
    theory = ratio / np.sqrt(np.array(k) / 2)[:, None]
    off = farthest(mean_of(row, of=len(k), over=over) for row in theory)
    text = "that ratio over sqrt(k/2) less 1 (farthest)"
    yield judge("ratio", text, Expected(max=0.05), off, bar="ours: five percent")


def word_claims(data: xr.Dataset, config: Neighbour, judge: Judge) -> Iterator[Claim]:
    """Both rules are right w.h.p.; neither withstands more than the distance of two inputs."""
    sets = data.sizes["d"] * data.sizes["seed"]
    for rule, name in (("1-NN", "1-NN"), ("net", "the trained net")):
        counts = data.right.sel(rule=rule).values.flat
        share = least(proportion(int(c), config.fresh, of=sets) for c in counts)
        text = f"share of fresh points that {name} has right, the worst of {sets} data sets"
        yield judge(f"right.{rule}", text, Expected(min=RIGHT), share, source="words",
                    bar="ours: 99% of the points for w.h.p.")  # fmt: skip
    rows = (data.longest / np.sqrt(data.d)).transpose("rule", "d", "seed").values
    rows = rows.reshape(-1, data.sizes["seed"])
    far = largest(mean_of(row, of=len(rows), over="data sets") for row in rows)
    text = "radius over sqrt(d), the farthest test point of a data set, the more robust rule at the worst d"
    bar = f"derived: two inputs of different labels are sqrt(2 + 2 sigma^2) sqrt(d) apart, d = {max(config.D)}"
    yield judge("enough", text, Expected(max=math.sqrt(2 + 2 / max(config.D))), far,
                where="Section 4, before Theorem 4.1", bar=bar)  # fmt: skip


def draw(data: xr.Dataset, config: Neighbour) -> Figure:
    """Radii by dimension with sqrt(d/2) and sqrt(d/k), and their ratio with sqrt(k/2)."""
    figure = Figure(figsize=(10.5, 4))
    left, right = figure.subplots(1, 2)
    radius_panel(left, data, config)
    ratio_panel(right, data, config)
    return figure


def radius_panel(axes: Axes, data: xr.Dataset, config: Neighbour) -> None:
    """Critical radii of both rules, the mean over data sets."""
    d = np.array(config.D, dtype=float)
    fine = np.geomspace(d.min() * 0.85, d.max() * 1.18, 50)
    theory = (np.sqrt(fine / 2), np.sqrt(fine / config.K))
    for index, (rule, text) in enumerate(
        zip(RULES, (r"$\sqrt{d/2}$", r"$\sqrt{d/k}$"), strict=True)
    ):
        axes.plot(fine, theory[index], **THEORY)
        axes.annotate(
            text,
            (fine[25], theory[index][25]),
            (-6, 5),
            textcoords="offset points",
            ha="right",
            va="bottom",
        )
        radii = data.radius.sel(rule=rule).values
        slope = exponent(list(config.D), radii)
        label = rf"{rule}: $d^{{\,{slope.value:.4f}\pm{slope.spread:.4f}}}$"
        interval_dots(axes, d, rows(map(mean_of, radii)), index, label)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(d, [f"{x:g}" for x in d])
    axes.minorticks_off()
    axes.set(ylim=(theory[1][0] * 0.9, theory[0][-1] * 1.3), xlabel="$d$", ylabel="critical radius")
    axes.set_title(rf"exact radii, $k={config.K}$, $\sigma=1/\sqrt{{d}}$")
    axes.legend(loc="upper left")


def ratio_panel(axes: Axes, data: xr.Dataset, config: Neighbour) -> None:
    """The ratio of the radii by k; filled where Assumption 2.2 holds."""
    k = np.array(config.clusters, dtype=float)
    ratios = (data.radius_k.sel(rule="1-NN") / data.radius_k.sel(rule="net")).values
    ends = rows(map(mean_of, ratios))
    fine = np.geomspace(k.min() * 0.85, k.max() * 1.18, 50)
    axes.plot(fine, np.sqrt(fine / 2), **THEORY, label=r"$\sqrt{k/2}$")
    inside = data.inside_k.values.astype(bool)
    for mine, fill, name in ((inside, "C2", "inside"), (~inside, "white", "outside")):
        if mine.any():
            label = f"measured, {name} Assumption 2.2"
            interval_dots(
                axes, k[mine], ends[:, mine], 2, label, markerfacecolor=fill, markersize=7
            )
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(k, [f"{x:g}" for x in k])
    axes.set_yticks([1, 2, 4], ["1", "2", "4"])
    axes.minorticks_off()
    axes.set(xlabel="clusters $k$", ylabel="radius of 1-NN / radius of the net")
    axes.set_title(f"how much more robust 1-NN is, $d={config.at}$")
    axes.legend(loc="upper left")
