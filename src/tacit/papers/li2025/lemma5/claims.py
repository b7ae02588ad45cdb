"""What `li2025.lemma5` claims. eps of Appendix B.1 is far above 1 at every size here: bounds by it say little."""

import math
from functools import partial

import numpy as np
import xarray as xr

from tacit.lab import Bench, Claim, Expected, judge
from tacit.papers.li2025.lemma5.settings import Coefficients
from tacit.papers.li2025.sweeps.sweep import epsilon

EXACT = 1e-12


def claims(data: xr.Dataset, config: Coefficients, bench: Bench) -> tuple[Claim, ...]:
    """Identities, the sample's properties, the induction's properties, and lambda over time."""
    return (
        *identities(data, config),
        *sample(data, config, bench),
        *induction(data, config, bench),
        *growth(data, config, bench),
    )


def identities(data: xr.Dataset, config: Coefficients) -> list[Claim]:
    """Equations that hold to rounding, or do not: at any size."""
    steps = int(data.step[-1])
    exact = partial(judge, n=steps, smoke=False)
    return [
        exact(
            "recursion",
            f"the weights rebuilt by Lemma 5.1 from (2) and (3) are those of descent over {steps} steps, with "
            "l'_i = -y_i/(1 + exp(y_i f)) and relu'(0) = 1 (measured: the largest relative error of a neuron)",
            "Lemmas 5.1, 5.2; Corollary B.3",
            Expected(max=EXACT),
            float(data.recursion.max()),
        ),
        exact(
            "bias",
            "the biases by their recursion are those of descent (measured: the relative error)",
            "Appendix B.1, proof of Lemma B.10",
            Expected(max=EXACT),
            float(data.bias_error.max()),
        ),
        exact(
            "recursion.printed",
            "the same with l'_i = l'(y_i f(x_i)) as Lemma 5.2 prints it (measured: the largest relative error)",
            "Lemma 5.2",
            Expected(max=EXACT),
            float(data.as_printed.max()),
            because="without y_i the negative clusters get the wrong sign, so that negative neurons point away "
            "from their features; Appendix A.3 defines l'_i with y_i",
        ),
        exact(
            "eq4",
            "lambda_srj = sum_i (||mu_j||^2/||xi_i||^2) sigma_sri, as Corollary B.4 has it (measured: the "
            "relative error)",
            "Corollary B.4",
            Expected(max=EXACT),
            float(data.eq4_inverse),
        ),
        exact(
            "eq4.printed",
            "lambda_srj = sum_i (||xi_i||^2/||mu_j||^2) sigma_sri, as eq. (4) prints it (measured: the relative "
            "error)",
            "Section 5.1, eq. (4); proofs of Lemmas B.23, B.24, C.23, C.24",
            Expected(max=EXACT),
            float(data.eq4_printed),
            because="the ratio is inverted: sigma carries ||xi||^2 already; the error is of the order "
            "1/sqrt(d n/k)",
        ),
        exact(
            "eq17.printed",
            "a step changes q_hat by (eta/(2n)) (...) as eq. (17) prints it (measured: the actual step over it)",
            "Appendix B.1, eq. (17)",
            Expected(value=1.0, tolerance=1e-9),
            float(data.eq17),
            because=f"the factor is eta/(nm): q_hat averages over m neurons that each move by eta/(nm); 2/m = "
            f"{2 / config.m:.3g}",
        ),
    ]


