"""Exponents in d, against what the theorems say of them."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.lab import Bench, Claim, Expected, Judge
from tacit.papers._shared.fits import exponent, listed
from tacit.papers.allenzhu2020._shared.settings import regime_of
from tacit.papers.allenzhu2020.scaling.settings import Rule

FALLS = Expected(max=0.0)
# name, where, what is o(1)
SMALL = {
    "clean_error": ("Theorem 5.1(b)", "the clean error after clean training"),
    "clean_robust": ("Theorem 5.1(c)", "the clean net's robust accuracy at tau"),
    "kept": ("Theorem 5.1(a)", "sum <w, w0>^2 over sum ||w||^2 ||w0||^2"),
    "overlap": ("Theorem 5.1(a)", "sum <w_i, w_j>^2 over (sum ||w_i||^2)^2"),
    "pure_robust_error": (
        "Theorem 5.3(b)",
        "the purified net's robust error at tau (worst attack)",
    ),
    "moved": ("Theorem 5.3(c)", "sum ||w - w'||^2 over sum ||w||^2"),
    "pure_error": ("Theorem 5.3", "the clean error after adversarial training"),
    "theta_start": ("Section 1", "theta(w0, w), the median over neurons that fire"),
    "mixture_pure": ("Section 5.1", "the purified net's mean mixture coefficient over alpha"),
}


def claims(data: xr.Dataset, config: Rule, bench: Bench) -> tuple[Claim, ...]:
    """For each margin: what is o(1) falls, the mixture is k/d, the universal radius 1/sqrt(k) in order."""
    made: list[Claim] = []
    for margin in config.margin:
        regime = regime_of(config.at(config.d[0], margin))
        judge = bench.claims("Section 5.1", source="order", bar="paper: o(1), so the exponent in d is negative",
                             regime=regime)  # fmt: skip
        made += of_margin(data.sel(margin=margin), config, judge, "" if margin else ".printed")
    return tuple(made)


def values_of(data: xr.Dataset, name: str, config: Rule) -> np.ndarray:
    """(d, seed); shares that may be 0 are at least half a point."""
    values = data[name].transpose("d", "seed").values.astype(float)
    shares = name in ("clean_error", "pure_error", "clean_robust", "pure_robust_error")
    return np.maximum(values, 0.5 / config.points) if shares else values


def of_margin(data: xr.Dataset, config: Rule, judge: Judge, end: str) -> Iterator[Claim]:
    """One margin."""
    over = "seeds"
    for name, (where, what) in SMALL.items():
        values = values_of(data, name, config)
        slope = exponent(config.d, values, over=over)
        text = f"{what} falls with d (exponent, d = {listed(config.d)})"
        nothing = "" if np.ptp(values) else "it is at its floor, half a point, at every d"
        yield judge(f"{name}{end}", text, FALLS, slope, where=where, vacuous=nothing)
    ratio = [config.k(d) / d for d in config.d]
    values = values_of(data, "mixture", config)
    if (values > 0).all():
        slope = exponent(ratio, values, over=over)
        text = "the mean mixture coefficient over alpha is of order k/d (exponent in k/d)"
        bar = "paper: k/d up to d^c; 0.3 is ours"
        yield judge(
            f"mixture{end}",
            text,
            Expected(value=1.0, tolerance=0.3),
            slope,
            where="Theorem 5.2",
            bar=bar,
        )
    else:
        yield judge.cannot(f"mixture{end}", "the mean mixture coefficient is of order k/d", Expected(value=1.0),
                           "in one training it is not positive", where="Theorem 5.2")  # fmt: skip
    values = values_of(data, "universal", config) * np.sqrt([[config.k(d)] for d in config.d])
    text = "the universal direction breaks half of the points at O(1/sqrt(k)) (exponent of radius times sqrt(k))"
    if np.isfinite(values).all():
        yield judge(f"universal{end}", text, FALLS, exponent(config.d, values, over=over),
                    where="Theorem 5.1(c)", bar="paper: every tau from k^-(0.5+10c) on")  # fmt: skip
    else:
        yield judge.cannot(f"universal{end}", text, FALLS, "some net has half of its points unbroken",
                           where="Theorem 5.1(c)")  # fmt: skip
