"""What `li2025.thm4.7` claims, where the theorem's window begins: eta T = k^8."""

import math

import numpy as np
import xarray as xr

from tacit.lab import Bench, Claim, Expected
from tacit.measure import proportion
from tacit.papers._shared.fits import farthest
from tacit.papers.li2025.sweeps.settings import Sweep
from tacit.papers.li2025.sweeps.sweep import class_growth, exponent_claim, over_settings

WHERE = "Theorem 4.7"
AXES = ("d", "k", "n")
PROVED = 0.1  # of sqrt(d): the radius of the proof


def claims(data: xr.Dataset, config: Sweep, bench: Bench) -> tuple[Claim, ...]:
    """Radius, weights, and clean accuracy."""
    return (
        *radius_claims(data, config, bench),
        *weight_claims(data, config, bench),
        *dead_claims(data, config, bench),
    )


def radius_claims(data: xr.Dataset, config: Sweep, bench: Bench) -> list[Claim]:
    """Exponents and prefactor of the attacked radius, and what is certified."""
    settings = over_settings(config, AXES, 8.0)
    text = "critical radius of the order sqrt(d) at eta T = k^8 (attacked; outside Assumption 4.3)"
    theory = math.sqrt(config.d[-1] / 2 / (1 + config.k0 / config.n0))
    largest = data.radius_d.isel(d=-1).values / theory
    lower, upper = data.certified.transpose("end", "point").values
    kept = proportion(int((lower > PROVED).sum()), lower.size)
    clean = proportion(round(float(settings.of(data, "clean").min()) * config.test), config.test)
    return [
        *(
            exponent_claim(
                f"radius.{axis}", text, f"{WHERE}, 3", power, data[f"radius_{axis}"], bench
            )
            for axis, power in (("d", 0.5), ("k", 0.0), ("n", 0.0))
        ),
        exponent_claim(
            "radius.k.early",
            "the same at eta T = 1, before the window",
            f"{WHERE}, 3",
            0.0,
            data.early_k,
            bench,
        ),
        bench.judge(
            "radius.prefactor",
            f"critical radius over sqrt(d/2)/sqrt(1 + k/n) at d = {config.d[-1]}",
            f"{WHERE}, 3",
            Expected(value=1.0, tolerance=0.03),
            float(largest.mean()),
            spread=float(np.ptp(largest)) / 2,
            n=config.repeats * config.points,
        ),
        bench.judge(
            "radius.certified",
            "no perturbation of length sqrt(d)/10, the proof's, breaks a test point (measured: the certified "
            f"share at the base; certified median {np.median(lower):.3f} sqrt(d), attacked "
            f"{np.median(upper):.3f})",
            f"{WHERE}, 3",
            Expected(min=0.99),
            kept.value,
            spread=kept.spread,
            n=lower.size,
        ),
        bench.judge(
            "radius.least",
            "no attacked radius in any setting is below sqrt(d)/10 (measured: the least, over sqrt(d))",
            f"{WHERE}, 3",
            Expected(min=PROVED),
            float((settings.of(data, "least") / np.sqrt(settings.d)).min()),
            n=len(settings.rows) * config.repeats * config.points,
        ),
        bench.judge(
            "clean",
            f"clean accuracy is 1 - exp(-Omega(log^2 d)) (measured: the least of all settings, {config.test} "
            "points)",
            f"{WHERE}, 1",
            Expected(min=0.99),
            clean.value,
            spread=clean.spread,
            n=config.test,
            because="a class none of whose h neurons learned its feature is not recognised",
        ),
    ]


def weight_claims(data: xr.Dataset, config: Sweep, bench: Bench) -> list[Claim]:
    """The median neuron's distance to its feature, and lambda."""
    settings = over_settings(config, AXES, 8.0)
    text = "sqrt(d) ||w_jr - lambda mu_j/||mu_j||^2|| / lambda of the median neuron; remembered noise, sqrt(k/n)"
    largest = data.close_d.isel(d=-1).values * math.sqrt(config.n0 / config.k0)
    law = [
        class_growth(*row, config.h, time)
        for row, time in zip(settings.rows, settings.times, strict=True)
    ]
    lam = settings.of(data, "lam")
    return [
        *(
            exponent_claim(
                f"close.{axis}", text, f"{WHERE}, 2", power, data[f"close_{axis}"], bench
            )
            for axis, power in (("k", 0.5), ("n", -0.5))
        ),
        bench.judge(
            "close.d",
            f"{text}: d alone does not make it small (measured: the ratio at d = {config.d[-1]})",
            f"{WHERE}, 2",
            Expected(value=1.0, tolerance=0.1),
            float(largest.mean()),
            spread=float(np.ptp(largest)) / 2,
            n=config.repeats,
        ),
        bench.judge(
            "lambda",
            "lambda over the law q + (e^q - 1)/(k-1) = kappa (d/(hk)) eta T, q = kappa lambda, the mean over "
            "seeds farthest from 1",
            "Appendix C.2, Corollary C.8",
            Expected(value=1.0, tolerance=0.05),
            farthest(lam.mean(1) / np.array(law)),
            n=lam.size,
        ),
        bench.judge(
            "lambda.log",
            "lambda >= 2 ln k at eta T = k^8 (measured: the least ratio)",
            "Appendix C.3, after Lemma C.24",
            Expected(min=1.0),
            float((lam / (2 * np.log(settings.k))).min()),
            n=lam.size,
        ),
    ]


def dead_claims(data: xr.Dataset, config: Sweep, bench: Bench) -> list[Claim]:
    """Neurons that learn nothing: none by the theorem, up to 1/(|I_j| + 1) of them by the start."""
    settings = over_settings(config, AXES, 8.0)
    dead = settings.of(data, "dead").sum()
    due = float(settings.of(data, "expected_dead").sum())
    neurons = int((settings.k * config.h).sum() * config.repeats)
    return [
        bench.judge(
            "dead",
            f"every neuron is near its feature (measured: how many of {neurons} have less than half of lambda)",
            f"{WHERE}, 2; Lemma C.5",
            Expected(value=0.0),
            float(dead),
            n=neurons,
            because="a neuron that no point of its cluster activates at the start may stay off: that "
            "has probability 1/(|I_j| + 1), k/n, which Lemma C.5 needs small for all hk neurons at once",
        ),
        bench.judge(
            "dead.count",
            "no more than the start leaves off: the sum over neurons of 1/(|I_j| + 1) (noise of other clusters' "
            "points revives some)",
            "Proposition C.3",
            Expected(max=due, tolerance=2 * math.sqrt(due)),
            float(dead),
            n=neurons,
        ),
    ]
