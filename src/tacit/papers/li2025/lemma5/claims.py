"""What `li2025.lemma5` claims: identities, properties of starts, bounds and growth over several trainings.

A bound on all points and moments is judged by its tightest place in each training (`for_every`).
"""

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.base.estimate import Certain, farthest
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of
from tacit.papers._shared.universal import for_every
from tacit.papers.li2025.lemma5.settings import Coefficients
from tacit.papers.li2025.lemma5.start_claims import KEEPS, starts
from tacit.papers.li2025.sweeps.sweep import epsilon

SIZES = "d >= k^10, n >= k^7, eta <= 1/d^2"
IDENTITY = "inside: an identity at any size"
OUTSIDE = f"outside: Assumption 4.3 asks for {SIZES}, Lemma B.7 for T <= exp(sqrt k)"
EXPECTED = {"most": KEEPS, "least": Expected(min=0.0), "all": Expected(min=1.0)}


def claims(data: xr.Dataset, config: Coefficients, bench: Bench) -> tuple[Claim, ...]:
    """Identities, the starts' properties, the induction's properties, and lambda over time."""
    bar = "paper: the bound itself"
    judge = bench.claims("Lemma B.7", source="formula", bar=bar, regime=OUTSIDE)
    return (
        *identities(data, config, judge),
        *signs(data, judge),
        *ratios(data, judge),
        *starts(data, config, judge),
        *induction(data, config, judge),
        *growth(data, config, judge),
    )


def identities(data: xr.Dataset, config: Coefficients, judge: Judge) -> Iterator[Claim]:
    """Equations that hold to rounding, or do not: at any size."""
    judge = judge.but(bar="ours: rounding", regime=IDENTITY)
    sign = "without y_i the negative neurons point away from their features; Appendix A.3 has l'_i with y_i"
    factor = f"q_hat is a mean over m neurons that each move by eta/(nm): {2 / config.m:.3g} of the printed step"
    rows = (
        ("recursion", "weights by (2), (3) with l'_i = -y_i/(1 + exp(y_i f)), against descent",
         data.recursion.max(), "Lemmas 5.1, 5.2; Corollary B.3", ""),
        ("bias", "biases by their recursion, against descent", data.bias_error.max(),
         "Appendix B.1, proof of Lemma B.10", ""),
        ("recursion.printed", "weights by (2), (3) with l'_i = l'(y_i f(x_i)), against descent",
         data.as_printed.max(), "Lemma 5.2", sign),
        ("eq4", "lambda_j = sum_i (||mu_j||^2/||xi_i||^2) sigma_i", data.eq4_inverse, "Corollary B.4", ""),
        ("eq4.printed", "lambda_j = sum_i (||xi_i||^2/||mu_j||^2) sigma_i", data.eq4_printed,
         "Section 5.1, eq. (4)", "the ratio is inverted: sigma carries ||xi||^2 already"),
        ("eq17.printed", "a step of q_hat is (eta/(2n)) (...)", abs(data.eq17 - 1),
         "Appendix B.1, eq. (17)", factor),
    )  # fmt: skip
    for id, text, error, where, because in rows:
        found = Certain(float(error), "an equation, true on any data or not", int(data.step[-1]))
        text, exact = f"{text}: largest relative error", Expected(max=1e-12)
        yield judge(id, text, exact, found, because=because, where=where, any_size=True)


def signs(data: xr.Dataset, judge: Judge) -> Iterator[Claim]:
    """Corollary B.5 at every moment looked at, and at the last one as it is printed."""
    judge = judge.but(where="Corollary B.5", bar="paper: the sign itself", regime=IDENTITY)
    zero = (
        "a point that never activates a neuron of the other label leaves 0 (at the start all are 0)"
    )
    rows = (
        ("B5.own", "the most negative own coefficient, with its sign turned", data.own_negative.max(), ""),
        ("B5.foreign", "the most positive foreign coefficient", data.foreign_positive.max(), ""),
        ("B5.printed", "share of foreign sigmas that are 0 at the end, if they are < 0",
         data.foreign_zero.isel(time=-1).max(), zero),
    )  # fmt: skip
    for id, text, value, because in rows:
        why = "a sign, true on any data or not"
        found = Certain(float(value) + 0.0, why, data.sizes["time"])  # no -0
        yield judge(id, text, Expected(max=0.0), found, because=because, any_size=True)


def ratios(data: xr.Dataset, judge: Judge) -> Iterator[Claim]:
    """Lemma B.6 at every moment looked at, the start among them: as printed, and where it is true."""
    judge = judge.but(
        where="Lemma B.6",
        bar="paper: the bound itself, and 1e-12 for rounding",
        regime="inside: an inequality at any size",
    )
    negative = "false where q_i + q_j < 0, as it is for many pairs at the start"
    rows = (
        ("B6.upper", "ln(l'_j/l'_i) less q_i - q_j, for q_i >= q_j: the most", data.order_above, ""),
        ("B6.lower.printed", "(q_i - q_j)/2 less ln(l'_j/l'_i), for q_i >= q_j: the most", data.order_below,
         negative),
        ("B6.lower", "(q_i - q_j)/2 less ln(l'_j/l'_i), for q_i >= |q_j|: the most", data.order_mended, ""),
    )  # fmt: skip
    for id, text, values, because in rows:
        why = "an inequality, true of any margins or not"
        found = Certain(float(values.max()), why, data.sizes["time"])
        yield judge(id, text, Expected(max=1e-12), found, because=because, any_size=True)


