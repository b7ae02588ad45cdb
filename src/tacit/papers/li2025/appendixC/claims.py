"""What `li2025.appendixC` claims: identities, starts, bounds without eps, and which bounds of eps are empty."""

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.base.estimate import Certain
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import proportion
from tacit.papers._shared.universal import for_every
from tacit.papers.li2025._shared.bounds import (
    ALL,
    KEEPS,
    Size,
    bounds,
    induction,
    products,
    unconditional,
)
from tacit.papers.li2025._shared.lemmas import constants
from tacit.papers.li2025._shared.starts import enough_points, promise
from tacit.papers.li2025.appendixC.settings import Classes

SIZES = "d >= k^10, n >= k^7, eta <= 1/d^2"
OUTSIDE = f"outside: Assumption 4.3 asks for {SIZES}, Lemma C.10 for T <= exp(sqrt k)"
OURS = "ours: the paper's constants, with eps_hat for eps"
FEW = "points of least margin carry the growth: the sigmas of a label's points differ more than by a factor of 2"
SHORT = "one step moves <w, x> too little to forget the start; five or so do"
FACTOR = 1.5  # a probability is known where it is known to this factor


def claims(data: xr.Dataset, config: Classes, bench: Bench) -> tuple[Claim, ...]:
    """Identities, the start, the induction, and the same with eps_hat."""
    aside = int(data.redrawn.sum())
    given = f"{OUTSIDE}; given that each neuron begins with an own point ({aside} draws set aside)"
    judge = bench.claims(
        "Lemma C.10", source="formula", bar="paper: the bound itself", regime=given
    )
    of = size_of(data, config)
    at = constants("classes", config.k)
    return (
        *identities(data, config, judge),
        *start(data, config, judge.but(regime=OUTSIDE)),
        *unconditional(of, at, judge),
        *slopes(of, judge),
        *bounds(induction(of, at), judge, of),
        *bounds(products(of, at), judge, of),
        *bounds(induction(of, at, hat=True), judge.but(source="ours", bar=OURS), of),
    )


def size_of(data: xr.Dataset, config: Classes) -> Size:
    """Figure 2b's size."""
    return Size(data, "", "classes", config.k, float(config.d), config.n, config.eta, SHORT, FEW)


def n_of_C3(config: Classes) -> int:
    """The points at which C.3's promise is half of its limit, or the setting's own, whichever are more."""
    h, k = config.h, config.k
    return max(enough_points(h * k, 2 * h * k**2, 9 * k**3 * h**2), config.n)


def identities(data: xr.Dataset, config: Classes, judge: Judge) -> Iterator[Claim]:
    """Lemma C.6 with Corollaries C.7 to C.9."""
    judge = judge.but(bar="ours: rounding", regime="inside: an identity at any size")
    zero = "a point that never activates a neuron of another label leaves 0, which is >= 0 too"
    rows = (
        ("C6", "weights by the recursions of Corollary C.8, against descent: largest relative error",
         data.C6.max(), Expected(max=1e-12), "Lemma C.6, Corollary C.8", ""),
        ("C7", "lambda_j/||mu_j||^2 = sum_i sigma_i/||xi_i||^2: largest relative error", data.C7.max(),
         Expected(max=1e-12), "Corollary C.7", ""),
        ("C9.own", "the most negative own coefficient, with its sign turned", data.own_negative.max(),
         Expected(max=0.0), "Corollary C.9", ""),
        ("C9.foreign", "the most positive foreign coefficient", data.foreign_positive.max(), Expected(max=0.0),
         "Corollary C.9", ""),
        ("C9.printed", "share of foreign sigmas that are 0, if sigma >= 0 iff s = c(i)", data.foreign_zero.max(),
         Expected(max=0.0), "Corollary C.9", zero),
    )  # fmt: skip
    for id, text, value, expected, where, because in rows:
        why = "a sign or an equation, true on any data or not"
        yield judge(
            id,
            text,
            expected,
            Certain(float(value), why),
            because=because,
            where=where,
            any_size=True,
        )


