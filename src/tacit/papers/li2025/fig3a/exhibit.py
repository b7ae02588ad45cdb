r"""Figure 3 (left): robust accuracy over the l2 radius, as intervals, of nets trained with 2 and with k labels.

Trained with 2 labels the net averages (Theorem 4.5): near f_FA, whose centres are sqrt(d/k) from the boundary.
Trained with k labels it decouples (Theorem 4.7), w_j ~ mu_j, and half the distance of two centres is sqrt(d/2). A
sample's radius is less than its centre's: it is the distance to the nearest of k/2 faces, whose depths vary by
sigma. The Bayes rule has the same, and its radii are shown for comparison.

The paper states orders, Omega(sqrt(d)) against O(sqrt(d/k)), and which curve is above. Medians are compared with
the theory of first order (`li2025.story`), M(q) the mean of the largest of q = k/2 standard normals:

    2 labels    sqrt(d/k) / sqrt(1 + sigma^2 k/n)
    k labels    sqrt(d/2) (1 - sigma M(q)/sqrt(d)) / sqrt(1 + sigma^2 k/n)

It stops at T = 100 steps of 1e-3, where T eta = .1; its theorems start at T eta = Omega(1). So the radii after
`longer` steps are compared. At h > 1 the net is slower, by 1/h, and falls short of this at T = 100.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from tacit.base.estimate import between, least
from tacit.certify import Radii, radius
from tacit.data import Samples
from tacit.lab import Bench, Claim, Expected, Outcome
from tacit.measure import critical_radius, mean_of, proportion
from tacit.measure.robustness import robust_curve
from tacit.nets import BayesRule
from tacit.papers._shared.assumptions import missing_line
from tacit.papers._shared.panels import mark
from tacit.papers.li2025._shared.synthetic import (
    binary_start,
    mixture_of,
    multi_start,
    train_binary,
    train_classes,
)
from tacit.papers.li2025.fig3a.settings import Curves
from tacit.papers.li2025.story.settings import Story
from tacit.papers.li2025.story.theory import predictions
from tacit.train import Descended

WHERE = "Section 6.2, Figure 3 (left)"
NEAR = 0.03  # relative
BINARY, BAYES = "2 labels", "Bayes rule"
LEVELS = 201  # radii of the curve, from 0 to sqrt(d)
MULTI = "C0", "C2", "C4", "C5", "C6"


def names(config: Curves) -> list[str]:
    """The nets, in the order of the data."""
    return [BINARY, *(multi_name(config, h) for h in config.h)]


def multi_name(config: Curves, h: int) -> str:
    """A net trained with subclass labels."""
    return f"{config.k} labels, h = {h}"


def run(config: Curves, bench: Bench) -> Outcome:
    """Radii of all nets on the data of each seed."""
    seeds = bench.seeds(config.repeats)
    parts = [
        bench.part(f"seed{seed}", partial(one_seed, config, bench, seed))
        for seed in bench.steps(seeds, "seeds")
    ]
    data = xr.concat(parts, "seed").assign_coords(seed=seeds)
    data = data.assign_coords(level=np.linspace(0, 1, LEVELS) * math.sqrt(config.d))
    shares, middles = [], []
    for net in data.net.values:
        lower, upper = (pooled(data, str(net), end) for end in ("lower", "upper"))
        curve = robust_curve(lower, upper, data.level.values.tolist())
        shares.append([[at.certified.value for at in curve], [at.attacked.value for at in curve]])
        middles.append([estimate(lower), estimate(upper)])
    data["robust"] = (("net", "end", "level"), np.array(shares))
    data["critical"] = (("net", "end", "of"), np.array(middles))
    data = data.assign_coords(of=["value", "low", "high"])
    return Outcome(data, tuple(claims(data, config, bench)))


def pooled(data: xr.Dataset, net: str, end: str) -> Tensor:
    """One end of the radii of all seeds' points."""
    return torch.from_numpy(data.radius.sel(net=net, end=end).values.ravel().copy())


