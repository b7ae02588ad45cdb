r"""How small the init may be: two times, and the init at which they are equal.

Two clusters of one class: a, rich, and l, poor. Their points have the means xbar_k, the shares c_k of all points,
and noise of sd sigma in each coordinate. Weights are Gaussian of sd init in D dimensions and |v| = ||w||, so that
a neuron has the mass m0 = init^2 D. For p > 2:

*The fitting time.* Near its mean cluster k pulls with G_k = c_k |xbar_k|^p. The first neuron to fit it starts
with the component b along it (the largest of h/2). Alone with its cluster it has
z^(2-p) = b^(2-p) - (p-2) p G_k s, u = z/|z|, mass = m0 |z|^(2/p) (`transition.theory`); along y = log z its
clock is dt = (1 + (1-b^2) exp(-2y))^((p-2)/2) dy / (p G_k). So

    T_k = Lambda / G_k,   Lambda = log(1/m0)/2 + (log(1/b) + Delta)/p,
    Delta = int_(log b)^inf [(1 + (1-b^2) e^(-2y))^((p-2)/2) - 1] dy          (what the turn to the centre costs)

and l is fitted later than a by the lag Lambda (1/G_l - 1/G_a).

*The turning time.* Let m = <u, xbar_l>/|xbar_l| for a neuron u of cluster a. The points of l activate it with
m + sigma g, g normal. While a pulls, u rests where m = e + rho M(m), with rho = G_l/G_a, M(m) = E relu(m + sigma
g)^(p-1) and e the cosine of xbar_a and xbar_l. Once a is fitted, l alone pulls:

    m' = p G_l (1 - m^2) M(m),   so that m = ARRIVED after I/(p G_l),   I = int_rest^ARRIVED dm / ((1-m^2) M(m)).

Without noise M(m) = m^(p-1), the rest is m = 0, and I is infinite: nothing turns. With noise I ~ sigma^-(p-2).

*Centres are learned* where the neuron of a comes too late, I/(p G_l) >= lag. Multiplied by G_l, for every pair:

    I(p, sigma) / p  >=  (1 - rho) Lambda(p, init)
    init  >=  D^(-1/2) exp( (log(1/b) + Delta)/p - I/(p (1 - rho)) )  =:  f(p, noise, imbalance).

No number in it was fitted to a training. For data that are not known yet, |xbar_k| = 1 and e is its typical
largest value, of the order sigma sqrt(1/n_a + 1/n_l).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.special import gamma, pbdv
from scipy.stats import norm

from tacit.papers.min2025.limits.settings import LARGEST

Numbers = npt.NDArray[np.float64]
ARRIVED = (
    0.7  # cosine with the poor cluster at which a neuron serves both (as in `transition.turning`)
)
GRID = 120  # points of the quadrature over m
FAR = 20.0  # from here on a moment is its expansion, to a part of 1e-5
POWERS = np.linspace(2.0, LARGEST, 61)  # between these p the law is interpolated
ROUNDS, SETTLED = 200, 1e-9


@dataclass(frozen=True)
class Pair:
    """A rich and a poor cluster of one class: sd of the noise, c_l/c_a, log |xbar_l|/|xbar_a|, cosine e."""

    sigma: float
    ratio: float
    log_length: float
    e: float

    def rho(self, p: float) -> float:
        """G_l/G_a."""
        return self.ratio * math.exp(p * self.log_length)


def typical_pair(sigma: float, n_rich: float, n_poor: float, pairs: int) -> Pair:
    """The pair of so many whose e is the largest, before any point is drawn."""
    e = sigma * largest_of(pairs) * math.sqrt(1 / n_rich + 1 / n_poor)
    return Pair(sigma, n_poor / n_rich, 0.0, e)


def pairs_of(x: Numbers, z: npt.NDArray[np.int64], labels: Numbers, sigma: float) -> list[Pair]:
    """All ordered pairs of clusters of one class in a data set: points (n, D), clusters (n,), labels (K,)."""
    counts = np.bincount(z, minlength=len(labels))
    means = np.stack([x[z == k].mean(0) for k in range(len(labels))])
    lengths = np.linalg.norm(means, axis=1)
    cosines = (means @ means.T) / np.outer(lengths, lengths)
    return [
        Pair(sigma, counts[k] / counts[a], math.log(lengths[k] / lengths[a]), float(cosines[a, k]))
        for a in range(len(labels))
        for k in range(len(labels))
        if a != k and labels[a] == labels[k]
    ]


def moment(q: float, x: Numbers) -> Numbers:
    """E relu(x + g)^q, g ~ N(0, 1), by the parabolic cylinder function (Gradshteyn & Ryzhik, 3.462.1)."""
    near = np.clip(x, -FAR, FAR)
    exact = gamma(q + 1) / math.sqrt(2 * math.pi) * np.exp(-(near**2) / 4) * pbdv(-q - 1, -near)[0]
    far = np.maximum(x, 1.0)
    return np.asarray(np.where(x > FAR, far**q * (1 + q * (q - 1) / (2 * far**2)), exact))


def largest_of(count: float) -> float:
    """The median of the largest of so many standard normal numbers."""
    return float(norm.ppf(0.5 ** (1 / count)))


@cache
def turn_to_centre(p: float, b: float) -> float:
    """log(1/b) + Delta, by the trapezoidal rule in y from log b on; Delta falls as exp(-2y)."""
    y = np.linspace(math.log(b), 12.0, 2000)
    extra = np.expm1((p - 2) / 2 * np.log1p((1 - b * b) * np.exp(-2 * y)))
    return -math.log(b) + float(np.trapezoid(extra, y))


def growth(p: float, log_init: float, D: int, h: int) -> float:
    """Lambda: the time in which a cluster is fitted, times its pull."""
    b = min(largest_of(h / 2) / math.sqrt(D), 1.0)
    return -log_init - math.log(D) / 2 + turn_to_centre(p, b) / p


def pull(p: float, sigma: float, m: Numbers) -> Numbers:
    """M(m) = E relu(m + sigma g)^(p-1)."""
    return np.asarray(sigma ** (p - 1) * moment(p - 1, m / sigma))


def rest(p: float, pair: Pair) -> float:
    """m of the rich cluster's neuron while its cluster pulls: m = e + rho M(m), by iteration; <= ARRIVED."""
    m, rho = pair.e, pair.rho(p)
    for _ in range(ROUNDS):
        ahead = min(pair.e + rho * pull(p, pair.sigma, np.array([m])).item(), ARRIVED)
        if abs(ahead - m) < SETTLED:
            break
        m = ahead
    return m


