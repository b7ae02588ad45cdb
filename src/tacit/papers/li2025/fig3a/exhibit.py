r"""Figure 3 (left): robust accuracy over the l2 radius, as intervals, of nets trained with 2 and with k labels.

Trained with 2 labels the net averages (Theorem 4.5): near f_FA, whose centres are sqrt(d/k) from the boundary.
Trained with k labels it decouples (Theorem 4.7), w_j ~ mu_j, and half the distance of two centres is sqrt(d/2). A
sample's radius is less than its centre's: it is the distance to the nearest of k/2 faces, whose depths vary by
sigma. The Bayes rule has the same, and its radii are shown for comparison.

The paper stops at T = 100 steps of 1e-3, where T eta = .1; its theorems start at T eta = Omega(1). So a claim on
the theorems' radii is outside their assumptions here, and the radii after `longer` steps are compared.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from tacit.certify import Radii, radius
from tacit.data import Samples
from tacit.lab import Bench, Claim, Expected, Outcome
from tacit.measure import critical_radius
from tacit.measure.robustness import robust_curve
from tacit.nets import BayesRule, MultiClassNet, TwoLayerNet
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

WHERE = "Section 6.2, Figure 3 (left)"
NEAR = 0.03  # relative: what the issue of this exhibit asks for
STILL = 0.03  # relative change between T and more steps
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
        bench.part(f"seed{seed}", partial(one_seed, config, bench, seed, seed == seeds[0]))
        for seed in bench.steps(seeds, "seeds")
    ]
    data = xr.concat([part[["radius"]] for part in parts], "seed").assign_coords(seed=seeds)
    for name in ("later", "even"):
        if name in parts[0]:
            data[name] = parts[0][name]
    root = math.sqrt(config.d)
    data = data.assign_coords(level=np.linspace(0, 1, LEVELS) * root)
    shares, medians = [], []
    for net in data.net.values:
        lower, upper = (pooled(data, str(net), end) for end in ("lower", "upper"))
        curve = robust_curve(lower, upper, data.level.values.tolist())
        shares.append([[at.certified.value for at in curve], [at.attacked.value for at in curve]])
        medians.append([estimate(lower), estimate(upper)])
    data["robust"] = (("net", "end", "level"), np.array(shares))
    data["critical"] = (("net", "end", "of"), np.array(medians))
    data = data.assign_coords(of=["value", "low", "high"])
    return Outcome(data, claims(data, config, bench))


def pooled(data: xr.Dataset, net: str, end: str) -> Tensor:
    """One end of the radii of all seeds' points."""
    return torch.from_numpy(data.radius.sel(net=net, end=end).values.ravel().copy())


def estimate(radii: Tensor) -> list[float]:
    """The critical radius with its bootstrap interval."""
    found = critical_radius(radii)
    return [found.value, found.low, found.high]


def one_seed(config: Curves, bench: Bench, seed: int, first: bool) -> xr.Dataset:
    """Train on one data set, and the radii of its test points.

    Where this is the first: also after longer training, and from equal counts of the clusters.
    """
    stream = bench.generator("data", seed=seed)
    mixture = mixture_of(config.d, config.k, config.k1, sigma=config.sigma, generator=stream)
    train = mixture.sample(config.n, stream, equal_counts=config.equal)
    test = mixture.sample(config.points, stream)
    bench.tell(missing_line(train, mixture))
    found, later = [], []
    for name in names(config):
        extra = config.longer if first and name in names(config)[:2] else 0
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
    if first and not config.equal:
        even = mixture.sample(config.n, stream, equal_counts=True)
        (net,) = trained(config, bench, seed, names(config)[1], even, mixture.labels, 0)
        data["even"] = (("end", "point"), stacked(radius(net, test.x, test.y)))
    return data


