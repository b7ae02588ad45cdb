"""What `li2025.thm4.5` claims: exponents with intervals over seeds, and the sizes behind the theorem's O()."""

import math

import numpy as np
import xarray as xr

from tacit.lab import Bench, Claim, Expected, judge
from tacit.measure import proportion
from tacit.papers._shared.fits import farthest
from tacit.papers.li2025.sweeps.settings import Sweep
from tacit.papers.li2025.sweeps.sweep import epsilon, exponent_claim, growth, over_settings

WHERE = "Theorem 4.5"
OUTSIDE = "outside Assumption 4.3"


def claims(data: xr.Dataset, config: Sweep, bench: Bench) -> tuple[Claim, ...]:
    """Radius, weights, biases and lambda, clean accuracy, and the proof's perturbation."""
    return (
        *radius_claims(data, config, bench),
        *weight_claims(data, config, bench),
        *accuracy_claims(data, config, bench),
        *proof_claims(data, config, bench),
    )


def radius_claims(data: xr.Dataset, config: Sweep, bench: Bench) -> list[Claim]:
    """Exponents of the critical radius, its prefactor, and how soon nothing survives."""
    settings = over_settings(config)
    theory = np.sqrt(settings.d / (settings.k * (1 + settings.k / settings.n)))
    ratio = settings.of(data, "radius") / theory
    most = settings.of(data, "most") / np.sqrt(settings.d / settings.k)
    text = f"critical radius of the order sqrt(d/k), {OUTSIDE}"
    return [
        exponent_claim(f"radius.{axis}", text, f"{WHERE}, 3", power, data[f"radius_{axis}"], bench)
        for axis, power in (("d", 0.5), ("k", -0.5), ("n", 0.0), ("time", 0.0))
    ] + [
        bench.judge(
            "radius.prefactor",
            "critical radius over sqrt(d/k)/sqrt(1 + k/n), the mean over seeds farthest from 1 in all settings "
            f"({OUTSIDE})",
            f"{WHERE}, 3",
            Expected(value=1.0, tolerance=0.05),
            farthest(ratio.mean(1)),
            n=ratio.size * config.points,
        ),
        judge(
            "radius.certified",
            "the attacked radii are certified at the base setting (measured: the largest ratio to the "
            "certificate)",
            f"{WHERE}, 3",
            Expected(value=1.0, tolerance=1e-6),
            float(data.certified.max()),
            n=data.sizes["point"],
            smoke=False,
        ),
        bench.judge(
            "radius.order",
            f"robust accuracy is 0 at C sqrt(d/k) with C = 2(1+c) = 4 (measured: the least C at which none of "
            f"{config.points} points survives, the largest in all settings)",
            f"{WHERE}, 3",
            Expected(max=4.0),
            float(most.max()),
            n=ratio.size * config.points,
        ),
    ]


