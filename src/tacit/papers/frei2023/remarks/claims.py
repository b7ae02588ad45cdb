"""What `frei2023.remarks` says of each remark. Bars were written before the first run.

The remarks have no constants. The conclusions are judged as 1% of the points, on more than half of the data sets.
"""

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr
from scipy.special import ndtr

from tacit.base.estimate import Certain, farthest
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of, proportion
from tacit.papers._shared.assumptions import most_clusters, nice_probability, noise_term
from tacit.papers._shared.fits import listed
from tacit.papers._shared.universal import MOST, MOST_BAR
from tacit.papers.frei2023._shared.laws import share_below
from tacit.papers.frei2023._shared.means import least_dimension, unit_noise
from tacit.papers.frei2023.remarks.settings import ADMITTED, HEAVY, Remarks

EPSILON = 0.01
NEAR = 0.05  # of k eta from 1
RULE = "ours: 1% of the points, on more than half of the data sets"
EIGHTH = 0.125


def claims(data: xr.Dataset, config: Remarks, bench: Bench) -> tuple[Claim, ...]:
    """Remark by remark."""
    judge = bench.claims(
        "Section 2, remarks after Example 1", source="words", bar=RULE,
        regime=f"outside: Assumption 2.2 fails at d = {config.D}, sigma = 1; the remark names no constant",
    )  # fmt: skip
    return (
        *noise_claims(data, config, judge),
        *norm_claims(data, config, judge),
        *sigma_claims(data, config, judge),
        *silent_claims(config, judge),
    )


def conclusions(
    data: xr.Dataset,
    config: Remarks,
    judge: Judge,
    id: str,
    what: str,
    *,
    flips: bool = True,
    because: str = "",
) -> Iterator[Claim]:
    """Theorem 3.1's and 4.2's conclusions on the fitted nets of these cases, on average over the cases."""
    for name, counts, text in (
        ("error", data.wrong, "a test error of at most 1%"),
        ("flips", data.kept, "99% of the points flipped by z of twice the length ||u||/k"),
    ):
        if name == "flips" and not flips:
            continue
        fitted = counts.values[np.isfinite(counts.values)]
        statement = f"share of data sets with {text} ({what})"
        if len(fitted):
            share = share_below(fitted, config.tests, EPSILON, over="data sets")
            yield judge(f"{id}.{name}", statement, MOST, share, because=because)
        else:
            yield judge.cannot(f"{id}.{name}", statement, MOST, "no net reached a loss below 1/n")


def near_one(data: xr.Dataset, judge: Judge, id: str, what: str) -> Iterator[Claim]:
    """k eta, the mean over data sets, of the case that is farthest from 1."""
    rows = [row[np.isfinite(row)] for row in data.eta_k.transpose("case", "seed").values]
    rows = [row for row in rows if len(row)]
    if rows:
        text = f"k times the eta that flips half of the points, less 1: the farthest case ({what})"
        off = farthest(mean_of(row, of=len(rows), over="data sets") for row in rows)
        yield judge(f"{id}.eta", text, Expected(max=NEAR), off, source="ours",
                    bar="ours: five percent of what class averages predict")  # fmt: skip


def nice_share(
    data: xr.Dataset, judge: Judge, id: str, what: str, expected: Expected, bar: str
) -> Claim:
    """The share of data sets with P1 to P6, on average over the cases."""
    nice = (data.worst <= 1).all("property")
    failing = [str(p) for p in data.property.values if bool((data.worst.sel(property=p) > 1).any())]
    which = f"; in some {', '.join(failing)} fail" if failing else ""
    text = f"share of data sets with P1 to P6, the paper's constants ({what}{which})"
    share = proportion(int(nice.sum()), nice.size, over="data sets")
    return judge(f"{id}.P", text, expected, share, bar=bar)


def noise_claims(data: xr.Dataset, config: Remarks, judge: Judge) -> Iterator[Claim]:
    """The laws that the remark admits, together; Student's law alone."""
    here = data.isel(case=(data.kind == "noise").values)
    mine = here.isel(case=np.isin(here.name.values, ADMITTED))
    if mine.sizes["case"]:
        what = f"{', '.join(mine.name.values)} noise, d = {config.D}, k = {config.K}, sigma = 1"
        yield from conclusions(mine, config, judge, "noise", what)
        yield from near_one(mine, judge, "noise", what)
        yield nice_share(mine, judge, "noise", what, MOST, bar=MOST_BAR)
    heavy = here.isel(case=here.name.values == HEAVY)
    if heavy.sizes["case"]:
        what = f"Student's noise, 4 degrees of freedom, d = {config.D}, k = {config.K}, sigma = 1"
        outside = judge.but(source="ours", regime="outside: the remark does not admit this law")
        yield from conclusions(heavy, config, outside, "heavy", what)
        promised = nice_probability(math.ceil(config.K * math.log(config.D) ** 2), config.D)
        bar = "paper: Proposition A.1's probability for Gaussian noise, of which a power law falls short"
        yield nice_share(heavy, outside, "heavy", what, Expected(max=promised), bar=bar)