def turning(p: float, pair: Pair) -> float:
    """I: the time in which the rich cluster's neuron turns to the poor one, times p G_l; inf without noise."""
    if pair.sigma == 0:
        return math.inf
    # steps of sigma near 0, where M is flat, and of m itself further out
    first, last = (math.asinh(m / pair.sigma) for m in (rest(p, pair), ARRIVED))
    m = pair.sigma * np.sinh(np.linspace(first, last, GRID))
    return float(np.trapezoid(1 / ((1 - m**2) * pull(p, pair.sigma, m)), m))


def least_log_init(p: float, pair: Pair, D: int, h: int) -> float:
    """log f(p, noise, imbalance): the log of the least init from which both centres are learned at this p > 2.

    -inf where no init is too small: without noise, and where l is fitted no later than a.
    """
    rho = pair.rho(p)
    if rho >= 1 or pair.sigma == 0:
        return -math.inf
    return growth(p, 0.0, D, h) - turning(p, pair) / (p * (1 - rho))


def critical_p(log_init: Numbers, pairs: Sequence[Pair], D: int, h: int) -> Numbers:
    """For each init the p from 2 on at which it is the least one allowed by all pairs, cut at LARGEST.

    f falls as p grows: the first p of the grid at which it is low enough is known, and what lies before it is
    interpolated.
    """
    bounds = np.array([max(least_log_init(p, pair, D, h) for pair in pairs) for p in POWERS])
    found = []
    for init in log_init:
        above = np.flatnonzero(bounds > init)
        last = int(above[-1]) if len(above) else -1
        if last < 0 or last == len(POWERS) - 1:
            found.append(POWERS[last + 1] if last < 0 else POWERS[-1])
            continue
        low, high = bounds[last], max(bounds[last + 1], -1e9)
        found.append(POWERS[last] + (low - init) / (low - high) * (POWERS[last + 1] - POWERS[last]))
    return np.array(found)
