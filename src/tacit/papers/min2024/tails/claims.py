"""What is judged: each bound at C = 1/2, how much faster the truth falls, and what the methods are worth."""

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.base.estimate import Certain, Estimate, farthest, most
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.papers.min2024.tails.bounds import NAMES, Printed
from tacit.papers.min2024.tails.settings import Tails

WHERES = {
    "prop1.F": "Section 3, Proposition 1",
    "prop1.Fp": "Section 3, Proposition 1",
    "thm1.Fp": "Section 3, Theorem 1; min2025, Poster, Theorems",
    "thm3.F": "Appendix C.4, Theorem 3",
    "thm3.Fp": "Appendix C.4, Theorem 3",
}
EVENTS = {
    "prop1.F": "F errs",
    "prop1.Fp": "F^(p) errs, p >= 1",
    "thm1.Fp": "F^(2) is broken within (sqrt(2)-delta)/2",
    "thm3.F": "F is broken within (1-rho)/sqrt(K)",
    "thm3.Fp": "F^(2) survives (sqrt(2)+delta)/2",
}
STATED = "no more often than stated, C = 1/2 (largest log10 of P over the bound)"
LEMMA = "derived: C = 1/2 is what the Gaussian tail lemma of the proof gives"
INTEGRAL = "tail integrals, no sample"
PERTURBED = ("thm1.Fp", "thm3.Fp")
TENTH = 10**0.1 - 1  # a tenth of a decade, of a probability
SLOPE = 0.05
SLOPE_BAR = "ours: 5%; a Gaussian tail's own factor bends the slope by 2%"


def claims(data: xr.Dataset, config: Tails, bench: Bench) -> Iterator[Claim]:
    """For each bound: the largest log10(P/bound) over settings, and its exponent against the truth's."""
    told = f"bounds from {max(config.bound):g} to {min(config.bound):g}, K = {', '.join(map(str, config.K))}"
    regime = (
        f"inside: stated for every D, K, alpha; here D/alpha^2 is solved from the bound, {told}"
    )
    judge = bench.claims("Section 3", source="formula", bar=LEMMA, regime=regime)
    below = Expected(max=0.0)
    for name in NAMES:
        over = (data[name] - np.log(data.bound)) / math.log(10)
        text = (
            f"{EVENTS[name]} no more often than stated, C = 1/2 (largest log10 of P over the bound)"
        )
        why = "the probability is above the bound with C = 1/2"
        yield judge(name, text, below, Certain(float(over.max()), INTEGRAL, over.size), because=why,
                    where=WHERES[name], any_size=True)  # fmt: skip
        if name in PERTURBED:
            yield from sampled_claims(data, config, judge.but(where=WHERES[name]), name)
        slopes, theory = exponents(data, config, name)
        gap = abs(slopes / theory - 1)
        text = f"the exponent of P is {ratio_told(theory)} times the bound's, as the nearest failure has it"
        yield judge(f"{name}.exponent", f"{text} (largest relative gap)", Expected(max=SLOPE),
                    Certain(float(gap.max()), INTEGRAL, gap.size), source="ours", any_size=True,
                    where=WHERES[name], bar=SLOPE_BAR)  # fmt: skip
    yield from checks(data, config, bench)


def sampled_claims(data: xr.Dataset, config: Tails, judge: Judge, name: str) -> Iterator[Claim]:
    """The same bound at p > 2, where there is no integral."""
    for p in config.sampled:
        cells = data.sampled.sel(event=name, power=p).transpose("K", "bound", "end")
        over = (cells - np.log(data.bound)).transpose("K", "bound", "end").values / math.log(10)
        found = most(
            estimate(ends, config.n, "pairs of points") for ends in over.reshape(-1, 3).tolist()
        )
        text = EVENTS[name].replace("F^(2)", f"F^({p:g})") + f" {STATED}"
        yield judge(f"{name}.p{p:g}", text, Expected(max=0.0), found)


def exponents(data: xr.Dataset, config: Tails, name: str) -> tuple[np.ndarray, np.ndarray]:
    """d log P / d log bound between the two least bounds, and the nearest failure's ratio, by K (and p)."""
    last, before = sorted(config.bound)[:2]
    fall = data[name].sel(bound=last) - data[name].sel(bound=before)
    slopes = fall / math.log(last / before)
    pairs = [
        (Printed(K, config.rho, config.delta), K1)
        for K, K1 in zip(config.K, config.K1, strict=True)
    ]
    if "p" not in slopes.dims:
        return slopes.values, np.array([printed.exponents(name, 2.0, K1) for printed, K1 in pairs])
    theory = [[printed.exponents(name, p, K1) for p in config.p] for printed, K1 in pairs]
    return slopes.transpose("K", "p").values, np.array(theory)


def ratio_told(theory: np.ndarray) -> str:
    """4, or 2 to 50."""
    low, high = float(theory.min()), float(theory.max())
    return f"{low:.3g}" if math.isclose(low, high) else f"{low:.3g} to {high:.3g}"


def checks(data: xr.Dataset, config: Tails, bench: Bench) -> Iterator[Claim]:
    """The integrals beside importance sampling and beside plain counts."""
    judge = bench.claims(
        "Section 3", source="check", bar="ours: a tenth of a decade, of bounds that differ by decades",
        regime="inside: the same settings",
    )  # fmt: skip
    gap = (data.sampled.sel(event="prop1.Fp") - data.clean).transpose("K", "power", "bound", "end")
    ratios = [
        estimate(ends, config.n, "pairs of points")
        for ends in np.exp(gap.values).reshape(-1, 3).tolist()
    ]
    text = "importance sampling gives the integrals of clean errors at p > 2 (largest relative gap)"
    yield judge("check.sampled", text, Expected(max=TENTH), farthest(ratios))
    cells = data.counted.transpose("K", "what", "end").values.reshape(-1, 3).tolist()
    text = "plain counts give the integrals where failures are common (largest relative gap)"
    found = farthest(estimate(ends, config.counted, "points") for ends in cells)
    yield judge("check.counted", text, Expected(max=TENTH), found,
                regime="inside: 1/s = 2.5, where the bounds say nothing")  # fmt: skip


def estimate(ends: list[float], n: int, over: str) -> Estimate:
    """From value, low, high."""
    value, low, high = ends
    return Estimate(value, low, high, n, over)