def estimate(radii: Tensor) -> list[float]:
    """The critical radius with its interval."""
    found = critical_radius(radii)
    return [found.value, found.low, found.high]


def one_seed(config: Curves, bench: Bench, seed: int) -> xr.Dataset:
    """Train on one data set, and the radii of its test points; also after longer training."""
    stream = bench.generator("data", seed=seed)
    mixture = mixture_of(config.d, config.k, config.k1, sigma=config.sigma, generator=stream)
    train = mixture.sample(config.n, stream, equal_counts=config.equal)
    test = mixture.sample(config.points, stream)
    bench.tell(missing_line(train, mixture))
    found, later = [], []
    for name in names(config):
        extra = config.longer if name in names(config)[:2] else 0
        at = trained(config, bench, seed, name, train, mixture.labels, extra)
        ends = [stacked(radius(net, test.x, test.y)) for net in at]
        found.append(ends[0])
        later += ends[1:]
    found.append(stacked(radius(BayesRule(mixture), test.x, test.y)))
    data = xr.Dataset(
        {"radius": (("net", "end", "point"), np.stack(found))},
        coords={"net": [*names(config), BAYES], "end": ["lower", "upper"]},
    )
    if later:
        data["later"] = (("later_net", "end", "point"), np.stack(later))
        data = data.assign_coords(later_net=names(config)[:2])
    return data


def trained(
    config: Curves, bench: Bench, seed: int, name: str, train: Samples, labels: Tensor, longer: int
) -> list[Any]:
    """The net after T steps, and after `longer` where that is asked for, in float32.

    Where points are few, in coordinates of their own span, which descent does not leave.
    """
    stream = bench.generator(name, seed=seed)
    record = (config.T, longer) if longer else (config.T,)
    start: Any
    if name == BINARY:
        start = binary_start(config.d, config.m, config.init, config.init, stream, torch.float32)
        fit: Callable[..., Descended[Any]] = train_binary
    else:
        h = config.h[names(config).index(name) - 1]
        start = multi_start(config.d, labels, h, config.init, stream, torch.float32)
        fit = train_classes
    x = train.x.float()
    if 2 * config.n > config.d:
        return [at.net for at in fit(start, train, config.eta, max(record), record).history]
    axes = torch.linalg.qr(x.T).Q
    inside, few = replace(start, w=start.w @ axes), replace(train, x=x @ axes)
    moved = fit(inside, few, config.eta, max(record), record).history
    return [replace(at.net, w=start.w + (at.net.w - inside.w) @ axes.T) for at in moved]


def stacked(radii: Radii) -> npt.NDArray[np.float64]:
    """Both ends."""
    return torch.stack([radii.lower, radii.upper]).numpy()


def claims(data: xr.Dataset, config: Curves, bench: Bench) -> Iterator[Claim]:
    """The order of the curves, clean accuracy, the radii of first order, and what longer training changes."""
    papers = Curves(longer=0)
    same = (
        replace(config, h=papers.h, longer=0, points=papers.points, repeats=papers.repeats)
        == papers
    )
    own = "inside: the figure's own sizes" if same else "outside: sizes of our own"
    judge = bench.claims(WHERE, source="words", bar="paper: higher robust accuracy", regime=own)
    nets = names(config)
    right = (data.radius.sel(net=nets, end="upper") > 0).mean("point") >= 0.99
    found = proportion(int(right.all("net").sum()), config.repeats, over="data sets")
    text = "share of data sets where every net has 0.99 of the points right"
    our_judge = judge.but(source="ours", bar="ours: most data sets")
    yield our_judge("clean", text, Expected(min=0.5), found)
    leads = [mean_of(lead(data, net), of=len(config.h), over="data sets") for net in nets[1:]]
    text = (
        f"{config.k} labels keep every accuracy up to a larger radius than 2 labels (least ratio)"
    )
    yield judge("order", text, Expected(min=1.0), least(leads))

    steps = config.T * config.eta
    regime = f"outside: T eta = {steps:g}, where Theorems 4.5 and 4.7 start at T eta = Omega(1)"
    bar = "ours: three percent"
    our_judge = judge.but(where="Theorems 4.5 and 4.7", source="ours", bar=bar, regime=regime)
    setting = Story(d=config.d, k=config.k, k1=config.k1, n=config.n, sigma=config.sigma)
    theory = predictions(setting)
    for id, net, key, form in (
        ("2", BINARY, "two", "sqrt(d/k)/sqrt(1 + sigma^2 k/n)"),
        ("k", nets[1], "classes", "sqrt(d/2) (1 - sigma M(q)/sqrt(d))/sqrt(1 + sigma^2 k/n)"),
    ):
        before = medians(data.radius.sel(net=net))
        if key in theory:
            text = f"{net}: the median radius over {form}, to first order in sigma/sqrt(d)"
            ratio = between(*(mean_of(end, over="data sets") for end in before / theory[key]))
            yield our_judge(f"finite.{id}", text, Expected(value=1.0, tolerance=NEAR), ratio)
        if config.longer:
            after = medians(data.later.sel(later_net=net))
            text = f"{net}: the median radius after T = {config.longer} over that after T = {config.T}, attacked"
            ratio = mean_of((after / before).sel(end="upper"), over="data sets")
            yield our_judge(f"longer.{id}", text, Expected(value=1.0, tolerance=NEAR), ratio)


