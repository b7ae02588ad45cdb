"""What `frei2023.every_kkt` says of every KKT point that was found. Bars were written before the first run."""

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.base.estimate import Certain, most
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import proportion
from tacit.papers._shared.assumptions import nice_probability, noise_term
from tacit.papers._shared.universal import for_every
from tacit.papers.frei2023._shared.laws import share_below
from tacit.papers.frei2023.every_kkt.points import EXACT, Theory
from tacit.papers.frei2023.every_kkt.settings import EveryKkt

EPSILON = 0.01
LEMMAS = (
    ("A.10", "each cluster's sum of lambda_i v_j^2 phi_ij over its upper bound"),
    ("A.11", "the lower bound over each cluster's sum for the neurons of its sign"),
    ("A.12", "the proof's least y N(x) over the least at nice points"),
    ("D.2", "largest |N(x)| at nice points, over 2"),
    ("D.3", "most negative input of a neuron at nice points, over its bound"),
    ("D.4", "the bound over |<w_j, u>|, the worst neuron"),
    ("D.6", "the least eta that turns on the other class's neurons at x - y eta u, over eta_1"),
    ("D.7", "1 over the least -N(x - z) at nice points of the positive clusters"),
    ("D.8", "1 over the least N(x + z) at nice points of the negative clusters"),
)


def claims(data: xr.Dataset, config: EveryKkt, bench: Bench) -> tuple[Claim, ...]:
    """All of them; a data set counts with the worst of its KKT points."""
    found = int(data.stationarity.notnull().sum())
    sets, kinds = data.sizes["means"] * data.sizes["seed"], int(functions(data).sum())
    within = "inside" if bool(data.inside.all()) else "outside"
    how = "holds" if within == "inside" else "fails"
    judge = bench.claims(
        "Section 3, Theorem 3.1; Theorem A.1", source="formula", bar="paper: Theorem A.1's probability",
        regime=f"{within}: Assumption 2.2 {how}; {found} KKT points with {kinds} functions on {sets} data sets",
    )  # fmt: skip
    return (
        certified(data, judge),
        *theorem_claims(data, config, judge),
        *kind_claims(data, judge),
        *length_claims(data, config, judge),
        *lemma_claims(data, config, judge),
    )


def functions(data: xr.Dataset) -> xr.DataArray:
    """How many different functions were found on each data set: they are numbered from 0."""
    return data.function.max("start") + 1


def flat(values: xr.DataArray) -> xr.DataArray:
    """One row a data set."""
    return values.stack(set=("means", "seed"))


def certified(data: xr.Dataset, judge: Judge) -> Claim:
    """What is judged is a KKT point, by a search for multipliers that does not know how it was found."""
    tried, kept = int(data.tried.sum()), data.stationarity.notnull()
    worst = float(max(data.stationarity.max(), data.slackness.max()))
    text = (
        f"largest KKT residual or slackness, all rows, of what is judged: {int(kept.sum())} points of {tried} "
        f"starts that fit"
    )
    why = "a certificate of each point; what has none is left out"
    return judge("certified", text, Expected(max=EXACT), Certain(worst, why, int(kept.sum())),
                 source="check", bar="ours: far below all that is compared", any_size=True)  # fmt: skip


