"""What Section 3 says of linear, polynomial and thresholded models."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.base.estimate import Certain, Estimate, least, most
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of, proportion
from tacit.papers._shared.fits import exponent, listed
from tacit.papers.allenzhu2020.fig3.settings import WarmUp

REGIME = (
    "inside: Section 2's model at sigma_x = 0, k = d^{power:g}; o(1) and w.h.p. are read at these d"
)
NOISY = "inside: Section 2's model, k = d^{power:g}; 'of order 1' is read as sigma_x = 1"
FEW, MANY = 0.2, 2.0  # of k: what Theta(k) is read as
SMALL, TINY = 0.2, 0.05  # in units of 1/sqrt(k)
GOOD = 0.9  # 'good' or 'meaningful' clean accuracy


def claims(data: xr.Dataset, config: WarmUp, bench: Bench) -> tuple[Claim, ...]:
    """Fact 2.2, radii, noise."""
    where = "Section 3"
    judge = bench.claims(where, source="order", bar="paper: Theta(1/sqrt(d))",
                         regime=REGIME.format(power=config.power))  # fmt: skip
    noisy = judge.but(
        source="words",
        bar="ours: 'good' is read as nine in ten",
        regime=NOISY.format(power=config.power),
    )
    return (
        *sparse(data, config, judge),
        *fragile(data, config, judge),
        *robust(data, config, judge),
        *under_noise(data, config, noisy),
    )


def sparse(data: xr.Dataset, config: WarmUp, judge: Judge) -> Iterator[Claim]:
    """Fact 2.2, from the binomial law."""
    text = f"Pr[||z||_0 is outside [{FEW:g} k, {MANY:g} k]] at d = {max(config.fact):,}"
    others = ", ".join(f"{float(v):.1e} at d = {int(v.fact):,}" for v in data.outside[:-1])
    found = Certain(float(data.outside[-1]), f"a binomial law ({others})", len(config.fact))
    bar = "ours: a thousandth for w.h.p., 1/5 and 2 for Theta"
    yield judge(
        "fact2.2", text, Expected(max=1e-3), found, where="Fact 2.2", bar=bar, any_size=True
    )


def blocks(data: xr.DataArray, config: WarmUp) -> np.ndarray:
    """Medians over the points of each block, (d, block)."""
    size = data.sizes["point"] // config.blocks
    values = data.transpose("d", "point").values[:, : size * config.blocks]
    return np.median(values.reshape(len(config.d), config.blocks, size), axis=2)


def shares(held: xr.DataArray) -> list[Estimate]:
    """The share of points at each d; all are judged together."""
    n = held.sizes["d"]
    return [proportion(int(held.sel(d=d).sum()), held.sizes["point"], of=n) for d in held.d.values]


def fragile(data: xr.Dataset, config: WarmUp, judge: Judge) -> Iterator[Claim]:
    """Linear models."""
    upper = data.radius.sel(end="upper", drop=True)
    judge = judge.but(where="Section 3, issue 2")
    slope = exponent(config.d, blocks(upper.sel(model="linear"), config), over="blocks of points")
    text = "the linear model's critical radius is of order d^-1/2 (slope, log against log)"
    bar = "paper: Theta(1/sqrt(d)); 0.05 is ours"
    yield judge("linear", text, Expected(value=-0.5, tolerance=0.05), slope, bar=bar)
    beyond = data.linear > np.sqrt(2 * data.second)
    found = [
        e for direction in data.direction.values for e in shares(beyond.sel(direction=direction))
    ]
    text = "no linear model: at most half of the points outlive sqrt(2 E[z_i^2]) = O(1/sqrt(d)) "
    text += f"({', '.join(map(str, data.direction.values))}; the most)"
    bar = "derived: Chebyshev's inequality for every linear model, in the exhibit's docstring"
    yield judge("linear.every", text, Expected(max=0.5), most(found), bar=bar, source="words")


def robust(data: xr.Dataset, config: WarmUp, judge: Judge) -> Iterator[Claim]:
    """Thresholded models, and what no model can do."""
    judge = judge.but(where="Section 3, high-complexity models")
    unit = 1 / np.sqrt(data.k)
    lower = data.radius.sel(end="lower", drop=True)
    upper = data.radius.sel(end="upper", drop=True)
    hard, largest = lower.sel(model="thresholded"), max(config.d)
    for id, part, where, wrong in (
        ("thresholded", SMALL, "at every d", shares(hard <= SMALL * unit)),
        ("thresholded.small", TINY, f"at d = {largest:,}",
         shares((hard <= TINY * unit).sel(d=[largest]))),
    ):  # fmt: skip
        text = f"the thresholded model's robust error at {part:g}/sqrt(k) is at most {part:g} {where} (the most)"
        bar = "ours: 1 - o(1) at o(1/sqrt(k)), read as an error of at most c at c/sqrt(k)"
        yield judge(id, text, Expected(max=part), most(wrong), bar=bar)
    linear = (upper.sel(model="linear") > SMALL * unit).sel(d=[largest])
    text = f"the linear model's robust accuracy at {SMALL:g}/sqrt(k), d = {largest:,}"
    (share,) = shares(linear)
    yield judge("linear.same", text, Expected(max=0.1), share, bar="ours: one in ten for none")
    medians = {name: blocks(upper.sel(model=name), config) for name in upper.model.values}
    ratio = exponent([d / config.k(d) for d in config.d], medians["thresholded"] / medians["linear"],
                     over="blocks of points")  # fmt: skip
    text = "the thresholded model's critical radius over the linear one's grows at least as (d/k)^1/2 (slope)"
    yield judge("gap", text, Expected(min=0.45), ratio, bar="paper: sqrt(d/k); 0.05 is ours")
    near = medians["thresholded"] / medians["any"]
    found = [mean_of(row, of=len(near), over="blocks of points") for row in near]
    text = "the radius o(1/sqrt(k)) is optimal: the thresholded model's critical radius over the distance to the "
    text += "nearest z of the other label, which bounds every model's (least over d)"
    bar = "ours: two fifths for the same order"
    yield judge("optimal", text, Expected(min=0.4), least(found), bar=bar, source="words")
    clean = shares((lower.sel(model="relu") > 0).sel(d=[largest]))[0]
    text = f"with ReLUs in place of indicators the model is right too (clean accuracy at d = {largest:,})"
    yield judge("relu", text, Expected(min=GOOD), clean, bar="ours: nine in ten", source="ours")
    models = ["thresholded", "relu"]
    wide = ((upper - lower) / upper.where(upper > 0, 1.0)).sel(model=models)
    gap = Certain(float(wide.max()), "both ends were computed", wide.size)
    text = "the ends of the radii differ by a thousandth of them (the most)"
    yield judge(
        "exact", text, Expected(max=2e-3), gap, source="check", bar="ours: a fifth of a percent"
    )


def under_noise(data: xr.Dataset, config: WarmUp, judge: Judge) -> Iterator[Claim]:
    """Section 3, issue 1, and footnote 3."""
    judge, largest, n = judge.but(where="Section 3, issue 1"), max(config.d), config.samples
    if 1.0 in config.sigma_x:
        at = data.sel(sigma_x=1.0)
        each = [mean_of(row, of=len(config.d), over="samples") for row in at.linear_chance.values]
        text = "at sigma_x = 1 the linear model has no good clean accuracy at any d (the most)"
        yield judge("noise.linear", text, Expected(max=GOOD), most(each))
        counts = at.polynomial.sel(d=largest)
        found = [proportion(int(c), n, of=len(counts), over="samples") for c in counts.values]
        tried = listed(config.degrees)
        text = f"at sigma_x = 1, d = {largest:,} no polynomial of degree {tried} is accurate (the most)"
        why = "see noise.ones: powers tell the coordinates with |z_i| = 1 from noise"
        yield judge("noise.polynomial", text, Expected(max=GOOD), most(found), because=why,
                    where="Section 3, footnote 3")  # fmt: skip
        right = proportion(int(at.thresholded.sel(d=largest)), n, over="samples")
        text = (
            f"at sigma_x = 1 the thresholded model is right on nearly all points, d = {largest:,}"
        )
        bar = "ours: 0.97 for w.h.p."
        yield judge(
            "noise.thresholded", text, Expected(min=0.97), right, bar=bar, where="Section 3"
        )
    sigma = max(config.sigma_x)
    at = data.sel(sigma_x=sigma, d=largest)
    best = proportion(int(at.polynomial.isel(degree=-1)), n, over="samples")
    text = f"at sigma_x = {sigma:g}, d = {largest:,} the polynomial of degree {config.degrees[-1]} still has "
    text += "clean accuracy of a constant above 1/2: odd powers tell |z_i| = 1 from noise, whatever sigma_x is"
    ours = judge.but(source="ours", where="Section 3, footnote 3", bar="ours: 0.65")
    yield ours("noise.ones", text, Expected(min=0.65), best)
    linear = mean_of(at.linear_chance.values, over="samples")
    text = f"there the linear model is near guessing (sigma_x = {sigma:g}, d = {largest:,})"
    yield ours("noise.guess", text, Expected(max=0.65), linear, bar="derived: 1/2 + O(1/sigma_x)")