def medians(radii: xr.DataArray) -> xr.DataArray:
    """The critical radius of each data set, (end, seed)."""
    return radii.median("point").transpose("end", "seed")


def lead(data: xr.Dataset, net: str) -> npt.NDArray[np.float64]:
    """By how much the net's certified curve is right of the attacked one of 2 labels, for each data set.

    One curve is above another at every radius just where the sorted radii are larger one by one; and the least
    ratio of those tells by how much, which the least difference of two curves that both begin at 1 cannot.
    """
    mine, least = (
        np.sort(data.radius.sel(net=name, end=end).transpose("seed", "point").values)
        for name, end in ((net, "lower"), (BINARY, "upper"))
    )
    return (mine / least.clip(min=1e-300)).min(1)


def draw(data: xr.Dataset, config: Curves) -> Figure:
    """Robust accuracy between certificate and attack, with the theory's radii."""
    figure = Figure(figsize=(7.6, 5.0))
    axes = figure.subplots()
    styles = [(BINARY, "C3"), *zip(names(config)[1:], MULTI * len(config.h), strict=False)]
    for net, colour in styles:
        interval_curve(axes, data, net, colour)
    bayes = data.robust.sel(net=BAYES, end="upper")
    median = float(data.critical.sel(net=BAYES, end="upper", of="value"))
    label = f"the Bayes rule ({median:.1f})"
    axes.plot(data.level, bayes, color="0.6", linewidth=1, linestyle=":", label=label)
    mark(axes, math.sqrt(config.d / config.k), r"$\sqrt{d/k}$", 0.9)
    mark(axes, math.sqrt(config.d / 2), r"$\sqrt{d/2}$", 0.9)
    axes.set(xlim=(0, float(data.level[-1])), ylim=(0, 1.03), xlabel=r"$\ell_2$ radius")
    axes.set_ylabel("robust accuracy")
    axes.set_title(
        f"one data set, two kinds of labels: $k$ = {config.k}, $d$ = {config.d}, "
        f"$n$ = {config.n}, $T$ = {config.T}"
    )
    figure.legend(
        loc="outside lower center", ncols=2, title="trained with (median critical radius)"
    )
    return figure


def interval_curve(axes: Axes, data: xr.Dataset, net: str, colour: str) -> None:
    """The attacked curve, and the area down to the certified one."""
    lower, upper = data.robust.sel(net=net).transpose("end", "level").values
    ends = data.critical.sel(net=net, of="value").values
    shown = list(dict.fromkeys(f"{end:.1f}" for end in ends))
    text = f"{net} ({' to '.join(shown)})"
    axes.fill_between(data.level, lower, upper, color=colour, alpha=0.3, linewidth=0)
    axes.plot(data.level, upper, color=colour, label=text)