def sample(data: xr.Dataset, config: Coefficients, bench: Bench) -> list[Claim]:
    """Propositions A.6 and A.12 on this sample and start; Lemma 5.5 inside the assumptions."""
    properties = [float(data[f"A6_{i}"]) for i in range(1, 8)]
    k, needed = config.inside, config.n / (3 * config.k * config.m**2)
    some, pairs = 1 - 1 / (config.n / config.k + 1), 2 * config.m * config.k
    reached = (1 - 1 / (3 * config.m**2)) ** pairs
    return [
        bench.judge(
            "A6",
            "the seven properties of the sample hold with Delta = 4 sqrt(d) ln d (measured: the largest ratio of "
            f"a side to its bound; property {int(np.argmax(properties)) + 1})",
            "Proposition A.6",
            Expected(max=1.0),
            max(properties),
            n=config.n,
        ),
        bench.judge(
            "A12",
            "at the start each cluster has n/(3km^2) points or more that activate each neuron (measured: the "
            "least number over all pairs)",
            "Proposition A.12",
            Expected(min=needed),
            float(data.least_active),
            n=pairs,
            because=f"the number is uniform on 0..n/k: one of {pairs} pairs has none with probability "
            f"{1 - some**pairs:.2f}; the proposition's own probability, 1 - m^-0.01 at most, is "
            f"{1 - config.m**-0.01:.3f}; all pairs reach n/(3km^2) with {reached:.2f} even for n/k to infinity",
        ),
        judge(
            "inside",
            f"with all of Assumption 4.3 met with constants 1 (k = {k}, d = k^10, n = k^7, m = k, eta = 1/d^2, "
            "sigma_w^2 = eta/k^5) each point activates all its neurons at t = 1 (measured: the share active)",
            "Lemma 5.5, Lemma B.1",
            Expected(value=1.0),
            float(data.inside_active),
            n=k**7,
            smoke=False,
            because="one step is too short for the largest init allowed: Lemma A.13's bound eta sqrt(d)/(nm) is "
            f"exceeded {float(data.inside_A13):.2g} times; it needs sigma_w <= eta/(6 sqrt(d) n m)",
        ),
    ]


def induction(data: xr.Dataset, config: Coefficients, bench: Bench) -> list[Claim]:
    """Lemmas 5.3, 5.5 and B.7 for t >= 1: until eta t = 1, and after."""
    here = data.isel(time=np.flatnonzero(data.t.values >= 1))
    t, eps = here.t.values, epsilon(config.d, config.k, config.n)
    share = config.k / config.n
    upper = here.sigma_most / (2 * share * np.log1p(t))
    bounded = {
        "1 (upper)": upper,
        "2": here.gap_hat_same / (5 * eps),
        "3": here.gap_hat / (63 * eps),
        "4": here.gap / (65 * eps),
        "5": here.ratio_same / (1 + 14 * eps),
        "6": here.ratio / (1 + 130 * eps),
        "8 (lambda)": here.lam_other / eps,
        "8 (sigma)": here.sigma_other / (2 * eps),
    }
    early = t <= max(1 / config.eta, t[0])
    largest = {name: float(ratio[early].max()) for name, ratio in bounded.items()}
    name = max(largest, key=lambda key: largest[key])
    below = (here.sigma_least - share / 2 * np.log(t * config.eta)) / share
    uneven = (
        "outside the lemma's window T <= exp(sqrt k): noise is remembered unevenly, the points of least margin "
        "carry the growth"
    )

    claim = partial(bench.judge, n=len(t))
    return [
        claim(
            "B7",
            f"properties 1 to 6 and 8 hold until eta t = 1 (with eps = {eps:.3g} at this size all but 1 are "
            f"idle; measured: the largest ratio of a side to its bound, property {name})",
            "Lemma B.7",
            Expected(max=1.0),
            largest[name],
        ),
        claim(
            "B7.late",
            f"sigma_own <= (2k/n) ln(t + 1) until eta t = {config.late:.0e} (measured: the largest ratio)",
            "Lemma B.7, property 1",
            Expected(max=1.0),
            float(upper.max()),
            because=uneven,
        ),
        claim(
            "B7.late.lower",
            f"sigma_own >= (k/(2n)) ln(eta t) until eta t = {config.late:.0e} (measured: the least difference "
            "over k/n)",
            "Lemma B.7, property 1",
            Expected(min=0.0),
            float(below.min()),
            because=uneven,
        ),
        claim(
            "active",
            "each point activates all neurons of its label from t = 1 on (measured: the least share)",
            "Lemma 5.5; Lemma B.7, property 7",
            Expected(value=1.0),
            float(here.own_active.min()),
            because="a neuron that none of a cluster's points activates at the start learns that cluster later; "
            f"all are active from t = {active_from(here):g} on",
        ),
        claim(
            "ratio",
            "loss derivatives of any two points are of one size, within a factor of 2, at T = 1/eta",
            "Lemma 5.3, eq. (6)",
            Expected(max=2.0),
            float(here.ratio[early][-1]),
            because="the ratio is exp(gap) at most, and gaps keep their proportion to lambda: n/k and d are too "
            "small for eq. (6) here",
        ),
        claim(
            "ratio.late",
            f"and at eta t = {config.late:.0e}",
            "Lemma 5.3, eq. (6)",
            Expected(max=2.0),
            float(here.ratio[-1]),
            because="gaps grow with lambda ~ ln t, so the ratio grows as a power of t; the lemma's window T <= "
            "exp(sqrt k) ends long before",
        ),
    ]