def theorem_claims(data: xr.Dataset, config: EveryKkt, judge: Judge) -> Iterator[Claim]:
    """The error and the flips of the worst KKT point of each data set, as the theorems bound them."""
    d, n = config.D, math.ceil(config.K * math.log(config.D) ** 2)
    bound, promised = 4 * n * d ** (-math.log(d) / 2), nice_probability(n, d)
    silent = "" if promised > 0 else (
        f"the theorem's probability is {promised:.2g} at this size; at d = 180, k = 6 it is "
        f"{nice_probability(162, 180):.2g}"
    )  # fmt: skip
    nets = int(data.stationarity.notnull().sum())
    expected = Expected(min=promised)
    for name, counts, what, where in (
        ("error", data.wrong, "test error", "Section 3, Theorem 3.1; Theorem A.1"),
        ("flips", data.kept_proof, "share of points, nice or not, whose sign the proof's z leaves as it is",
         "Section 4, Theorem 4.2; Theorem D.1"),
    ):  # fmt: skip
        worst = flat(counts.max("start")).values
        text = f"share of data sets on which every KKT point has a {what} <= 4 n d^(-ln(d)/2) = {bound:.2g}"
        here = judge.but(where=where)
        if np.isnan(worst).any():
            reason = "a data set has no KKT point, or the proof's z needs Assumption 2.2"
            yield here.cannot(name, text, expected, reason)
            continue
        share = share_below(worst, config.tests, bound, over="data sets", nets=nets)
        yield here(name, text, expected, share, vacuous=silent)
    text = "share of data sets on which z of length 2 sqrt(d/k) flips 99% of the points at every KKT point"
    worst = flat(data.kept_twice.max("start")).values
    if not np.isnan(worst).any():
        share = share_below(worst, config.tests, EPSILON, over="data sets", nets=nets)
        yield judge("universal", text, Expected(min=0.5), share, source="order",
                    where="Section 4, Theorem 4.2",
                    bar="ours: 2 for the O, 1% of the points, more than half of the data sets")  # fmt: skip


def kind_claims(data: xr.Dataset, judge: Judge) -> Iterator[Claim]:
    """How many functions there are, and whether the flows find them."""
    judge = judge.but(
        source="ours", where="Section 2, after Theorem 2.1", bar="derived: the neurons' signs of <u_j, x~_i>"
    )  # fmt: skip
    count = functions(data)
    opposed = "opposed" in data.means.values
    if opposed and float(data.overlap.sel(means="opposed").min()) > 1:  # else none stays apart
        here = data.sel(means="opposed")
        text = (
            "different functions among the KKT points of a data set, products of a class below -1"
        )
        found = count.sel(means="opposed")
        yield for_every(judge, "several", text, Expected(min=2.0), found, over="data sets")
        by_flow = here.start.str.startswith("flow")
        text = "of these, functions that no flow ends at"
        missed = [
            len(set(of_set(mine)) - set(of_set(mine, by_flow.values))) for mine in here.function.values
        ]  # fmt: skip
        found = xr.DataArray(missed)
        yield for_every(judge, "unfound", text, Expected(min=1.0), found, over="data sets")
    if "orthogonal" in data.means.values:
        text = "different functions among the KKT points of a data set, orthogonal means and small noise"
        found = count.sel(means="orthogonal")
        yield for_every(judge, "one", text, Expected(max=1.0), found, over="data sets")


def of_set(function: np.ndarray, chosen: np.ndarray | None = None) -> list[int]:
    """The numbers of the functions of some starts of a data set; -1 is none."""
    mine = function if chosen is None else function[chosen]
    return [int(f) for f in mine if f >= 0]


def length_claims(data: xr.Dataset, config: EveryKkt, judge: Judge) -> Iterator[Claim]:
    """eta = 1/(g + k_o), by which one neuron a cluster is the most robust."""
    k, other = config.K, rest_of(config)
    small = worst_theory(data, config).c
    judge = judge.but(
        source="ours", where="Section 4, Theorem 4.2",
        bar=f"derived: c' = {small:.2g}, the order of what is left out",
    )  # fmt: skip
    off = np.abs(data.eta * (data.group + other) - 1).max(("start", "cluster"), skipna=True)
    known = flat(off).dropna("set")
    if known.size:
        text = "eta that flips half of a cluster's points over 1/(g + k_o), g clusters sharing a neuron: less 1"
        yield for_every(judge, "groups", text, Expected(max=small), known, over="data sets")
    most = float(np.max(k / (1 + other)))
    text = f"length along z that flips half of a cluster over {most:.3g} sqrt(d/k), one neuron a cluster"
    worst = flat(data.longest.max("start")).dropna("set") / most
    if worst.size:
        yield for_every(judge, "longest", text, Expected(max=1 + small), worst, over="data sets")