def trained(
    config: Curves,
    bench: Bench,
    seed: int,
    name: str,
    train: Samples,
    labels: Tensor,
    longer: int,
) -> list[TwoLayerNet | MultiClassNet]:
    """The net after T steps, and after `longer` where that is asked for, in float32."""
    stream = bench.generator(name, seed=seed)
    record = (config.T, longer) if longer else (config.T,)
    steps, dtype = max(record), torch.float32
    if name == BINARY:
        start = binary_start(config.d, config.m, config.init, config.init, stream, dtype)
        return [at.net for at in train_binary(start, train, config.eta, steps, record).history]
    h = config.h[names(config).index(name) - 1]
    multi = multi_start(config.d, labels, h, config.init, stream, dtype)
    return [at.net for at in train_classes(multi, train, config.eta, steps, record).history]


def stacked(radii: Radii) -> npt.NDArray[np.float64]:
    """Both ends."""
    return torch.stack([radii.lower, radii.upper]).numpy()


def claims(data: xr.Dataset, config: Curves, bench: Bench) -> tuple[Claim, ...]:
    """Radii against the theorems', the order of the curves, clean accuracy, and what longer training changes."""
    first = names(config)[1]
    count = config.points * config.repeats
    two, many = math.sqrt(config.d / config.k), math.sqrt(config.d / 2)
    trained_nets = data.sel(net=names(config))
    setting = (
        f"T eta = {config.T * config.eta:g}, outside the theorems' T eta >= 1"
        if (config.T * config.eta < 1)
        else f"T eta = {config.T * config.eta:g}"
    )
    made = [
        bench.judge(
            "clean",
            "every net classifies the test points (measured: the least clean accuracy of any net)",
            WHERE,
            Expected(min=0.99),
            float((trained_nets.radius.sel(end="upper") > 0).mean(("seed", "point")).min()),
            n=count,
        ),
        radius_claim("radius.2", BINARY, "upper", two, "sqrt(d/k)", setting, data, config, bench),
        radius_claim("radius.k", first, "upper", many, "sqrt(d/2)", setting, data, config, bench),
        radius_claim(
            "radius.k.certified", first, "lower", many, "sqrt(d/2)", setting, data, config, bench
        ),
        *(
            radius_claim(
                f"radius.h{h}", multi_name(config, h), "upper", many, "sqrt(d/2)", setting,
                data, config, bench,
            )
            for h in config.h[1:]
        ),
        order_claim(data, config, bench),
    ]  # fmt: skip
    made += finite_claims(data, config, bench)
    if "even" in data:
        made += [even_claim(end, many, data, config, bench) for end in ("upper", "lower")]
    if config.longer:
        made += [
            longer_claim(id, net, data, config, bench) for id, net in (("2", BINARY), ("k", first))
        ]
    return tuple(made)


def radius_claim(
    id: str,
    net: str,
    end: str,
    value: float,
    formula: str,
    setting: str,
    data: xr.Dataset,
    config: Curves,
    bench: Bench,
) -> Claim:
    """The critical radius, one end of its interval, within 3% of the theory's."""
    ends = data.critical.sel(net=net)
    measured, low, high = map(float, ends.sel(end=end))
    other = float(ends.sel(end="lower" if end == "upper" else "upper", of="value"))
    word = {"upper": "attacked", "lower": "certified"}
    against = float(data.critical.sel(net=BAYES, end="upper", of="value"))
    return bench.judge(
        id,
        f"{net}: median critical radius within 3% of {formula} (measured: {word[end]}; {setting})",
        WHERE,
        Expected(value=value, tolerance=NEAR * value),
        measured,
        n=config.points * config.repeats,
        spread=(high - low) / 2,
        because=f"{measured / value:.3f} {formula} ({word['lower' if end == 'upper' else 'upper']}: "
        f"{other / value:.3f}); the Bayes rule itself has {against / value:.3f} on these points. Clusters with "
        "more training points have longer weights, whose faces are closer (not so with --set equal=true), and "
        "where logits are small, all opposite ones are lifted together",
    )


