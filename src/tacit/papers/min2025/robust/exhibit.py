"""The poster's robustness theorem, the best radius there is, and F^(p) -> Bayes as p grows.

    P( min_{|d|<=1} F^(p)(x + (sqrt(2)-delta)/2 d) y <= 0 )  <= 2(K+1) exp(-C D delta^2/(2 alpha^2 K^2)), p > 2

(The poster prints noise N(mu, alpha^2 I); its bound needs alpha^2/D, which is what is used here. Where it is far
below 1, `min2024.tails` has the probabilities that are too rare to be counted.)

**sqrt(2)/2 is the best radius.** Let k, l be clusters of different classes. The shift x -> x + mu_l - mu_k,
of length sqrt(2), maps the law of cluster k onto that of l, and at radius r >= sqrt(2)/2 the two balls share
their midpoint, on which a classifier has one sign only. So, writing R_k for a classifier's robust accuracy
on cluster k, R_k + R_l <= 1 for every such pair, and the average over K equal clusters is at most
max(K1, K2)/K: no classifier whatever is robust at r >= sqrt(2)/2 on more. `optimal` counts this for those that
are here, at 1.05 sqrt(2)/2: what they keep at most, for the radius of the Bayes rule is one of an attack.

**Close to Bayes.** p -> inf is the nearest-centre rule, which is the Bayes rule only as noise vanishes: with
noise, log-sum-exp at temperature sd^2 is matched best by a finite p. (The poster says close, not closest.)
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
import xarray as xr
from matplotlib.figure import Figure

from tacit.base.estimate import most
from tacit.certify import radius
from tacit.data import cluster_mixture, min2024_mixture, orthogonal_centres
from tacit.lab import Bench, Claim, Expected, Judge, Outcome
from tacit.measure import Estimate, critical_radius, proportion
from tacit.nets import BayesRule, average_net, centre_net
from tacit.papers.min2024.bounds.sweep import bound_claim, tails
from tacit.papers.min2025.robust.settings import Robust

WHERE = "Poster, Theorems"
BEST = math.sqrt(0.5)
HUNDREDTH = "ours: one point in a hundred"
CURVE = 121
COLOURS = ("C0", "C5", "C1", "C6")


def run(config: Robust, bench: Bench) -> Outcome:
    """Count failures at high noise, draw curves at low noise, compare with Bayes at both."""
    counts = [
        bench.part(f"ratio{ratio}", partial(count, config, bench, ratio))
        for ratio in bench.steps(config.ratio, "noise levels")
    ]
    data = xr.concat(counts, "ratio").assign_coords(ratio=list(config.ratio))
    data = data.merge(bench.part("curves", lambda: curves(config, bench)))
    return Outcome(data, tuple(claims(data, config, bench)))


def claims(data: xr.Dataset, config: Robust, bench: Bench) -> Iterator[Claim]:
    """The bound where it can fail, what is kept about sqrt(2)/2, and how F^(p) and the Bayes rule differ."""
    judge = bench.claims(
        WHERE, source="formula", bar="derived: C = 1/2 is what the Gaussian tail gives",
        regime="inside: with noise alpha^2/D, which the bound needs, for the printed alpha^2",
    )  # fmt: skip
    K, points, top = config.K, config.points, max(config.p)
    text = f"F^({min(config.p):g}) survives (sqrt(2)-delta)/2 as often as stated"
    found = tails(
        data.broken, config.n, lambda c: (2.0 * (K + 1), float(c.ratio * c.delta**2 / (2 * K)))
    )
    yield bound_claim(judge, "bound", text, found)
    judge = judge.but(where=WHERE + ", optimal robust classifier", source="words")
    for id, counted, expected, text, where in (
        ("reached", data.kept_below, Expected(min=0.99), "is robust at 0.95 sqrt(2)/2 without clean loss", ""),
        ("lost", data.kept_beyond, Expected(max=0.01), "keeps at most one point in a hundred at 1.05 sqrt(2)/2",
         "min2024, Appendix C.4, Theorem 3"),
    ):  # fmt: skip
        share = proportion(int(counted.sel(p=top)), points)
        yield judge(id, f"F^({top:g}) {text}", expected, share, bar=HUNDREDTH, where=where)
    yield optimal(judge, data, config)
    judge = judge.but(where=WHERE + ", F^(p) (p large) is close to Bayes")
    text = f"F^({top:g}) has the radii of the Bayes rule (median relative gap)"
    value, low, high = data.bayes_gap.values.tolist()
    gap = Estimate(value, low, high, points)
    yield judge("bayes.radius", text, Expected(max=1e-3), gap, bar="ours: a thousandth of it")
    text = f"F^({top:g}) has the sign of the Bayes rule (largest share of points where not, of all noise levels)"
    counts = data.disagree.sel(p=top)
    unlike = most(proportion(int(k), config.n, of=counts.size) for k in counts)
    yield judge("bayes.sign", text, Expected(max=0.01), unlike, bar=HUNDREDTH)


def optimal(judge: Judge, data: xr.Dataset, config: Robust) -> Claim:
    """What is kept beyond sqrt(2)/2 by the classifier that keeps most, and which one that is."""
    larger = max(config.K1, config.K - config.K1) / config.K
    counts = data.beyond.values
    shares = [proportion(int(k), config.points, of=len(counts)) for k in counts]
    name = str(data.tried.values[counts.argmax()])
    text = (
        f"of the classifiers tried (F, F^(p), the Bayes rule) none keeps more than the larger class's share, "
        f"{larger:g}, at 1.05 sqrt(2)/2 (the most kept)"
    )
    bar = "derived: the balls of two classes share a midpoint from sqrt(2)/2 on (docstring)"
    because = f"it is {name} that keeps most"
    return judge("optimal", text, Expected(max=larger), most(shares), bar=bar, because=because)


def count(config: Robust, bench: Bench, ratio: float) -> xr.Dataset:
    """Points broken within (sqrt(2)-delta)/2, and points where F^(p) and Bayes disagree."""
    mixture = cluster_mixture(
        orthogonal_centres(config.K, config.K), config.K1, 1 / math.sqrt(config.K * ratio)
    )
    bayes = BayesRule(mixture)
    broken = np.zeros(len(config.delta), dtype=np.int64)
    disagree = np.zeros(len(config.p), dtype=np.int64)
    at = [BEST - delta / 2 for delta in config.delta]
    # exact radii for larger p cost more, and the bound is the same for all
    counted = min(config.p)
    for points in mixture.stream(config.n, bench.generator("count", ratio)):
        truth = bayes(points.x) > 0
        for row, p in enumerate(config.p):
            net = centre_net(mixture, p)
            disagree[row] += int(((net(points.x) > 0) != truth).sum())
            if p == counted:
                radii = radius(net, points.x, points.y, up_to=1.01 * max(at)).lower
                broken += [int((radii <= r).sum()) for r in at]
    return xr.Dataset(
        {"broken": (("delta",), broken), "disagree": (("p",), disagree)},
        coords={"delta": list(config.delta), "p": list(config.p)},
    )


def curves(config: Robust, bench: Bench) -> xr.Dataset:
    """Robust accuracy over the radius at (alpha, D) for F, F^(p) and the Bayes rule."""
    mixture = min2024_mixture(config.D, config.K, config.K1, config.alpha).reduced()
    points = mixture.sample(config.points, bench.generator("curves"))
    bayes = radius(BayesRule(mixture), points.x, points.y)
    radii = {
        f"F^({p:g})": radius(centre_net(mixture, p), points.x, points.y, up_to=0).upper
        for p in config.p
    }
    # how far F^(p)'s radius lies outside the Bayes interval, relative to it, at the largest p
    largest = radii[f"F^({max(config.p):g})"]
    gap = torch.maximum(bayes.lower - largest, largest - bayes.upper).clamp_min(0)
    outside = critical_radius(gap / bayes.upper)
    everything = {
        "F": radius(average_net(mixture), points.x, points.y).upper,
        **radii,
        "Bayes (certified)": bayes.lower,
        "Bayes (attacked)": bayes.upper,
    }
    at = np.linspace(0, 1, CURVE)
    kept = np.array([[float((r > a).double().mean()) for a in at] for r in everything.values()])
    here = [everything[f"F^({p:g})"] for p in config.p]
    tried = [name for name in everything if name != "Bayes (certified)"]
    return xr.Dataset(
        {
            "robust": (("classifier", "radius"), kept),
            "bayes_gap": (("end",), [outside.value, outside.low, outside.high]),
            "kept_below": (("p",), np.array([int((r > 0.95 * BEST).sum()) for r in here])),
            "kept_beyond": (("p",), np.array([int((r > 1.05 * BEST).sum()) for r in here])),
            "beyond": (("tried",), [int((everything[k] > 1.05 * BEST).sum()) for k in tried]),
        },
        coords={"tried": tried, "classifier": list(everything), "radius": at, "p": list(config.p)},
    )


def draw(data: xr.Dataset, config: Robust) -> Figure:
    """Robust accuracy curves with both critical radii; disagreement with Bayes over p."""
    figure = Figure(figsize=(9.2, 3.8))
    left, right = figure.subplots(1, 2, width_ratios=[1.35, 1])
    shown = ["F", *(f"F^({p:g})" for p in (config.p[0], config.p[-1])), "Bayes (attacked)"]
    # on top of each other: the widest first
    styles = [("-", 1.8), ("-", 5.0), ("-", 2.4), (":", 1.6)]
    for index, (name, (style, width)) in enumerate(zip(dict.fromkeys(shown), styles, strict=False)):
        label = "$F$" if name == "F" else name.replace(" (attacked)", "")
        label = f"$F^{{{label[2:]}}}$" if label.startswith("F^") else label
        curve = data.robust.sel(classifier=name)
        left.plot(data.radius, curve, style, color=COLOURS[index], linewidth=width, label=label)
    ceiling = max(config.K1, config.K - config.K1) / config.K
    left.fill_between([BEST, 1], ceiling, 1.02, color="0.9", linewidth=0)
    left.annotate(
        "no classifier\nreaches here", (0.985, (ceiling + 1) / 2), ha="right", va="center"
    )
    for at, name in ((1 / math.sqrt(config.K), r"$1/\sqrt{K}$"), (BEST, r"$\sqrt{2}/2$")):
        left.axvline(at, linestyle="--", color="0.3", linewidth=1)
        left.annotate(name, (at, 0.03), xytext=(-4, 0), textcoords="offset points", ha="right")
    left.set(xlabel=r"$\ell_2$ radius of the attack", ylabel="robust accuracy", ylim=(0, 1.02))
    left.set(xlim=(0, 1), title=f"$K$ = {config.K}, $\\alpha$ = {config.alpha:g}, $D$ = {config.D}")
    left.legend(loc="lower left", bbox_to_anchor=(0.02, 0.1))
    noisy = [r for r in data.ratio.values if int(data.disagree.sel(ratio=r).max())]
    for index, ratio in enumerate(noisy):
        found = [proportion(int(k), config.n) for k in data.disagree.sel(ratio=ratio)]
        share = np.array([e.value for e in found])
        ends = [share - [e.low for e in found], [e.high for e in found] - share]
        label = f"$D/(\\alpha^2 K)$ = {ratio:g}"
        right.errorbar(data.p, share, ends, fmt="o-", color=f"C{index}", label=label)
    right.set_xscale("log")
    right.set_xticks(list(config.p), [f"{p:g}" for p in config.p])
    right.minorticks_off()
    right.set_yscale("symlog", linthresh=1 / config.n)
    right.set(ylim=(0, 0.03), xlabel="$p$", ylabel="disagreement with the Bayes rule")
    right.set_title(r"$F^{(p)}$ beside the Bayes rule")
    right.legend()
    return figure