def start(data: xr.Dataset, config: Classes, judge: Judge) -> Iterator[Claim]:
    """Propositions C.1 and C.3, Lemmas C.4 and C.5."""
    k, h, n = config.k, config.h, config.n
    text = "| ||w(0)||/sigma_w - sqrt(d) | over 2 ln d, the largest of a start"
    yield for_every(judge.but(where="Proposition C.1"), "C1", text, KEEPS, data.C1, over="starts")
    text = "p_s at the start: the largest over 2/k, or 1/(2k) over the least"
    yield for_every(judge.but(where="Lemma C.4"), "C4", text, KEEPS, data.C4, over="starts")

    judge = judge.but(where="Proposition C.3")
    asked = math.ceil(n / (3 * k**3 * h**2))
    law = (1 - asked / (n / k + 1)) ** (h * k * k)
    reached = proportion(int(data.reached), config.draws, over="starts")
    share = f"share of starts where each of {h * k * k} pairs (neuron, cluster) has n/(3k^3h^2) active points"
    bar = "derived: their number is uniform on 0..n/k; 0.03 for uneven clusters (the paper promises < 0 here)"
    yield judge(
        "C3.law", share, Expected(value=law, tolerance=0.03), reached, source="ours", bar=bar
    )

    many = n_of_C3(config)
    least = promise(many, h * k, 2 * h * k**2, 9 * k**3 * h**2)
    reached = proportion(int(data.reached_many), config.draws, over="starts")
    text = f"{share}, with n = {many:,} points: as many as make the promise half of its limit in n"
    bar = f"paper: 1 - (hk)^-0.01 - 2hk^2 exp(-n/(9k^3h^2)) = {least:.2g}"
    yield judge("C3", text, Expected(min=least), reached, bar=bar)

    text = f"the probability that each pair has n/(3k^3h^2) active points, for n/k, k to infinity, h = {h}"
    why = "a derivation, no measurement: (1 - 1/(3k^2h^2))^(hk^2), the exact law"
    limit = Certain(math.exp(-1 / (3 * h)), why)
    because = (
        "a derivation from the law that C3.law tests, so the same at every seed and size: the proof takes the "
        "least over hk neurons where there are hk^2 pairs"
    )
    sure, regime = Expected(value=1.0, tolerance=1e-3), "inside: h of order 1, n >= k^7"
    bar = "paper: 1 - (hk)^-0.01 - 2hk^2 exp(-n/(9k^3h^2)) goes to 1"
    yield judge(
        "C3.limit", text, sure, limit, because=because, bar=bar, regime=regime, any_size=True
    )

    text = "share of pairs of a neuron and a point of its label that are active after one step"
    because = "one step is too short for the largest start allowed (as Lemma B.1 in li2025.lemma5)"
    inside = f"inside: Assumption 4.3 with constants 1, k = {config.inside}, d = k^10, n = k^7, the largest start"
    judge = judge.but(where="Lemma C.5")
    yield for_every(
        judge.but(regime=inside), "C5.inside", text, ALL, data.inside_active, because, "starts"
    )
    yield from deaths(data, config, judge)


def deaths(data: xr.Dataset, config: Classes, judge: Judge) -> Iterator[Claim]:
    """Neurons that no own point activates: how many, and what becomes of them."""
    begin, end = data.begin_off.values.astype(bool), data.end_off.values.astype(bool)
    text = (
        f"share of neurons that all own points activate after one step (of {config.starts} starts)"
    )
    share = proportion(int((data.active_1.values == 1).sum()), begin.size, over="neurons")
    bar = "paper: all i and r; one failure decides"
    because = "a step moves <w, x> too little, or not at all"
    yield judge(
        "C5",
        text,
        Expected(value=1.0),
        share,
        source="words",
        bar=bar,
        because="a step moves <w, x> too little, or not at all",
    )

    chance = float((1 / (data.own_points.values + 1)).mean())
    share = proportion(int(begin.sum()), begin.size, over="neurons").through(lambda p: p / chance)
    text = f"neurons that no own point activates at the start, over E 1/(|I_j| + 1) = {chance:.2g}"
    bar, ours = "ours: a factor of 1.5", Expected(min=1 / FACTOR, max=FACTOR)
    yield judge("C5.begin", text, ours, share, source="ours", bar=bar)

    text = f"share of neurons that no own point activates after {config.T_start} steps"
    share = proportion(int(end.sum()), end.size, over="neurons")
    because = "what no own point activates at the start has nothing that turns it to its label"
    lost = int(end.reshape(len(end), config.k, config.h).all(2).sum())
    text = f"{text} (labels that lost all {config.h}: {lost} of {len(end) * config.k})"
    yield judge(
        "C5.dead",
        text,
        Expected(value=0.0),
        share,
        source="words",
        bar="paper: none",
        because=because,
    )


def slopes(of: Size, judge: Judge) -> Iterator[Claim]:
    """Lemma C.20 without its eps, where the theorem begins; Lemma C.18 with an output for eps."""
    told = judge.but(
        where="Lemma C.20", source="ours", bar="ours: the lemma's 1/2 and 2, without its 2 eps"
    )
    for id, variable, text in (
        ("C20.bare", "q_above", "margin less (2n/k) sigma"),
        ("C20.bare.lower", "q_below", "(n/2k) sigma less margin"),
    ):
        worst = xr.DataArray(np.where(of.late, of[variable], -np.inf).max(1), dims="seed")
        yield for_every(told, id, f"{text}, eta t >= 1", Expected(max=0.0), worst, FEW)

    told = judge.but(
        where="Lemma C.18",
        source="ours",
        bar="ours: the lemma's bounds, an output for eps",
    )
    allowed = np.log1p(2 * of["foreign"]) + 1e-9  # rounding
    for id, variable, text in (
        ("C18.bare", "order_above", "ln(l'_j/l'_i) less q_i - q_j"),
        ("C18.bare.lower", "order_below", "ln((e^(q_i - q_j) + k - 1)/k) less ln(l'_j/l'_i)"),
    ):
        worst = xr.DataArray((of[variable] - allowed).max(1), dims="seed")
        text = f"{text} for q_i >= q_j, less ln(1 + 2 f), f the largest foreign output"
        yield for_every(told, id, text, Expected(max=0.0), worst)