def weight_claims(data: xr.Dataset, config: Sweep, bench: Bench) -> list[Claim]:
    """How far weights are from the averages, biases from zero, and lambda from its law."""
    settings = over_settings(config)
    eps = np.array([epsilon(*row) for row in settings.rows])[:, None]
    close, lam = settings.of(data, "close"), settings.of(data, "lam")
    bias = settings.of(data, "bias")
    times = np.array(settings.times)
    law = np.array(
        [growth(*row, config.m, time) for row, time in zip(settings.rows, times, strict=True)]
    )
    late = times >= 0.3  # before, margins are not balanced yet
    text = "sqrt(d) ||w - lambda sum_J mu_j/||mu_j||^2|| / lambda, the largest of a neuron"
    floor = "noise of the own points, remembered: k/sqrt(2n)"
    powers = (("k", 1.0), ("n", -0.5), ("time", 0.0))
    remembered = settings.of(data, "noise") * np.sqrt(2 * settings.n) / settings.k
    largest = data.noise_d.isel(d=-1).values * math.sqrt(2 * config.n0) / config.k0
    return [
        exponent_claim(
            f"close.{axis}", f"{text}; {floor}", f"{WHERE}, 2", power, data[f"close_{axis}"], bench
        )
        for axis, power in powers
    ] + [
        bench.judge(
            "close.d",
            f"d alone does not make it small: its part L4 stays at the {floor} (measured: the ratio at d = "
            f"{config.d[-1]})",
            f"{WHERE}, 2",
            Expected(value=1.0, tolerance=0.1),
            float(largest.mean()),
            spread=float(np.ptp(largest)) / 2,
            n=len(largest),
        ),
        bench.judge(
            "close.L4",
            f"L4 is the {floor} in every setting from time 0.3 on (measured: the ratio farthest from 1)",
            "Lemma B.25",
            Expected(value=1.0, tolerance=0.1),
            farthest(remembered[late].mean(1)),
            n=remembered.size,
            because="at few points a cluster, uneven counts: the sum over own clusters of 1/|I_j| is larger",
        ),
        bench.judge(
            "close.eps",
            f"{text}: at most C eps with C = 204 sqrt(k) + k + ..., Lemma B.25's (measured: the largest C; eps = "
            f"{eps.min():.2g} to {eps.max():.2g} here, so the bound is idle)",
            "Lemma B.25",
            Expected(max=204 * math.sqrt(min(config.k))),
            float((close / eps).max()),
            n=close.size,
        ),
        bench.judge(
            "bias.eps",
            "biases are at most eps/6 (measured: the largest ratio)",
            "Lemma B.10",
            Expected(max=1.0),
            float((6 * bias / eps).max()),
            n=bias.size,
        ),
        bench.judge(
            "bias",
            "the largest bias over lambda |J_s|/d, the mean over seeds farthest from 1 from time 0.3 on",
            f"{WHERE}, 2",
            Expected(value=1.0, tolerance=0.15),
            farthest((bias * settings.d / lam / (settings.k / 2))[late].mean(1)),
            n=bias.size,
            because="the bias follows the points, lambda the clusters: the class with more points has a larger "
            "one",
        ),
        bench.judge(
            "lambda",
            "lambda over its law (1/kappa) ln(1 + kappa eta T d/(mk)) and so on, farthest from 1 from time 0.3 "
            "on",
            "Section 5.3, Step 2",
            Expected(value=1.0, tolerance=0.05),
            farthest((lam / law[:, None])[late].mean(1)),
            n=lam.size,
        ),
    ]


def accuracy_claims(data: xr.Dataset, config: Sweep, bench: Bench) -> list[Claim]:
    """Clean accuracy in the worst setting."""
    settings = over_settings(config)
    clean = settings.of(data, "clean")
    right = proportion(round(float(clean.min()) * config.test), config.test)
    log = float(np.log(settings.d).max())
    constant = -math.log(max(1 - right.low, 1e-300)) / log**2
    return [
        bench.judge(
            "clean",
            f"clean accuracy is 1 - exp(-Omega(log^2 d)) (measured: the least of all settings; C log^2 d with C "
            f"up to {constant:.2g} is supported by {config.test} test points)",
            f"{WHERE}, 1",
            Expected(min=0.99),
            right.value,
            spread=right.spread,
            n=config.test,
        )
    ]


def proof_claims(data: xr.Dataset, config: Sweep, bench: Bench) -> list[Claim]:
    """The perturbation of Step 5 and its length."""
    settings = over_settings(config)
    flipped = proportion(
        round(float(settings.of(data, "flipped").min()) * config.test), config.test
    )
    k = min(config.k)
    length = 4 / math.sqrt(k) / math.sqrt(2)
    return [
        bench.judge(
            "proof.flips",
            "rho = -y 2(1+c)/k (S+ - S-), c = 1, breaks nearly every test point (measured: the least share of "
            "all settings)",
            "Section 5.3, Step 5",
            Expected(min=0.99),
            flipped.value,
            spread=flipped.spread,
            n=config.test,
        ),
        judge(
            "proof.length",
            f"rho is shorter than the way to a centre of the other class: 4 sqrt(d/k) / sqrt(2d) at k = {k}",
            "Section 5.3, Step 5",
            Expected(max=1.0),
            length,
            n=1,
            smoke=False,
            because="for k < 8 rho is longer than the distance of two centres, which breaks any classifier; a "
            "quarter of it is enough at every k: the radius is sqrt(d/k)",
        ),
    ]