def active_from(here: xr.Dataset) -> float:
    """The first moment from which on all own neurons are active."""
    off = np.flatnonzero(here.own_active.values < 1)
    last = off[-1] + 1 if len(off) else 0
    return float(here.t.values[last]) if last < here.sizes["time"] else math.inf


def growth(data: xr.Dataset, config: Coefficients, bench: Bench) -> list[Claim]:
    """lambda against log(eta t): slope and offset."""
    time = config.eta * data.t.values
    late = time >= 1
    slope, height = np.polyfit(np.log(time[late]), data.lam.values[late], 1)
    kappa = 1 + config.k / config.n
    offset = math.log(kappa * config.d / (config.m * config.k)) / kappa
    law = data.lam.values[time > 0] / data.theory.values[time > 0]
    usual = time[time > 0] >= 0.05
    where = "Section 5.3, Step 2; Lemma B.23"
    count = int(late.sum())
    lower = data.lam_least - np.log(np.maximum(time, 1e-300)) / 4
    upper = data.lam_most / np.maximum(4 * np.log1p(data.t), 1e-300)
    inside = bool((lower[1:] >= 0).all())
    return [
        bench.judge(
            "slope",
            f"lambda grows as log(eta t): its slope by ln t from eta t = 1 to {config.late:.0e} is 1/(1 + k/n)",
            where,
            Expected(value=1 / kappa, tolerance=0.05),
            float(slope),
            n=count,
        ),
        bench.judge(
            "offset",
            "and its offset is that of ln(eta t d/(mk)) (measured: lambda of the fitted line at eta t = 1)",
            where,
            Expected(value=offset, tolerance=0.15),
            float(height),
            n=count,
        ),
        bench.judge(
            "offset.printed",
            "lambda is log(eta t) (measured: lambda - log(eta t) on the fitted line at eta t = 1)",
            where,
            Expected(value=0.0, tolerance=0.5),
            float(height),
            n=count,
            because=f"the factor d/(mk) = {config.d / (config.m * config.k):.3g} is left out: lambda = Omega(1) "
            "long before T = 1/eta",
        ),
        bench.judge(
            "law",
            "lambda over the solution of q + e^q - 1 = kappa (d/(mk)) eta t, lambda = q/kappa, from eta t = 0.05 "
            "on (the ratio farthest from 1)",
            where,
            Expected(value=1.0, tolerance=0.05),
            float(law[usual][np.abs(law[usual] - 1).argmax()]),
            n=int(usual.sum()),
        ),
        bench.judge(
            "B23",
            "ln(eta t)/4 <= lambda <= 4 ln(t + 1) (measured: the largest of lambda / (4 ln(t+1)); inf where the "
            "lower bound fails)",
            "Lemma B.23",
            Expected(max=1.0),
            float(upper[1:].max()) if inside else math.inf,
            n=data.sizes["time"],
        ),
    ]
