"""What `li2025.thm4.7` claims, where the theorem's window begins: eta T = k^8.

All but the claims about dead neurons are given that no label died: the regime says in how many trainings one did.
"""

import math
from collections.abc import Iterator
from functools import partial
from operator import mul

import numpy as np
import xarray as xr

from tacit.base.estimate import farthest, least
from tacit.lab import Bench, Claim, Expected, Judge, Part
from tacit.measure import proportion
from tacit.papers._shared.universal import for_every
from tacit.papers.li2025.sweeps.settings import Sweep
from tacit.papers.li2025.sweeps.sweep import (
    EXPONENT_BAR,
    OUTSIDE,
    class_growth,
    exponents,
    mean_of_finite,
    nearly_all,
    on_path,
    over_settings,
)

WHERE = "Theorem 4.7, "
AXES = ("d", "k", "n")
PROVED = 0.1  # of sqrt(d): the radius of the proof
FACTOR = 1.5  # a probability is known where it is known to this factor
RADIUS = "the critical radius (attacked)"
CLOSE = "sqrt(d) ||w_jr - lambda mu_j/||mu_j||^2|| / lambda of the median neuron"
POWERS = ("d", 0.5), ("k", 0.0), ("n", 0.0)


def claims(data: xr.Dataset, config: Sweep, bench: Bench) -> tuple[Claim, ...]:
    """Radius, accuracy and weights where every label lives; then how often one does not."""
    lost = over_settings(config, AXES).trainings(data, "lost") > 0
    alive = (
        f"{OUTSIDE}; given that no label died ({lost.sum()} of {lost.size} trainings are set aside)"
    )
    judge = bench.claims(f"{WHERE}3", source="order", bar=EXPONENT_BAR, regime=alive)
    return (
        *exponents("radius", RADIUS, POWERS, data, judge, "min"),
        *exponents("close", CLOSE, (("k", 0.5), ("n", -0.5)), data, judge.but(where=f"{WHERE}2")),
        *worst(data, config, judge.but(where=f"{WHERE}2")),
        *sizes(data, config, judge),
        *deaths(data, config, judge.but(where=f"{WHERE}2; Lemma C.5", regime=OUTSIDE)),
    )  # fmt: skip


def worst(data: xr.Dataset, config: Sweep, judge: Judge) -> Iterator[Claim]:
    """o(d^-1/2): the median neuron as d and n grow with k, and every neuron of each training ("for all j, r").

    Each training is looked at once, where the theorem's window begins.
    """
    falls = Expected(max=0.0)
    yield on_path("close.order", "close", CLOSE, falls, data, judge)
    found = over_settings(config, AXES, 8.0).trainings(data, "close_most")
    if found.size:
        text = (
            "sqrt(d) ||w_jr - lambda mu_j/||mu_j||^2|| / lambda of the worst neuron of a training"
        )
        because = "a neuron that learned nothing is at 1: the theorem has none, and dead says how many there are"
        judge = judge.but(
            bar="ours: o(1) is read as a half, half of what a neuron has that learned nothing"
        )
        half, each = Expected(max=0.5), xr.DataArray(found, dims="training")
        yield for_every(judge, "close.worst", text, half, each, because)


