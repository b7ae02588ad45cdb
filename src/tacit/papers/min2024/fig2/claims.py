"""The claims of Figures 2 and 5: what the paper says or theory predicts, and what the trained nets are."""

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
import xarray as xr

from tacit.lab import Bench, Claim, Expected
from tacit.measure import critical_radius
from tacit.papers.min2024.fig2.settings import Conjecture

WHERE = "Section 5.1, Figures 2 and 5"
Tell = Callable[..., Claim]  # `bench.judge` with the number of nets that a claim rests on
BEST = math.sqrt(0.5)
SHOWN = 0.1  # the captions' alpha in (b) to (d), and up to which radii are claimed
CLOSE = 0.05  # of sup |F|: a distance that counts as small


def claims(data: xr.Dataset, config: Conjecture, bench: Bench) -> tuple[Claim, ...]:
    """What the paper says of the figure, then how exact the training was."""
    quiet = sum(alpha <= SHOWN for alpha in config.alpha)
    runs = len(config.alpha) * config.repeats
    of_all, of_quiet = (partial(bench.judge, n=n) for n in (runs, quiet * config.repeats))
    made: list[Claim] = []
    for p in config.p:
        here = data.sel(p=p)
        made += [*distances(of_all, here, config, p), *learned(of_all, here, config, p)]
        made.append(kkt_claim(of_all, here, p))
        made += broken(of_quiet, here, config, p) if quiet else []
    if {1.0, 3.0} <= set(config.p):
        mean = data.distance.sel(end="upper").mean("seed")
        text = "the distance is smaller at p = 3 than at p = 1 (measured: the largest ratio of the means)"
        ratio, where = float((mean.sel(p=3) / mean.sel(p=1)).max()), WHERE + " (a)"
        made.append(
            bench.judge("distance.smaller", text, where, Expected(max=1.0), ratio, n=2 * runs)
        )
    return (*made, *exact(partial(bench.judge, n=data.reached.size), data, config))


def distances(tell: Tell, data: xr.Dataset, config: Conjecture, p: float) -> Iterator[Claim]:
    """(a): small, and at p = 1 rising with alpha. sup |F| is sqrt(max(K1, K2)), sup |F^(p)| is 1."""
    name = "F" if p == 1 else f"F^({p:g})"
    supremum = math.sqrt(max(config.K1, config.K - config.K1)) if p == 1 else 1.0
    upper = data.distance.sel(end="upper").sortby("alpha")
    mean = upper.mean("seed")
    worst = upper[int(mean.values.argmax())]
    yield tell(
        f"distance.p{p:g}",
        f"dist(f, {name}) is small at every alpha (measured: its largest mean over seeds, as a share of "
        f"sup |{name}|; spread: half their range)",
        WHERE + " (a)",
        Expected(max=CLOSE),
        float(worst.mean()) / supremum,
        spread=float(worst.max() - worst.min()) / 2 / supremum,
    )
    if p == 1 and len(config.alpha) > 1:
        text = "dist(f, F) increases with alpha (measured: the mean at the largest over that at the smallest)"
        rise = float(mean[-1] / mean[0])
        yield tell("distance.rises", text, WHERE + " (a)", Expected(min=1.0), rise)


def learned(tell: Tell, data: xr.Dataset, config: Conjecture, p: float) -> list[Claim]:
    """(b) to (d): what the neurons learn."""
    what = "the two class averages" if p == 1 else f"the {config.K} subclass centres"
    where = WHERE + " (b, c, d)"
    return [
        tell(
            f"learned.p{p:g}",
            f"neurons learn only {what}, each of its own sign (measured: the least share of a sign's mass "
            "within cosine .95)",
            where,
            Expected(min=0.95),
            float(data.within.min()),
        ),
        tell(
            f"all.p{p:g}",
            f"neurons learn each of {what} (measured: the least mass of any, over an equal share)",
            where,
            Expected(min=0.5),
            float(data.least.min()),
        ),
    ]