def norm_claims(data: xr.Dataset, config: Remarks, judge: Judge) -> Iterator[Claim]:
    """Means of about the same norm: the conclusions stay, P5's constants do not."""
    mine = data.isel(case=(data.kind == "norms").values)
    what = f"norms (1 - s) to (1 + s) sqrt(d), s = {listed(config.spreads)}, d = {config.at}, k = {config.many}"
    rest = "holds" if bool(mine.separated.all()) else "does not hold"
    judge = judge.but(regime=f"outside: by the norms; the rest of Assumption 2.2 {rest}")
    yield from conclusions(mine, config, judge, "norms", what)
    yield from near_one(mine, judge, "norms", what)
    delta = noise_term(config.at, config.still)
    least = min(config.spreads)
    if (
        config.at * (1 - least) ** 2 < config.at - delta
    ):  # <x_i, x_j> of the shortest mean's cluster
        bar = f"derived: P5 asks for norms above sqrt(d - Delta), a spread of {delta / (2 * config.at):.2g}"
        yield nice_share(mine, judge.but(source="ours"), "norms", what, Expected(max=0.5), bar=bar)


def sigma_claims(data: xr.Dataset, config: Remarks, judge: Judge) -> Iterator[Claim]:
    """sigma = d^(1/8), as the remark has it, and larger powers, of which it says nothing."""
    here = data.isel(case=(data.kind == "sigma").values)
    for power in config.powers:
        mine = here.isel(case=here.name.values == f"{power:g}")
        what = f"sigma = d^{power:g}, d = {listed(config.dims)}, k = {config.K}"
        told = judge.but(regime="outside: sigma > 1; the remark names no constant")
        if power > EIGHTH:
            told = told.but(source="ours", regime="outside: sigma is beyond the remark's d^(1/8)")
        errs = max(float(ndtr(-math.sqrt(d / config.K) / d**power)) for d in config.dims)
        why = f"sign(<u, x>) itself errs on Q(sqrt(d/k)/sigma) of the points, up to {errs:.2g}"
        yield from conclusions(
            mine, config, told, f"sigma{power:g}", what, flips=False, because=why
        )
        yield from near_one(mine, told, f"sigma{power:g}", what)
        large = mine.isel(case=[too_long(int(d), power) for d in mine.d.values])
        if large.sizes["case"]:
            what = f"sigma = d^{power:g}, d = {listed(large.d.values.tolist())}, k = {config.K}"
            bar = "derived: ||x||^2 is about (1 + sigma^2) d, and P5 admits 3d + Delta"
            mine_judge = told.but(source="ours")
            yield nice_share(large, mine_judge, f"sigma{power:g}", what, Expected(max=0.5), bar)


def too_long(d: int, power: float) -> bool:
    """Whether a typical point of sigma = d^power is longer than P5 admits: (1 + sigma^2) d > 3d + Delta."""
    sigma = d**power
    return (1 + sigma**2) * d > 3 * d + noise_term(d, sigma)


def silent_claims(config: Remarks, judge: Judge) -> Iterator[Claim]:
    """What Appendix D needs says nothing at sigma = 1 in dimensions that one can sample."""
    d, k = config.D, config.K
    delta = noise_term(d, 1.0)
    room = d - delta - k * delta
    text = f"Lemma D.5: d - Delta - k (p + Delta) at sigma = 1, d = {d}, k = {k}"
    silent = (
        f"Delta = {delta:.3g} where d = {d}: Lemmas A.9 to A.12 and D.2 to D.7 ask for Assumption 2.2, which "
        f"admits {k} orthogonal means at sigma = 1 from d = {least_dimension(k, unit_noise):,} on; "
        "`frei2023.every_kkt` has sigma = 0.001, where they speak"
    )
    yield judge("lemma.D.5", text, Expected(min=0.0), Certain(room, "a formula in d, k and sigma", 1),
                vacuous="" if most_clusters(d, 1.0) >= k else silent,
                where="Appendix D, Lemma D.5", source="formula", bar="paper: its inequality")  # fmt: skip