def rest_of(config: EveryKkt) -> xr.DataArray:
    """The clusters of the other class, by cluster: the first K/2 are positive."""
    K, K1 = config.K, config.K // 2
    return xr.DataArray([K - K1] * K1 + [K1] * (K - K1), dims="cluster")


def worst_theory(data: xr.Dataset, config: EveryKkt) -> Theory:
    """The constants of the proofs for the means that overlap most."""
    delta = noise_term(config.D, config.sigma)
    return Theory(config.D, config.K, float(data.overlap.max()), delta)


def lemma_claims(data: xr.Dataset, config: EveryKkt, judge: Judge) -> Iterator[Claim]:
    """Each lemma at every KKT point of the data sets that satisfy P1 to P6, which they ask for."""
    yield fresh_point_claim(data, config, judge)
    known = worst_theory(data, config)
    used = known.k * (known.p + known.delta) / (known.d - known.delta)
    text = "Lemma D.5: k (p + Delta) over d - Delta, the means that overlap most"
    implied = (
        "inside Assumption 2.2 this is 1/10 at most but for 1/d, whatever was drawn; `frei2023.assumption` looks "
        "for a larger one along the assumption's edge"
    )
    yield judge("lemma.D.5", text, Expected(max=1.0), Certain(used, "a formula in d, k, sigma and p", 1),
                vacuous=implied if bool(data.inside.all()) else "",
                where="Appendix D, Lemma D.5", bar="paper: its inequality")  # fmt: skip
    fit = flat(data.nice_set & data.inside).values
    share = float(data.nice_points.min())
    for name, what in LEMMAS:
        appendix = "A" if name.startswith("A") else "D"
        here = judge.but(
            where=f"Appendix {appendix}, Lemma {name}", bar="paper: the lemma's constants",
            regime=f"inside: {int(fit.sum())} data sets with P1 to P6; {share:.4g} of the points are nice",
        )  # fmt: skip
        text = f"Lemma {name}: {what}, the worst KKT point of a data set"
        worst = flat(data[name].max("start"))[fit].dropna("set")
        if worst.size:
            yield for_every(here, f"lemma.{name}", text, Expected(max=1.0), worst, over="data sets")
        else:
            reason = "no data set satisfies P1 to P6 within Assumption 2.2; d = 180, k = 6, sigma = 0.001 do"
            yield here.cannot(f"lemma.{name}", text, Expected(max=1.0), reason)


def fresh_point_claim(data: xr.Dataset, config: EveryKkt, judge: Judge) -> Claim:
    """Lemma A.13: how many fresh points are not nice, on the data set that has most of them."""
    n = math.ceil(config.K * math.log(config.D) ** 2)
    bound = 4 * n * config.D ** (-math.log(config.D) / 2)
    fit = flat(data.nice_set & data.inside).values
    text = "Lemma A.13: share of fresh points that are not nice (<= 4 n d^(-ln(d)/2)), the worst data set"
    here = judge.but(
        where="Appendix A.3, Lemma A.13; Appendix D, Lemma D.1", bar="paper: its probability",
        regime=f"inside: {int(fit.sum())} data sets with P1 to P6",
    )  # fmt: skip
    counts = np.round((1 - flat(data.nice_points).values[fit]) * config.tests)
    if not len(counts):
        reason = (
            "no data set satisfies P1 to P6 within Assumption 2.2; d = 180, k = 6, sigma = 0.001 do"
        )
        return here.cannot("lemma.A.13", text, Expected(max=bound), reason)
    found = most(proportion(int(c), config.tests, of=len(counts)) for c in counts)
    silent = f"the bound is {bound:.2g} at d = {config.D}; at d = 180, k = 6 it is 0.0009"
    return here(
        "lemma.A.13", text, Expected(max=bound), found, vacuous=silent if bound >= 1 else ""
    )
