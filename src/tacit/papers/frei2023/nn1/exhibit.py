"""The remark on 1-nearest-neighbour: at sigma = 1/sqrt(d) it needs a perturbation of the order sqrt(d).

Points of a cluster are O(1) apart, clusters sqrt(2d): 1-NN's boundary runs about halfway, at sqrt(d/2), while a
net that averages features breaks at sqrt(d/k), sqrt(k/2) times earlier. Both are measured exactly on the same
data: n = k ln^2 d training points, orthogonal means, fresh test points. f_FA, built from the class means of the
training points, stands for the trained network of the remark; `frei2023.thm4.2` trains it.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.certify import nearest_radius, radius
from tacit.data import Samples, sqrt_d_mixture
from tacit.lab import Bench, Claim, Expected, Outcome
from tacit.measure import critical_radius
from tacit.nets import NearestNeighbour, TwoLayerNet
from tacit.papers._shared.assumptions import check_assumption
from tacit.papers._shared.fits import exponent, listed
from tacit.papers._shared.panels import THEORY, interval_dots, rows
from tacit.papers.frei2023._shared.means import least_dimension, small_noise
from tacit.papers.frei2023.nn1.settings import Neighbour

WHERE = "Section 4, remark on 1-nearest-neighbour"
RULES = ("1-NN", "f_FA")


def run(config: Neighbour, bench: Bench) -> Outcome:
    """Exact radii of both rules by dimension."""
    settings = [(D, config.K) for D in config.D] + [(config.at, K) for K in config.clusters]
    found = [
        bench.part(f"d{D}-k{K}", partial(one_setting, D, K, config, bench))
        for D, K in bench.steps(settings, "settings")
    ]
    by_d = xr.concat(found[: len(config.D)], "d").assign_coords(d=list(config.D))
    by_k = xr.concat(found[len(config.D) :], "k").assign_coords(k=list(config.clusters))
    data = by_d.assign({f"{name}_k": by_k[name] for name in ("radius", "train", "inside")})
    return Outcome(data, tuple(claims(data, config, bench)))


def one_setting(D: int, K: int, config: Neighbour, bench: Bench) -> xr.Dataset:
    """Radii of the test points under both rules, over the same training points."""
    mixture = sqrt_d_mixture(D, K, K // 2, small_noise(D))
    n = min(math.ceil(K * math.log(D) ** 2), config.most)
    train = mixture.sample(n, bench.generator("train", D, K), equal_counts=True)
    test = mixture.sample(config.tests, bench.generator("test", D, K), equal_counts=True)
    nearest = nearest_radius(NearestNeighbour(train.x, train.y), test.x, test.y).upper
    averaging = radius(averages(train), test.x, test.y).upper
    return xr.Dataset(
        {
            "radius": (("rule", "point"), torch.stack([nearest, averaging]).numpy()),
            "train": ((), n),
            "inside": ((), check_assumption(mixture).holds),
        },
        coords={"rule": list(RULES)},
    )


def averages(train: Samples) -> TwoLayerNet:
    """f_FA of the training points: relu(<sum of the clusters' means, x>), positive minus negative."""
    counts = torch.bincount(train.z).double()
    means = torch.zeros(len(counts), train.x.shape[1], dtype=torch.float64)
    means.index_add_(0, train.z, train.x)
    means /= counts.unsqueeze(1)
    positive = torch.zeros_like(counts).index_copy_(0, train.z, train.y) > 0
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)
    return TwoLayerNet(torch.stack([means[positive].sum(0), means[~positive].sum(0)]), signs)


def claims(data: xr.Dataset, config: Neighbour, bench: Bench) -> Iterator[Claim]:
    """Exponents, the ratio, and 1-NN's constant."""
    first = least_dimension(config.K, small_noise)
    side = f"inside Assumption 2.2 for d >= {first:,}, outside below"
    d = list(config.D)
    n = config.tests * len(d)
    for rule in RULES:
        slope = exponent(d, data.radius.sel(rule=rule).values)
        yield bench.judge(
            f"exponent.{rule}",
            f"exponent of d in the radius of {rule}, d = {d[0]} to {d[-1]}, k = {config.K} ({side})",
            WHERE,
            Expected(value=0.5, tolerance=0.02),
            slope.value,
            spread=slope.spread,
            n=n,
        )
    ratios = (data.radius_k.sel(rule="1-NN") / data.radius_k.sel(rule="f_FA")).values
    medians = [critical_radius(torch.from_numpy(row)) for row in ratios]
    over = np.array([e.value for e in medians]) / np.sqrt(np.array(config.clusters) / 2)
    worst = int(np.abs(over - 1).argmax())
    inside = [k for k, holds in zip(config.clusters, data.inside_k.values, strict=True) if holds]
    least = (data.radius.sel(rule="1-NN").values / np.sqrt(d)[:, None]).min()
    yield bench.judge(
        "ratio",
        f"1-NN's radius over f_FA's is sqrt(k/2) at d = {config.at}, k = {listed(config.clusters)} (inside "
        f"Assumption 2.2 for k = {listed(inside) or 'none'}; measured: the ratio to it, farthest off; f_FA "
        "stands for the trained net)",
        WHERE,
        Expected(value=1.0, tolerance=0.05),
        float(over[worst]),
        spread=medians[worst].spread / math.sqrt(config.clusters[worst] / 2),
        n=config.tests,
    )
    yield bench.judge(
        "order",
        f"1-NN's radius is of the order sqrt(d): at least 0.6 sqrt(d) at every test point "
        f"(measured: the least; {side})",
        WHERE,
        Expected(min=0.6),
        float(least),
        n=n,
    )


def draw(data: xr.Dataset, config: Neighbour) -> Figure:
    """Radii by dimension with sqrt(d/2) and sqrt(d/k), and their ratio with sqrt(k/2)."""
    figure = Figure(figsize=(10.5, 4))
    left, right = figure.subplots(1, 2)
    radius_panel(left, data, config)
    ratio_panel(right, data, config)
    return figure


def radius_panel(axes: Axes, data: xr.Dataset, config: Neighbour) -> None:
    """Median radii of both rules."""
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
        radii = torch.from_numpy(data.radius.sel(rule=rule).values)
        slope = exponent(list(config.D), radii.numpy())
        name = "1-NN" if rule == "1-NN" else "$f_{FA}$"
        label = rf"{name}: $d^{{\,{slope.value:.4f}\pm{slope.spread:.4f}}}$"
        interval_dots(axes, d, rows(map(critical_radius, radii)), index, label)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(d, [f"{x:g}" for x in d])
    axes.set_yticks([5, 10, 20, 40, 80], ["5", "10", "20", "40", "80"])
    axes.minorticks_off()
    axes.set(ylim=(theory[1][0] * 0.9, theory[0][-1] * 1.3), xlabel="$d$", ylabel="critical radius")
    axes.set_title(rf"exact radii, $k={config.K}$, $\sigma=1/\sqrt{{d}}$")
    axes.legend(loc="upper left")


def ratio_panel(axes: Axes, data: xr.Dataset, config: Neighbour) -> None:
    """The ratio of the radii by k; filled where Assumption 2.2 holds."""
    k = np.array(config.clusters, dtype=float)
    ratios = torch.from_numpy(
        (data.radius_k.sel(rule="1-NN") / data.radius_k.sel(rule="f_FA")).values
    )
    ends = rows(map(critical_radius, ratios))
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
    axes.set(xlabel="clusters $k$", ylabel="radius of 1-NN / radius of $f_{FA}$")
    axes.set_title(f"how much more robust 1-NN is, $d={config.at}$")
    axes.legend(loc="upper left")
