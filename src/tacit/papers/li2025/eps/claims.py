"""What `li2025.eps` claims: each bound where it could fail, and where not, the size it takes."""

import xarray as xr

from tacit.lab import Bench, Claim, Judge
from tacit.papers._shared.universal import for_every
from tacit.papers.li2025._shared.bounds import (
    KEEPS,
    Size,
    bounds,
    induction,
    products,
    unconditional,
)
from tacit.papers.li2025._shared.lemmas import NETS, constants
from tacit.papers.li2025.eps.settings import Small
from tacit.papers.li2025.sweeps.sweep import epsilon

LATE = "T <= exp(sqrt k), which is below 1/eta to k = 46,133"
STEPS = "(21) in the proof needs eps of .0044 or less, with k labels .0011 at k = 3"
INSIDE = "inside: Assumption 4.3 with constants 1, at the start"
BOUND = "paper: the bound itself"
POWERS = 20, 14  # of k, for d and n: twice those that Assumption 4.3 has for the least
OURS = "ours: the paper's constants, with eps_hat for eps"
LATE_START = "the largest start that Assumption 4.3 allows takes of the order of sqrt(d) steps to be forgotten"


def claims(data: xr.Dataset, config: Small, bench: Bench) -> tuple[Claim, ...]:
    """Both nets: the induction, what it rests on, the weights, and the same with eps_hat; then the start."""
    judge = bench.claims("Lemma B.7", source="formula", bar=BOUND, regime=INSIDE)
    found: list[Claim] = []
    for net in NETS:
        at = constants(net, config.k)
        many, whole = (size_of(data, config, net, name) for name in ("apart", "exact"))
        far, near = (judge.but(regime=regime_of(of)) for of in (many, whole))
        found += bounds(induction(many, at), far, many)
        found += unconditional(many, at, far)
        found += bounds(products(whole, at), near, whole)
        with_hat = near.but(source="ours", bar=OURS)
        found += bounds(induction(whole, at, hat=True), with_hat, whole)
    return (*found, start(data, config, judge))


def regime_of(of: Size) -> str:
    """What the lemmas assume and these trainings do not have."""
    sizes = (
        "" if of.d >= of.k**10 and of.n >= of.k**7 else "d >= k^10 and n >= k^7 (Assumption 4.3), "
    )
    aside = int(of["redrawn"].sum())
    given = f"given that each neuron begins with an own point ({aside} draws set aside)"
    return f"outside: {sizes}{LATE}; eps is {of.eps:.2g}, and {STEPS}; {given}; read once a decade of t"


def size_of(data: xr.Dataset, config: Small, net: str, name: str) -> Size:
    """One of the four settings."""
    d, n = (config.d, config.n) if name == "apart" else (config.d_exact, config.n_exact)
    return Size(data, f"{net}_{name}_", net, config.k, float(d), n, float(d) ** -2, LATE_START)


def start(data: xr.Dataset, config: Small, judge: Judge) -> Claim:
    """The proofs' sqrt(d) ||w(0)|| <= eps of starts drawn at twice the assumption's powers of k."""
    (d, n), (power, other) = sizes_of_start(config), POWERS
    size = f"k = {config.k}, d = k^{power}, n = k^{other}"
    part = data.largest_start / epsilon(d, config.k, n)
    because = "eta = 1/d^2 and sigma_w^2 = eta/k^5 make it k^-2.5, and eps is o(k^-2.5)"
    text = f"sqrt(d) ||w(0)|| over eps for the largest start at {size}"
    where = "Lemmas B.11, B.12, B.25 and C.25, the term of w(0)"
    return for_every(judge.but(where=where), "L1.limit", text, KEEPS, part, because, "starts")


def sizes_of_start(config: Small) -> tuple[float, float]:
    """d and n at which sqrt(d) ||w(0)|| is held against eps."""
    return float(config.k) ** POWERS[0], float(config.k) ** POWERS[1]
