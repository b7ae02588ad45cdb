"""Probabilities of frei2023 in closed form: the proofs' bound, and the exact laws it is held against."""

import math

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad
from scipy.special import log_ndtr, logsumexp, ndtr

from tacit.base.estimate import Estimate, most
from tacit.base.statistics import lower_limit, upper_limit
from tacit.data import ClusterMixture
from tacit.measure import proportion
from tacit.nets import linear_rule

EIGHTH = 1 / 8  # Theorem 4.1's radius over sqrt(d)


def off_law(counts: npt.ArrayLike, n: int, law: npt.ArrayLike) -> Estimate:
    """The largest distance of the shares counts/n from their exact law."""
    pairs = list(zip(np.ravel(counts), np.ravel(law), strict=True))
    return most(proportion(int(c), n, of=len(pairs)).away_from(float(p)) for c, p in pairs)


def share_below(
    wrong: npt.ArrayLike, tests: int, bound: float, *, over: str, nets: int = 0
) -> Estimate:
    """The share of what `over` names with an error of at most `bound`, from `wrong` of `tests` points of each.

    One whose own interval has the bound inside may be either: of the five percent a tenth is for the points of
    all `nets`, which are cheap. Where settings differ it is the average over them, and its interval is safe:
    unlike trials have a count that spreads less than a binomial one (Hoeffding 1956).
    """
    counts = np.ravel(wrong)
    errors = [proportion(int(w), tests, of=10 * (nets or len(counts))) for w in counts]
    sure, seen, possible = (
        sum(getattr(e, end) <= bound for e in errors) for end in ("high", "value", "low")
    )
    n, level = len(counts), 1 - 0.9 * 0.025
    low, high = lower_limit(sure, n, level), upper_limit(possible, n, level)
    return Estimate(seen / n, low, high, n, over)


def log_error(mixture: ClusterMixture) -> float:
    """ln P(y u'x <= 0), exactly."""
    u = linear_rule(mixture).u
    margin = mixture.labels * (mixture.centres @ u) / (mixture.sd * u.norm())
    return float(logsumexp(log_ndtr(-margin.numpy()))) - math.log(mixture.K)


def log_above(mixture: ClusterMixture, level: float) -> float:
    """ln P(y u'x > level), exactly."""
    u = linear_rule(mixture).u
    short = (mixture.labels * (mixture.centres @ u) - level) / (mixture.sd * u.norm())
    return float(logsumexp(log_ndtr(short.numpy()))) - math.log(mixture.K)


def log_bound(d: float) -> float:
    """ln(2 d^(1 - ln(d)/2))."""
    return math.log(2) + (1 - math.log(d) / 2) * math.log(d)


def nice_failure(n: int, d: int, K: int) -> float:
    """P(one of P1 to P6 fails), at most, over what Proposition A.1 states for it (n points, sigma <= 1).

    P1 fails with n P(chi^2_d > 2d) <= n (2/e)^(d/2); given P1 each <xi_i, xi_j> and <mu_q, xi_i> is too large
    with 2 Q(ln d) or less; P6 fails with K (1 - 1/K)^n or less; P4 and P5 follow from P1 to P3, 2 + sqrt(2) <= 4.
    """
    log = math.log(d)
    tails = (
        n * math.exp((math.log(2) - 1) * d / 2)
        + n * (n - 1 + 2 * K) * ndtr(-log)
        + K * math.exp(n * math.log1p(-1 / K))
    )
    rare = math.exp(-(log**2) / 2)
    return float(tails / (3 * n**2 * rare + n**2 * math.exp(-d / 16) + d * rare**2))


def log_failures(mixture: ClusterMixture, d: int) -> tuple[float, float]:
    """ln P(y N < 1) and ln P(radius <= sqrt(d)/8) of Theorem 4.1's net, at most, for these means.

    On cluster q, with g, g_j ~ N(0, 1) along mu_q and mu_j: y N = 2 + 4 sigma g/sqrt(d) >= 1 unless
    g < -sqrt(d)/(4 sigma) or another neuron is on, g_j > (1/2 - cos) sqrt(d)/sigma. A way of length sqrt(d)/8
    turns the own neuron off, or another on, only where the same is so with 1/2 - 1/8 for the 1/4 and the 1/2.
    """
    scale = math.sqrt(d) / mixture.sd
    cosines = (mixture.centres @ mixture.centres.T / d).numpy()
    found = []
    for own, other in ((0.25, 0.5), (0.5 - EIGHTH, 0.5 - EIGHTH)):
        room = other - cosines
        np.fill_diagonal(room, own)
        found.append(float(logsumexp(log_ndtr(-room * scale))) - math.log(mixture.K))
    return found[0], found[1]


def margin_law(d: float) -> float:
    """P(y N < 1) for two orthogonal means and sigma = 1, with s = 4/sqrt(d) and g, g' ~ N(0, 1).

    y N = relu(2 + s g) - relu(s g' - 2) < 1 where g < (relu(s g' - 2) - 1) / s.
    """
    s = 4 / math.sqrt(d)
    other_on = quad(lambda g: density(g) * ndtr(g - 3 / s), 2 / s, np.inf)[0]
    return float(ndtr(2 / s) * ndtr(-1 / s) + other_on)


def radius_law(d: float) -> float:
    """P(radius <= r), r = sqrt(d)/8, likewise: the own neuron off, or else the two in balance.

    With distances c = sqrt(d)/2 + g and c' = g' - sqrt(d)/2 to the kinks the radius is
    min(c, (c - c')/sqrt(2)), and the second is at most r where g' >= g + sqrt(d) - sqrt(2) r.
    """
    root = math.sqrt(d)
    off = (EIGHTH - 0.5) * root
    rise = (1 - math.sqrt(2) * EIGHTH) * root
    balance = quad(lambda g: density(g) * ndtr(-g - rise), off, np.inf)[0]
    return float(ndtr(off) + balance)


def density(g: float) -> float:
    """Of the standard Gaussian."""
    return math.exp(-g * g / 2) / math.sqrt(2 * math.pi)
