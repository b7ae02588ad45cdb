"""Theorem 2: whether a small neuron comes closer to its class average, or to a centre, when it is near.

As eps -> 0 a positive neuron turns by P x^(p)(w) (Lemma 1), so for unit w at cosine c = 1 - delta from a unit t

    d/dt cos(w, t) = p sum_k y_k ( <x_k, t> relu(z_k)^(p-1) - c relu(z_k)^p ),     z_k = <x_k, w>,

and a negative neuron has the same with -y_k: its own class is always the one with +1 here. Rates are given
in units of p zeta sum_k <x_k, t>_+ (c <x_k, t>)^(p-1), zeta = 1 - c^2, which is the rate where w leans
from t towards a direction orthogonal to every centre: there it is 1 for every p and every delta.

**What is true.** K1 stands for the number of centres of the neuron's own class, K1 >= 2.

The average, t = mu_bar / ||mu_bar||, (61) and (63):
- 1 <= p < 2: > 0 for every w, where delta < 1 - sqrt(1 - 1/K1). Off the span only Q = sum_own z_k^2 falls
  below 1, and sum z^(p-1) >= Q sum z^(p-1) >= sum z sum z^p by Lemma 5; opposite centres add.
- p = 2: 0 in the span of the own centres. p > 2: < 0 in that span where delta < 1 - sqrt(1 - 1/K1), and not
  beyond: past it all own centres but one can be active, equally, and the rate is positive there.
- p > 2 off that span: the rate is 1 > 0 at the direction named above, for every p and delta. The average
  is a saddle: with q the squared part of w - c t in the span and e the rest, rate ~ (e - (p-2) q)/zeta.

A centre, t = mu_k, (62) and (64): the least rate over all w, reached in the span, is

    1 - (K1 - 1)^max(1 - p/2, 0) (zeta / c^2)^(p/2 - 1).

- p > 2: > 0 exactly where delta < 1 - 1/sqrt(2), whatever p and K1. p = 2: 0.
- p < 2: < 0 for every delta < 1 - 1/sqrt(K1).
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import beta

from tacit.base.estimate import Certain, most
from tacit.lab import Bench, Claim, Expected, Judge, Outcome
from tacit.measure import proportion
from tacit.papers._shared.fits import listed
from tacit.papers._shared.panels import THEORY
from tacit.papers.min2024.thm2.lemma5 import lemma5_claims, measured
from tacit.papers.min2024.thm2.near import ABOUT, SPACES, About, extremes, near
from tacit.papers.min2024.thm2.settings import NearAlignment

WHERE = "Appendix D.4, Theorem 2"
PROOF = "by the proof in the exhibit's docstring, for every direction; the number is the extreme that was found"
COUNTER = "one direction with the other sign is a counterexample"
SEARCH = "the extreme that a search has found"
LAW = 4  # times n neighbours are drawn for the law
LAW_P = (3.0, 4.0, 6.0, 8.0, 12.0, 20.0)  # where the share of neighbours that leave is followed
ROUNDING = 1e-8  # of a rate of order zeta >= 2e-6 that is a difference of numbers of order 1

OWN = ("positive", "negative")


def run(config: NearAlignment, bench: Bench) -> Outcome:
    """Extreme rates and shares of neighbours for each p, delta and class; where the signs change."""
    parts = [
        bench.part(f"p{p}", partial(at_power, config, bench, p))
        for p in bench.steps(config.p, "powers")
    ]
    data = xr.concat(parts, "p").assign_coords(p=list(config.p))
    data = data.merge(bench.part("law", partial(shares_by_power, config, bench)))
    data = data.merge(bench.part("edges", partial(edges, config, bench)))
    data = data.merge(bench.part("lemma5", partial(lemmas, config, bench)))
    return Outcome(data, tuple(claims(data, config, bench)))


def at_power(config: NearAlignment, bench: Bench, p: float) -> xr.Dataset:
    """Lowest and highest rate, and the share of random neighbours with a positive one."""
    shape = (len(OWN), len(ABOUT), len(SPACES), len(config.delta))
    rate, share = np.zeros((*shape, 2)), np.zeros(shape)
    deltas = torch.tensor(config.delta, dtype=torch.float64)
    for i, j, k in np.ndindex(shape[:3]):
        own = (config.K1, config.K - config.K1)[i]
        here = near(config.K, own, config.D, ABOUT[j], SPACES[k])
        generator = bench.generator("near", p, OWN[i], ABOUT[j], SPACES[k])
        low, high = extremes(here, p, deltas, config.starts, generator)
        leans = here.leans(config.n, generator)
        for m, delta in enumerate(config.delta):
            rate[i, j, k, m] = here.rate(torch.stack([low[m], high[m]]), p, delta)
            inward = here.rate(here.neighbour(leans, delta), p, delta) > 0
            share[i, j, k, m] = float(inward.double().mean())
    dims = ("own", "about", "space", "delta")
    return xr.Dataset(
        {"rate": ((*dims, "end"), rate), "inward": (dims, share)},
        coords={
            "own": list(OWN),
            "about": list(ABOUT),
            "space": list(SPACES),
            "delta": list(config.delta),
            "end": ["lowest", "highest"],
        },
    )


def shares_by_power(config: NearAlignment, bench: Bench) -> xr.Dataset:
    """How many random neighbours of the average come closer as p grows, at the smallest delta."""
    share = np.zeros((len(OWN), len(LAW_P)))
    for i, own in enumerate((config.K1, config.K - config.K1)):
        here = near(config.K, own, config.D, "average", "all")
        leans = here.leans(LAW * config.n, bench.generator("law", OWN[i]))
        w = here.neighbour(leans, min(config.delta))
        for j, p in enumerate(LAW_P):
            share[i, j] = float((here.rate(w, p, min(config.delta)) > 0).double().mean())
    return xr.Dataset(
        {"law_inward": (("own", "law_p"), share)}, coords={"own": list(OWN), "law_p": list(LAW_P)}
    )


def lemmas(config: NearAlignment, bench: Bench) -> xr.Dataset:
    """Lemma 5 at every p, on a hundredth of n draws."""
    return measured(config.p, max(config.n // 100, 1), bench.generator("lemma5"))


def saddle_share(p: float, own: int, D: int) -> float:
    """P(e > (p-2) q) for a uniform lean, as delta -> 0: q/(q+e) is Beta((K1-1)/2, (D-K1)/2)."""
    return float(beta.cdf(1 / (p - 1), (own - 1) / 2, (D - own) / 2)) if p > 2 else 1.0


def edges(config: NearAlignment, bench: Bench) -> xr.Dataset:
    """The delta at which the statements for p > 2 begin to fail, for several counts of own centres."""
    over = [p for p in config.p if p > 2]
    powers = sorted({min(over), max(over)}) if over else []
    owns = sorted({2, 3, config.K1, config.K - config.K1})
    found = np.zeros((len(ABOUT), len(owns), len(powers)))
    for i, j, k in np.ndindex(found.shape):
        generator = bench.generator("edge", ABOUT[i], owns[j], powers[k])
        found[i, j, k] = edge(ABOUT[i], owns[j], powers[k], generator)
    return xr.Dataset(
        {"edge": (("about", "own_centres", "edge_p"), found)},
        coords={"about": list(ABOUT), "own_centres": owns, "edge_p": powers},
    )


def edge(about: About, own: int, p: float, generator: torch.Generator) -> float:
    """The largest delta below which no rate of the wrong sign is found, for p > 2.

    Near the average w is in the span and the rate should be negative; near a centre w is anywhere and it
    should be positive. Three grids, each between two neighbours of the one before.
    """
    here = near(own + 1, own, own + 2, about, "span" if about == "average" else "all")
    low, high = 0.0, 0.9
    for _ in range(3):
        grid = torch.linspace(low, high, 26, dtype=torch.float64)[1:]
        worst = extremes(here, p, grid, 8, generator)[1 if about == "average" else 0]
        wrong = [
            (float(here.rate(w.unsqueeze(0), p, float(delta))) > 0) == (about == "average")
            for w, delta in zip(worst, grid, strict=True)
        ]
        at = wrong.index(True) if True in wrong else len(wrong) - 1
        low, high = (float(grid[at - 1]) if at else low), float(grid[at])
    return (low + high) / 2


def edge_in_theory(about: About, own: int) -> float:
    """1 - sqrt(1 - 1/K1) for the average, 1 - 1/sqrt(2) for a centre."""
    return 1 - math.sqrt(1 - 1 / own) if about == "average" else 1 - math.sqrt(0.5)


def least_rate(p: float, own: int, delta: float) -> float:
    """The least rate near a centre, over all w: 1 - (K1-1)^max(1-p/2, 0) (zeta/c^2)^(p/2-1)."""
    tilt = delta * (2 - delta) / (1 - delta) ** 2
    return 1 - (own - 1) ** max(1 - p / 2, 0.0) * tilt ** (p / 2 - 1)


def claims(data: xr.Dataset, config: NearAlignment, bench: Bench) -> Iterator[Claim]:
    """What is printed, then what is true in its place: for a `min` the lowest rate, for a `max` the highest."""
    regime = f"inside: eps -> 0, delta = {listed(config.delta)}"
    judge = bench.claims(WHERE, source="formula", bar="paper: the sign", regime=regime)
    our_judge = judge.but(source="ours", bar="derived: the docstring of the exhibit")
    check_judge = our_judge.but(source="check", bar="ours: the accuracy of the search")
    rates = data.rate.transpose("p", "own", "about", "space", "delta", "end")
    one, two = ([p for p in config.p if p == q] for q in (1, 2))
    under, over = [p for p in config.p if p < 2], [p for p in config.p if p > 2]
    three = [p for p in over if p >= 3]
    positive, negative, found = Expected(min=0.0), Expected(max=0.0), rates.sel(space="all")
    low, high = found.sel(end="lowest"), found.sel(end="highest")
    closed = xr.zeros_like(low.sel(about="centre"))
    for cell in np.ndindex(closed.shape):
        p, own, delta = (closed[name].values[i] for name, i in zip(closed.dims, cell, strict=True))
        count = config.K1 if own == "positive" else config.K - config.K1
        closed[cell] = least_rate(float(p), count, float(delta))
    gap = abs(rates.sel(about="centre", end="lowest") - closed) / abs(closed).clip(min=1)
    inward = data.inward.sel(space="all")
    seen = inward.sel(about="average", p=three)
    held = inward.sel(about="centre", p=one, delta=min(config.delta))
    off = "the proof takes w in the span of its own centres; outside it the average attracts"
    off += f", {100 * float(seen.min()):.3g}% or more of random neighbours" if seen.size else ""
    few = "the proof needs p > 2; below, the lowest rate is negative"
    few += (
        f", and at p = 1 up to {1 - float(held.min()):.1%} of neighbours leave" if held.size else ""
    )
    span = rates.sel(about="average", space="span")
    for this_judge, id, text, expected, cells, why in (
        (judge, "average.p1", "near the average, p = 1: every neuron comes closer (lowest rate of any w)",
         positive, low.sel(about="average", p=one), ""),
        (judge, "average.p3", "near the average, p >= 3: every neuron leaves (highest rate of any w)",
         negative, high.sel(about="average", p=three), f"{off} (errata: Theorem 2, (61) and (63))"),
        (our_judge, "average.span", "in the span of its centres, p > 2: every neuron leaves (highest rate)",
         negative, span.sel(end="highest", p=over), ""),
        (our_judge, "average.below", "near the average, p < 2: every neuron comes closer (lowest rate of any w)",
         positive, low.sel(about="average", p=under), ""),
        (our_judge, "average.p2", "p = 2 in the span: the cosine with the average stands still (largest |rate|)",
         Expected(max=ROUNDING), abs(span.sel(p=two)), ""),
        (judge, "centre.any", "near a centre, any p >= 1: every neuron comes closer (lowest rate of any w)",
         positive, low.sel(about="centre", p=[*under, *over]), f"{few} (errata: Theorem 2, (62) and (64))"),
        (our_judge, "centre.above", "near a centre, p > 2: every neuron comes closer (lowest rate of any w)",
         positive, low.sel(about="centre", p=over), ""),
        (check_judge, "centre.least", "the lowest rate near a centre is that of the closed form (relative gap)",
         Expected(max=1e-6), gap, ""),
        *((check_judge, f"{about}.edge", f"p > 2: the sign near the {about} lasts up to {edge} (relative gap)",
           Expected(max=0.01), edge_gap(data, about), "")
          for about, edge in zip(ABOUT, ("delta = 1 - sqrt(1 - 1/K1)", "1 - 1/sqrt(2)"), strict=True)),
    ):  # fmt: skip
        if cells.size:
            worst = float(cells.min() if expected.min is not None else cells.max())
            where = f"{WHERE}, " + ("(61), (63)" if id.startswith("average") else "(62), (64)")
            reason = PROOF if expected.admits(worst) else COUNTER
            reason = SEARCH if this_judge is check_judge else reason
            extreme = Certain(worst, reason, cells.size)
            bar = "ours: rounding" if id == "average.p2" else ""
            told = {"because": why, "where": where, "bar": bar}
            yield this_judge(id, text, expected, extreme, any_size=True, **told)
    yield law_claim(data, config, our_judge)
    yield from lemma5_claims(data, judge)


def edge_gap(data: xr.Dataset, about: About) -> xr.DataArray:
    """Where the sign was found to change, relative to theory."""
    here = data.edge.sel(about=about)
    theory = np.array([edge_in_theory(about, int(own)) for own in here.own_centres])
    return abs(here / theory[:, None] - 1)


def law_claim(data: xr.Dataset, config: NearAlignment, our_judge: Judge) -> Claim:
    """The share of neighbours that come closer is that of a saddle with rates 1 and -(p-2)."""
    n, owns = LAW * config.n, (config.K1, config.K - config.K1)
    theory = [saddle_share(p, own, config.D) for own in owns for p in LAW_P]
    shares = data.law_inward.transpose("own", "law_p").values.ravel()
    gaps = [
        proportion(round(share * n), n, of=len(theory), over="neighbours").away_from(goal)
        for share, goal in zip(shares, theory, strict=True)
    ]
    text = "the share of random neighbours that come closer to the average is the saddle's Beta law (largest gap)"
    return our_judge("average.saddle", text, Expected(max=0.02), most(gaps),
                     bar="ours: 2 of 100 neighbours; the law is the limit delta -> 0")  # fmt: skip


def draw(data: xr.Dataset, config: NearAlignment) -> Figure:
    """The range of rates over p near the average and near a centre, and the neighbours' shares."""
    figure = Figure(figsize=(11.4, 3.9))
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1, 0.95])
    delta = config.delta[len(config.delta) // 2]
    rates = data.rate.sel(own="positive", delta=delta)
    p = np.linspace(1, max(*config.p, 3), 200)
    rate_panel(left, rates.sel(about="average"))
    left.plot(p, 2 - p, label=r"$2-p$: the span, $\delta\to 0$", **THEORY)
    left.set_title(r"near the class average $\bar\mu_+$")
    left.set_ylabel(r"$\frac{d}{dt}\cos(w,\cdot)$, relative to $w$ off all centres")
    rate_panel(middle, rates.sel(about="centre"))
    middle.plot(
        p, [least_rate(q, config.K1, delta) for q in p], label="least rate, closed form", **THEORY
    )
    middle.set_title(r"near a subclass centre $\mu_k$")
    for axes in (left, middle):
        axes.legend(loc="upper right", fontsize="small")
    share_panel(right, data, config)
    figure.suptitle(
        f"positive neurons at cosine $1-\\delta$, $\\delta$ = {delta:g}, $K$ = {config.K}, "
        f"$K_1$ = {config.K1}, $D$ = {config.D}"
    )
    return figure


def rate_panel(axes: Axes, rates: xr.DataArray) -> None:
    """Bands from the lowest to the highest rate: any w, and w in the span of its own centres."""
    for space, colour, alpha, label in (
        ("all", "C0", 0.25, "any $w$"),
        ("span", "C1", 0.6, "$w$ in the span"),
    ):
        low, high = (rates.sel(space=space, end=end).values for end in ("lowest", "highest"))
        axes.fill_between(rates.p, low, high, color=colour, alpha=alpha, linewidth=0, label=label)
        for ends in (low, high):
            axes.plot(rates.p, ends, "o-", color=colour, markersize=3.5, linewidth=1)
    axes.axhline(0, color="0.15", linewidth=1)
    axes.set_yscale("symlog", linthresh=1)
    reach = 1.6 * float(abs(rates).max())
    axes.set_ylim(-reach, reach)
    for above, word in ((4, "comes closer ↑"), (-4, "leaves ↓")):
        axes.annotate(word, (0.985, 0), xycoords=("axes fraction", "data"), xytext=(0, above),
                      textcoords="offset points", ha="right", va="bottom" if above > 0 else "top",
                      color="0.25", style="italic")  # fmt: skip
    axes.set_xlabel("$p$")


def share_panel(axes: Axes, data: xr.Dataset, config: NearAlignment) -> None:
    """Random neighbours of the average that come closer, with the saddle's Beta law."""
    p = np.geomspace(2.05, max(LAW_P), 200)
    for index, own in enumerate(OWN):
        count = (config.K1, config.K - config.K1)[index]
        theory = [saddle_share(q, count, config.D) for q in p]
        axes.plot(p, theory, **THEORY, label=None if index else "saddle (Beta law)")
        axes.plot(LAW_P, data.law_inward.sel(own=own), "os"[index], color=f"C{index}",
                  label=f"{own} neurons, {count} centres")  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks([2, *LAW_P], ["2", *(f"{q:g}" for q in LAW_P)])
    axes.minorticks_off()
    axes.set(ylim=(0, 1.05), xlabel=f"$p$   ($\\delta$ = {min(config.delta):g})")
    axes.set(ylabel="share that comes closer", title=r"random neighbours of $\bar\mu_\pm$")
    axes.legend(loc="lower left", fontsize="small")