def induction(data: xr.Dataset, config: Coefficients, judge: Judge) -> Iterator[Claim]:
    """Lemmas 5.3, 5.5, B.7 and B.23 for t >= 1: until eta t = 1, and after."""
    here = data.isel(time=data.t.values >= 1)
    t, eps, share = here.t.values, epsilon(config.d, config.k, config.n), config.k / config.n
    early = here.isel(time=t <= max(1 / config.eta, t[0]))
    idle = xr.concat(
        [early.gap_hat_same / 5, early.gap_hat / 63, early.gap / 65, (early.ratio_same - 1) / 14,
         (early.ratio - 1) / 130, early.lam_other, early.sigma_other / 2], "property",
    ) / eps  # fmt: skip
    text = "properties 2 to 6 and 8: largest part of its bound, a multiple of eps, until eta t = 1"
    vacuous = f"eps = {eps:.3g} at this size, where the lemma has eps = o(k^-2.5)"
    found = mean_of(idle.max(("property", "time")), over="trainings")
    yield judge("B7.eps", text, EXPECTED["most"], found, vacuous=vacuous)

    upper = here.sigma_most / (2 * share * np.log1p(t))
    lower = here.sigma_least / share - np.log(t * config.eta) / 2
    until, uneven = f"until eta t = {config.late:.0e}", "points of least margin carry the growth"
    later = f"a neuron that no point of a cluster activates at first learns it by t = {active_from(here):g}"
    rows = (
        ("B7", "property 1: largest sigma over (2k/n) ln(t + 1) until eta t = 1", "most",
         upper[:, : early.sizes["time"]].max("time"), "", ""),
        ("B7.late", f"property 1: largest sigma over (2k/n) ln(t + 1) {until}", "most",
         upper.max("time"), "", uneven),
        ("B7.late.lower", f"property 1: least n sigma/k - ln(eta t)/2 {until}", "least",
         lower.min("time"), "", uneven),
        ("active", "property 7: least share of active pairs of a neuron and a point of its class, t >= 1", "all",
         here.own_active.min("time"), "Lemma 5.5; Lemma B.7", later),
        ("B23", f"largest lambda over 4 ln(t + 1) {until}", "most",
         (here.lam_most / (4 * np.log1p(t))).max("time"), "Lemma B.23", ""),
        ("B23.lower", f"least lambda - ln(eta t)/4 {until}", "least",
         (here.lam_least - np.log(t * config.eta) / 4).min("time"), "Lemma B.23", ""),
    )  # fmt: skip
    for id, text, kind, values, where, because in rows:
        yield for_every(judge.but(where=where), id, text, EXPECTED[kind], values, because)

    judge = judge.but(where="Lemma 5.3, eq. (6)", source="order", bar="ours: 1 + o(1) is read as 2")
    because = "the gaps of margins keep their proportion to lambda ~ ln t: n/k and d are too small for eq. (6)"
    for id, when, at in (("ratio", "1", early), ("ratio.late", f"{config.late:.0e}", here)):
        text = f"largest ratio of two points' loss derivatives at eta t = {when}"
        yield for_every(judge, id, text, Expected(max=2.0), at.ratio.isel(time=-1), because)


def active_from(here: xr.Dataset) -> float:
    """The first moment from which on all own neurons are active in all trainings; inf where there is none."""
    off = np.flatnonzero((here.own_active < 1).any("seed"))
    last = off[-1] + 1 if len(off) else 0
    return float(here.t.values[last]) if last < here.sizes["time"] else math.inf


def growth(data: xr.Dataset, config: Coefficients, judge: Judge) -> Iterator[Claim]:
    """lambda against log(eta t): slope and offset; and against its law."""
    time, lam = config.eta * data.t.values, data.lam.transpose("time", "seed").values
    late, usual = time >= 1, time >= 0.05
    line = np.polyfit(np.log(time[late]), lam[late], 1)
    slope, height = (mean_of(values, over="trainings") for values in line)
    kappa, pace = 1 + config.k / config.n, config.d / (config.m * config.k)
    judge = judge.but(where="Section 5.3, Step 2; Lemma B.23", source="order")
    fit = f"of a line in ln(eta t) through lambda, eta t = 1 to {config.late:.0e}"
    because = (
        f"d/(mk) = {pace:.3g} is left out: the paper's own update has lambda = ln(1 + eta t d/(mk))"
    )
    rows = (
        ("slope", "slope", Expected(value=1.0, tolerance=0.05), slope, "order", "ours: five percent", ""),
        ("offset.printed", "value at eta t = 1, if lambda is log(eta t),", Expected(value=0.0, tolerance=0.5),
         height, "order", "ours: half a unit, what lambda grows in a fifth of a decade", because),
        ("offset", "value at eta t = 1, if lambda is ln(kappa eta t d/(mk))/kappa, kappa = 1 + k/n,",
         Expected(value=math.log(kappa * pace) / kappa, tolerance=0.15), height, "ours",
         "ours: four percent", ""),
    )  # fmt: skip
    for id, text, expected, found, source, bar, because in rows:
        yield judge(id, f"{text} {fit}", expected, found, source=source, bar=bar, because=because)
    law = lam[usual] / data.theory.values[usual, None]
    found = farthest(mean_of(row, of=len(law), over="trainings") for row in law)
    text = "lambda over q/kappa, q + e^q - 1 = kappa (d/(mk)) eta t: largest distance from 1, eta t >= 0.05"
    yield judge("law", text, Expected(max=0.05), found, source="ours", bar="ours: five percent")