def sizes(data: xr.Dataset, config: Sweep, judge: Judge) -> Iterator[Claim]:
    """Prefactors, lambda; what is certified, and clean accuracy."""
    settings, d = over_settings(config, AXES, 8.0), config.d[-1]
    ours, of = judge.but(source="ours", bar="ours: three percent"), len(settings.rows)
    found = mean_of_finite(
        data.radius_d.isel(d=-1) / math.sqrt(d / 2 / (1 + config.k0 / config.n0))
    )
    text = f"critical radius over sqrt(d/2)/sqrt(1 + k/n) at d = {d}"
    yield ours("radius.prefactor", text, Expected(value=1.0, tolerance=0.03), found)

    ours = ours.but(where=f"{WHERE}2", bar="ours: ten percent")
    found = mean_of_finite(data.close_d.isel(d=-1) * math.sqrt(config.n0 / config.k0))
    text = (
        f"{CLOSE}, over the remembered noise sqrt(k/n), at d = {d}: d alone does not make it small"
    )
    yield ours("close.d", text, Expected(value=1.0, tolerance=0.1), found)

    lam, pairs = settings.of(data, "lam"), zip(settings.rows, settings.times, strict=True)
    law = np.array([class_growth(*row, config.h, time) for row, time in pairs])[:, None]
    ours = ours.but(where="Appendix C.2, Corollary C.8", bar="ours: five percent")
    text = "lambda over q/kappa, q + (e^q - 1)/(k-1) = kappa (d/(hk)) eta T: the setting farthest from 1"
    yield ours(
        "lambda", text, Expected(max=0.05), farthest(mean_of_finite(r, of=of) for r in lam / law)
    )

    judge = judge.but(source="formula", where="Appendix C.3, after Lemma C.24", bar="paper: 2 ln k")
    found = least(mean_of_finite(row, of=of) for row in lam / (2 * np.log(settings.k)))
    text = "lambda over 2 ln k at eta T = k^8, the least of all settings"
    yield judge("lambda.log", text, Expected(min=1.0), found)

    read = "1 - exp(-Omega(log^2 d)) of the points is read as 0.99"
    lower, upper = data.certified.dropna("training").transpose("end", "training", "point").values
    ends = ", ".join(f"{np.median(end):.3f}" for end in (lower, upper) if end.size)
    text = "share of trainings of the base where 0.99 of the points are certified to outlive sqrt(d)/10"
    text = f"{text} (their median radius in sqrt(d), certified and attacked: {ends or 'none'})"
    judge = judge.but(where=f"{WHERE}3", bar=f"ours: most trainings; {read}")
    yield judge("radius.certified", text, Expected(min=0.5), nearly_all((lower > PROVED).mean(1)))

    text = "share of trainings, in all settings, where 0.99 of the points are right"
    judge = judge.but(where=f"{WHERE}1", bar=f"ours: nine trainings of ten; {read}")
    yield judge("clean", text, Expected(min=0.9), nearly_all(settings.trainings(data, "clean")))


def deaths(data: xr.Dataset, config: Sweep, judge: Judge) -> Iterator[Claim]:
    """Neurons that learn nothing: none by the theorem; by the start, k/n of them and (k/n)^h of the labels."""
    h, k, here = config.h, config.k0, f"(k = {config.k0}, n = {config.n[0]})"
    neurons = int(over_settings(config, AXES).k.sum()) * h * config.repeats
    on = neurons - sum(int(data[f"off_{axis}"].sum()) for axis in AXES)
    share = proportion(on, neurons, over="neurons")
    reason = "a neuron that no own point activates at the start, of probability 1/(|I_j| + 1), may never move"
    bar = "paper: for all j and r; one failure decides, none cannot"
    judge = judge.but(source="words", bar=bar)
    text = "share of neurons that learn their feature, in all settings"
    yield judge("dead", text, Expected(value=1.0), share, because=reason)

    first, last = data.first_off.values.astype(bool), data.last_off.values.astype(bool)
    chance = 1 / (data.own.values + 1)  # (start, cluster), of one neuron
    parts = []
    for width in range(1, h + 1):
        pairs, theory = first[..., :width].all(-1), float((chance**width).mean())
        share = proportion(int(pairs.sum()), pairs.size, of=h, over="pairs of label and cluster")
        ratio = share.through(partial(mul, 1 / theory))
        text = f"{width} neurons at once, over E (|I_j| + 1)^-{width} = {theory:.2g}"
        parts.append(Part(f"h{width}", text, Expected(min=1 / FACTOR, max=FACTOR), ratio))
    judge = judge.but(where="Proposition C.3", source="ours", bar="ours: a factor of 1.5")
    text = f"neurons that no point of a cluster activates are as frequent as 1/(|I_j| + 1) {here}"
    yield judge.family("dead.start", text, parts)

    began, theory = first[:, range(k), range(k)], float((chance**h).mean())
    stay = f"{last[began].mean():.0%}" if began.any() else "none"
    share = proportion(int(last.all(-1).sum()), last[..., 0].size, over="labels")
    text = f"share of labels whose {h} neurons all die {here}; of the neurons that start off {stay} stay so"
    judge = judge.but(bar="derived: E (|I_j| + 1)^-h, as many as start without an own point")
    yield judge("dead.label", text, Expected(max=theory), share)

    text = f"share of neurons with an own point at the start that learn their feature {here}"
    share = proportion(int((~began & ~last).sum()), int((~began).sum()), over="neurons")
    yield judge("dead.only", text, Expected(min=0.999), share, bar="ours: one in a thousand")