def finite_claims(data: xr.Dataset, config: Curves, bench: Bench) -> Iterator[Claim]:
    """Both radii against the theory of first order in sigma/sqrt(d), which is that of `li2025.story`."""
    setting = Story(d=config.d, k=config.k, k1=config.k1, n=config.n, sigma=config.sigma)
    theory = predictions(setting)
    for id, net, key, text in (
        ("2", BINARY, "two", "sqrt(d/k)/sqrt(1 + sigma^2 k/n)"),
        ("k", names(config)[1], "classes", "sqrt(d/2) (1 - sigma M/sqrt(d))/sqrt(1 + sigma^2 k/n)"),
    ):
        if key not in theory:
            continue
        value, low, high = map(float, data.critical.sel(net=net, end="upper"))
        yield bench.judge(
            f"finite.{id}",
            f"{net}: median critical radius over {text}, which counts the nearest of several faces (M: the "
            "mean of the largest of as many normal numbers) and the noise that weights remember (attacked)",
            "Theorems 4.5 and 4.7, to first order in sigma/sqrt(d)",
            Expected(value=1.0, tolerance=NEAR),
            value / theory[key],
            n=config.points * config.repeats,
            spread=(high - low) / 2 / theory[key],
        )


def even_claim(end: str, value: float, data: xr.Dataset, config: Curves, bench: Bench) -> Claim:
    """The critical radius where every cluster has as many training points, on the first seed's test points."""
    found = critical_radius(torch.from_numpy(data.even.sel(end=end).values.copy()))
    word = {"upper": "attacked", "lower": "certified"}[end]
    bayes = float(data.radius.isel(seed=0).sel(net=BAYES, end="upper").median())
    return bench.judge(
        f"radius.k.equal.{word}",
        f"{names(config)[1]}, as many training points of each cluster: median critical radius within 3% of "
        f"sqrt(d/2) (measured: {word})",
        WHERE,
        Expected(value=value, tolerance=NEAR * value),
        found.value,
        n=config.points,
        spread=(found.high - found.low) / 2,
        because=f"{found.value / value:.4f} sqrt(d/2); the Bayes rule itself has {bayes / value:.3f} on these "
        "points, and the noise of n/k points that weights remember takes off a factor of sqrt(1 + k/n)",
    )


def order_claim(data: xr.Dataset, config: Curves, bench: Bench) -> Claim:
    """The certified curve of every net with k labels is right of the attacked curve of 2 labels.

    One curve is above another at every radius just where the sorted radii are larger one by one; and the least
    ratio of those tells by how much, which the least difference of two curves that both begin at 1 cannot.
    """
    least = pooled(data, BINARY, "upper").sort().values
    lead = min(
        float((pooled(data, net, "lower").sort().values / least.clamp_min(1e-300)).min())
        for net in names(config)[1:]
    )
    return bench.judge(
        "order",
        f"trained with {config.k} labels the net is more robust at every radius (measured: the least ratio, over "
        "all accuracies and h, of the certified radius up to which it is kept to the attacked one with 2 labels)",
        WHERE,
        Expected(min=1.0),
        lead,
        n=config.points * config.repeats,
    )


def longer_claim(id: str, net: str, data: xr.Dataset, config: Curves, bench: Bench) -> Claim:
    """The critical radius after more steps over that after T, on the points of the first seed."""
    before = critical_radius(
        torch.from_numpy(data.radius.isel(seed=0).sel(net=net, end="upper").values.copy())
    )
    after = critical_radius(
        torch.from_numpy(data.later.sel(later_net=net, end="upper").values.copy())
    )
    return bench.judge(
        f"longer.{id}",
        f"{net}: the radius at T = {config.T} is that of longer training (measured: attacked critical radius "
        f"after {config.longer} steps, T eta = {config.longer * config.eta:g}, over that after {config.T})",
        "Theorems 4.5 and 4.7: T eta = Omega(1)",
        Expected(value=1.0, tolerance=STILL),
        after.value / before.value,
        n=config.points,
    )


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