def broken(tell: Tell, data: xr.Dataset, config: Conjecture, p: float) -> Iterator[Claim]:
    """(e): critical radii, and robust accuracy halfway between 1/sqrt(K) and sqrt(2)/2, where alpha <= .1."""
    edge, where = 1 / math.sqrt(config.K), WHERE + f" (e), alpha <= {SHOWN:g}"
    few = data.sel(alpha=[alpha for alpha in config.alpha if alpha <= SHOWN])
    theory, name = (edge, "1/sqrt(K)") if p == 1 else (BEST, "sqrt(2)/2")
    ratio = few.critical / theory
    at = np.unravel_index(int(np.abs(ratio.values - 1).argmax()), ratio.shape)
    points = torch.from_numpy(few.upper.values[at[:2]])
    yield tell(
        f"radius.p{p:g}",
        f"the critical radius of every net is {name} (measured: the ratio farthest from 1)",
        where,
        Expected(value=1.0, tolerance=0.02),
        float(ratio.values[at]),
        spread=critical_radius(points).spread / theory,
    )
    middle = (edge + BEST) / 2
    kept = (few.upper if p == 1 else few.lower) > middle
    share = kept.mean(("seed", "point"))
    if p == 1:
        text = f"an attack of radius {middle:.3g} breaks the ReLU net (measured: the largest robust accuracy)"
        yield tell("robust.p1", text, where, Expected(max=0.01), float(share.max()))
    else:
        text = f"nothing of radius {middle:.3g} breaks the net of p = {p:g} (measured: least certified accuracy)"
        yield tell(f"robust.p{p:g}", text, where, Expected(min=0.99), float(share.min()))
    if p == 1 and config.K > 10:
        text = "the ReLU net breaks earlier than at K = 10 (measured: the largest critical radius times sqrt(10))"
        largest = float(few.critical.max()) * math.sqrt(10)
        yield tell("earlier", text, where, Expected(max=0.98), largest)


def kkt_claim(tell: Tell, data: xr.Dataset, p: float) -> Claim:
    """How near to a KKT point: by the cosine for p > 2, by the residual at p = 1, which has kinks."""
    cosine = float(data.kkt_cosine.min())
    slack = f"the pulls' slackness is at most {float(data.slackness.max()):.2g}"
    where = "Lyu & Li 2020, Theorem 4.4"
    if p > 1:
        text = f"every net of p = {p:g} is at a KKT direction: cos(theta, -grad L); {slack}"
        return tell(f"kkt.p{p:g}", text, where, Expected(min=0.9999), cosine)
    text = f"every ReLU net is near a KKT direction: the residual, with Clarke corners at kinks; {slack}"
    return tell("kkt.p1", text, where, Expected(max=0.02), float(data.kkt_residual.max()))


def exact(tell: Tell, data: xr.Dataset, config: Conjecture) -> list[Claim]:
    """How far the training can be trusted."""
    goal = f"exp({config.log_loss:g})"
    where = "Accuracy of the training"
    none = Expected(value=0.0)
    energy, merge = float(data.energy_error.max()), float(data.merge_error.max())
    missed, lost = int((data.reached == 0).sum()), int((data.neurons == 0).sum())
    return [
        tell(
            "exact.fitted",
            f"every training reaches the loss {goal} (nets that do not)",
            where,
            none,
            missed,
        ),
        tell(
            "exact.classes",
            "neither class loses its neurons (nets in which one does)",
            where,
            none,
            lost,
        ),
        tell(
            "exact.energy",
            "the fall of log L is the integral of |grad L|^2 / L to a step's tolerance (largest relative gap)",
            where,
            Expected(max=0.02),
            energy,
        ),
        tell(
            "exact.merge",
            "merging changes f by at most 1e-4 of its largest value (measured: the most it did)",
            where,
            Expected(max=1e-4),
            merge,
        ),
    ]
