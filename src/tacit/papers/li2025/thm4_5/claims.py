"""What `li2025.thm4.5` claims: exponents with intervals over seeds, and the sizes behind the theorem's O().

eps of Appendix B.1 is 8 to 530 in these settings, so its bounds (Lemmas B.10, B.24, B.25) forbid nothing here:
in their place stands what we expect at finite n (derived in `exhibit`).
"""

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.base.estimate import farthest
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of, proportion
from tacit.papers.li2025.sweeps.settings import Sweep
from tacit.papers.li2025.sweeps.sweep import (
    Array,
    exponents,
    growth,
    nearly_all,
    on_path,
    over_settings,
)

OUTSIDE = "outside: Assumption 4.3 asks for d >= k^10, n >= k^7, eta <= 1/d^2, the theorem for T <= exp(sqrt k)"
WHERE = "Theorem 4.5, "
ONE = "points of one training"
LATE = 0.3  # before this time margins are not balanced yet


def claims(data: xr.Dataset, config: Sweep, bench: Bench) -> tuple[Claim, ...]:
    """Accuracies of the theorem and of its proof, the radius, and the weights."""
    C = math.log(100) / math.log(config.d0) ** 2
    bar = f"ours: nine trainings of ten; 1 - exp(-C ln^2 d) of the points is read as 0.99, C = {C:.2g}"
    judge = bench.claims(f"{WHERE}1", source="formula", bar=bar, regime=OUTSIDE)
    return (
        *accuracies(data, config, judge),
        *radii(data, config, judge.but(where=f"{WHERE}3")),
        *weights(data, config, judge.but(where=f"{WHERE}2", source="ours")),
    )


def accuracies(data: xr.Dataset, config: Sweep, judge: Judge) -> Iterator[Claim]:
    """How many trainings have nearly all of their test points right, or broken by a perturbation."""
    # k > 8: else 2 sqrt(d/k) is beyond sqrt(d/2), the best radius of any classifier
    rows = (
        ("clean", "are right", "clean", 0, f"{WHERE}1", ""),
        ("proof.flips", "break by rho, of length 2(1+c) sqrt(d/k)", "flipped", 0, "Section 5.3, Step 5", ""),
        ("radius.order", "break by half of rho, 2 sqrt(d/k) long (k > 8)", "halved", 8, f"{WHERE}3", "order"),
    )  # fmt: skip
    for id, text, name, above, where, source in rows:
        shares = over_settings(config).trainings(data, name, above)
        if shares.size:
            text = f"share of trainings, in all settings, where 0.99 of the points {text}"
            yield judge(id, text, Expected(min=0.9), nearly_all(shares), where=where, source=source)


def radii(data: xr.Dataset, config: Sweep, judge: Judge) -> Iterator[Claim]:
    """Exponents of the critical radius, its prefactor, and whether the attack found it."""
    powers = (("d", 0.5), ("k", -0.5), ("n", 0.0), ("time", 0.0))
    yield from exponents("radius", "the critical radius, O(sqrt(d/k))", powers, data, judge, "max")

    settings = over_settings(config)
    theory = np.sqrt(settings.d / (settings.k * (1 + settings.k / settings.n)))
    text = "critical radius over sqrt(d/k)/sqrt(1 + k/n)"
    ratio = settings.of(data, "radius") / theory
    yield in_all("radius.prefactor", text, ratio, 0.05, judge.but(source="ours"))

    good = proportion(int((data.certified <= 1 + 1e-6).sum()), data.sizes["point"], over=ONE)
    text = "share of attacked radii at the base setting within 1e-6 of the certified ones"
    bar = "ours: nineteen points of twenty"
    yield judge("radius.certified", text, Expected(min=0.95), good, source="check", bar=bar)


def weights(data: xr.Dataset, config: Sweep, judge: Judge) -> Iterator[Claim]:
    """How far weights are from the averages, biases from zero, and lambda from its law.

    The theorem has sqrt(d) ||w - lambda sum_J mu_j/||mu_j||^2|| = o(1), lambda = Omega(1): so the ratio is o(1).
    """
    falls = Expected(max=0.0)
    for id, name, what, expected in (
        ("close.order", "close", "the distance of the farthest neuron, in units of lambda/sqrt(d)", falls),
        ("bias.order", "bias", "the largest bias", falls),
        ("lambda.order", "lam", "lambda", Expected(min=0.0)),
    ):  # fmt: skip
        yield on_path(id, name, what, expected, data, judge)

    text = "the sqrt(d) ||w - lambda sum_J mu_j/||mu_j||^2|| / lambda of the farthest neuron, about k/sqrt(2n)"
    yield from exponents("close", text, (("k", 1.0), ("n", -0.5), ("time", 0.0)), data, judge)

    settings = over_settings(config)
    d, k, n = settings.d, settings.k, settings.n
    times = np.array(settings.times)
    law = [growth(*row, config.m, t) for row, t in zip(settings.rows, times, strict=True)]
    lam, bias, noise = (settings.of(data, name) for name in ("lam", "bias", "noise"))
    rows = (
        ("close.L4", "remembered noise of the own points over k/sqrt(2n), whatever d", noise * np.sqrt(2 * n) / k,
         0.1, "Lemma B.25"),
        ("bias", "largest bias over lambda |J_s|/d", bias * d / lam / (k / 2), 0.15, ""),
        ("lambda", "lambda over the law of li2025.lemma5", lam / np.array(law)[:, None], 0.05,
         "Section 5.3, Step 2"),
    )  # fmt: skip
    for id, name, ratio, near, where in rows:
        text = f"{name}, from time {LATE} on"
        yield in_all(id, text, ratio[times >= LATE], near, judge.but(where=where))


def in_all(id: str, what: str, ratio: Array, near: float, judge: Judge) -> Claim:
    """The distance from 1 of the mean over seeds in the setting that is farthest off."""
    found = farthest(mean_of(row, of=len(ratio)) for row in ratio)
    text = f"{what}: its mean over seeds, the largest distance from 1 in {len(ratio)} settings"
    bar = f"ours: {near:.0%} of what is derived for d and n/k to infinity"
    return judge(id, text, Expected(max=near), found, bar=bar)
