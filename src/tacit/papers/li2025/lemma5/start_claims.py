"""What `li2025.lemma5` claims of samples and starts: Appendix A, and Lemma B.1 inside the assumptions."""

import math
from collections.abc import Iterator

import xarray as xr

from tacit.base.estimate import Certain
from tacit.lab import Claim, Expected, Judge
from tacit.measure import proportion
from tacit.papers._shared.universal import for_every
from tacit.papers.li2025._shared.starts import COUNTS, DEEPEST, extremes, promise
from tacit.papers.li2025.lemma5.draws import n_of_A12
from tacit.papers.li2025.lemma5.settings import Coefficients

KEEPS = Expected(max=1.0)


def starts(data: xr.Dataset, config: Coefficients, judge: Judge) -> Iterator[Claim]:
    """Samples (A.6), weights and biases (A.9, A.10), active points (A.12), and the largest start allowed."""
    d, k, n = config.d, config.k, config.n
    rare = 8 * n**2 * d ** (-math.log(d) / 2) + 2 * k * (n / k) ** -math.log(n / k)
    bar = f"paper: of all samples but {rare:.1g}, 8 n^2 d^(-ln(d)/2) + 2k (n/k)^(-ln(n/k))"
    text = "seven properties of a sample, the largest part that one takes of its bound"
    told = judge.but(where="Proposition A.6", bar=bar)
    yield for_every(told, "A6", text, KEEPS, data.A6.max("property"), over="samples")
    yield from gaussians(judge)
    yield from sizes(data, config, judge)
    yield from active(data, config, judge)
    yield from allowed(data, config, judge)


def gaussians(judge: Judge) -> Iterator[Claim]:
    """Lemma A.9 by the exact chances."""
    judge = judge.but(
        where="Lemma A.9",
        bar="paper: the bound itself, and 1e-12 for rounding; l and t on a grid of ours",
        regime="inside: any l, any t (to 2 ln l for the largest, where the root ends)",
    )
    least, largest = extremes()
    many = f"the most for l = 1 to {max(COUNTS):,}"
    rows = (
        ("A9.min", "the least of l Gaussians is <= -sqrt(2 ln l) - t: ln of the chance, less that of "
         f"exp(-t^2/2)/2, {many}, t to {DEEPEST:g}", least),
        ("A9.max", "the largest of l Gaussians is <= sqrt(2 ln l - t): ln of the chance, plus "
         f"e^(t/2)/(sqrt(2 pi) (sqrt(2 ln l) + 1)), {many}, t to 2 ln l", largest),
    )  # fmt: skip
    for id, text, value in rows:
        found = Certain(value, "chances by the normal distribution, no draws", len(COUNTS))
        yield judge(id, text, Expected(max=1e-12), found, any_size=True)


def sizes(data: xr.Dataset, config: Coefficients, judge: Judge) -> Iterator[Claim]:
    """Proposition A.10: the weights, all but never beyond; the biases, beyond as often as it says at most."""
    d, m = config.d, config.m
    judge = judge.but(where="Proposition A.10")
    rare = 4 * m * d ** -math.log(d)
    text = "| ||w(0)||/sigma_w - sqrt(d) | over 2 ln d, the largest of a start"
    told = judge.but(bar=f"paper: of all starts but {rare:.1g}, 4m d^(-ln d)")
    yield for_every(told, "A10", text, KEEPS, data.A10, over="starts")

    limit, least = 2 * math.sqrt(2 * math.log(m)), 1 - 2 * m**-3.0
    small = int((data.largest_bias <= limit).sum())
    text = (
        f"share of starts whose biases are all at most 2 sigma_b sqrt(2 ln m) = {limit:.3g} sigma_b"
    )
    empty = "" if least > 0 else "1 - 2 m^-3 is negative at m = 1; from m = 2 on it is not"
    yield judge(
        "A10.bias",
        text,
        Expected(min=least),
        proportion(small, config.starts, over="starts"),
        bar=f"paper: 1 - 2 m^-3 = {least:.3g}",
        vacuous=empty,
    )


def active(data: xr.Dataset, config: Coefficients, judge: Judge) -> Iterator[Claim]:
    """Proposition A.12: its law here, its promise where that is not empty, and its limit."""
    k, n, m = config.k, config.n, config.m
    judge = judge.but(where="Proposition A.12")
    law = (1 - math.ceil(n / (3 * k * m**2)) / (n / k + 1)) ** (2 * m * k)
    reached = proportion(int(data.reached), config.starts, over="starts")
    share = f"share of starts where each of {2 * m * k} pairs (neuron, cluster) has n/(3km^2) active points"
    bar = "derived: their number is uniform on 0..n/k; 0.03 for uneven clusters (the paper promises < 0 here)"
    expected = Expected(value=law, tolerance=0.03)
    yield judge("A12.law", share, expected, reached, source="ours", bar=bar)

    many = n_of_A12(config)
    least = promise(many, m, 2 * m * k, 9 * k * m**2)
    reached = proportion(int(data.reached_many), config.starts, over="starts")
    text = f"{share}, with n = {many:,} points: as many as make the promise half of its limit in n"
    bar = f"paper: 1 - m^-0.01 - 2mk exp(-n/(9km^2)) = {least:.2g}"
    empty = (
        ""
        if least > 0
        else "at m = 1 the promise is negative whatever n is; from m = 2 on it is not"
    )
    yield judge("A12", text, Expected(min=least), reached, bar=bar, vacuous=empty)

    text = "the probability that each pair has n/(3km^2) active points, for m = k to infinity"
    limit = Certain(
        math.exp(-2 / 3), "a derivation, no measurement: (1 - 1/(3m^2))^(2mk), the exact law"
    )
    bar = "paper: 1 - m^-0.01 - 2mk exp(-n/(9km^2)) goes to 1"
    because = (
        "a derivation from the law that A12.law tests, so the same at every seed and size: the proof takes the "
        "least over 2m neurons where there are 2mk pairs (the promise itself is above the law from m = 2e31 on)"
    )
    sure, regime = Expected(value=1.0, tolerance=1e-3), "inside: m = k, n >= k^7"
    yield judge(
        "A12.limit", text, sure, limit, because=because, bar=bar, regime=regime, any_size=True
    )


def allowed(data: xr.Dataset, config: Coefficients, judge: Judge) -> Iterator[Claim]:
    """Lemmas A.13 and A.14 at the largest start that Assumption 4.3 allows, and Lemma B.1 one step on."""
    size = f"k = {config.inside}, d = k^10, n = k^7, m = k, eta = 1/d^2, sigma_w^2 = eta/k^5"
    judge = judge.but(regime=f"inside: Assumption 4.3 with constants 1, {size}")
    excess = float(data.inside_A13.mean())
    told = judge.but(where="Lemma A.13")
    text = "largest |<w(0), x> + b| over eta sqrt(d)/(nm)"
    because = "sigma_w^2 = eta/k^5 gives sqrt(2d) sigma_w, n m d k^-2.5 times as much or so"
    yield for_every(told, "A13", text, KEEPS, data.inside_A13, because, "starts")

    told = judge.but(where="Lemma A.14")
    text = "-y l'(0) at all points: the largest over 2/3, or 1/3 over the least"
    yield for_every(told, "A14", text, KEEPS, data.inside_A14, over="starts")

    told = judge.but(where="Lemma 5.5, Lemma B.1")
    text = "share of pairs of a neuron and a point of its class that are active after one step"
    because = f"one step is too short for the largest start allowed, {excess:.2g} times what Lemma A.13 has"
    every = Expected(min=1.0)
    yield for_every(told, "inside", text, every, data.inside_active, because, "starts")
