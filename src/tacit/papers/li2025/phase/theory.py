r"""What is predicted before anything is trained, in s = sigma/sqrt(d), lengths in units of sqrt(d).

Notation: k orthonormal centres, half of them positive, N = n/k training points each; C labels, each for g = k/C
clusters of one class, so that q = C/2 labels are opposite; e, e_j independent standard normals.

**Averages of groups** (p = 1; li2025, Definition 4.1 for g = k/2). Label G has learned w_G = sum_{j in G} mu_j.
The plane between the own label and G' is at

    <x, w_G - w_G'> / sqrt(2g) = (1 + s sqrt(g) (e - e_G')) / sqrt(2g),

x = mu + s xi, and the nearest of the q planes counts. The median radius is, exactly for these planes,

    r_g = (1 - s sqrt(g) m(C/2)) / sqrt(2g),    m(q) the median of max_{j <= q} e_j - e,    m(1) = 0.

g = k/2 (2 labels) gives 1/sqrt(k) with no term in s; g = 1 (k labels) gives r_1 = (1 - s m(k/2))/sqrt(2).

**Centres** (p > 2, any labels; min2024, F^(p)). Broken means relu(x_1)^p <= sum_j relu(x_j)^p over the opposite
clusters. At the tie the leading pair has both coordinates near 1/2, the others s e_j, whose powers are
O(s^p), and bending towards a second cluster by b costs b^2 and gives b^p < b^2. So to first order in s the pair's
plane decides: r_1 for every number of labels. With k labels the largest logit decides, relu(a)^p = relu(b)^p
where a = b, so r_1 holds at every p.

**p = 2 with fewer labels than clusters**: the field of the alignment phase is parallel to the neuron (min2024,
Figure 7), so neurons keep directions between average and centres. No closed form is given: the radius lies
between.

**Learned directions** are means of N points with noise of norm^2 sigma^2/N (centres of norm 1): a factor
1/sqrt(1 + sigma^2/N) on every radius, since the test point does not see that noise (as in `story.theory`).

**Where averages catch up.** r_1 falls with s and r_{k/2} does not: they meet at

    s_meet = (1 - sqrt(2/k)) / m(k/2).

Beyond, averages have the larger median radius (they err more often, too), and decoupling buys nothing.

**Whether a neuron stays at its centre** (2 labels or groups, mean field). Let a neuron have the component 1
along its own centre and t along another cluster of its label. The pulls of the points are proportional to
relu^(p-1), so that at rest

    t = R  E relu(t + s e)^(p-1) / E relu(1 + s e)^(p-1),

R the weight of a point of the other cluster over that of an own point: 1 while nothing is fitted. p = 1: the only
solution is t near 1, the average. p = 2: none below 1. p > 2: there is one with t = O(s^(p-1)) up to a noise
s_stay(p, R), where it meets an unstable one. With tau = t/s and A(tau) = E relu(tau + e)^(p-1), and the
denominator 1 to first order, tau = R s^(p-2) A(tau), hence

    s_stay = (max_tau tau / A(tau) / R)^(1/(p-2)).

R after a while: the logits of cluster j are served by c_j neurons, e^f_j ~ c_j time, weights e^-f_j ~ 1/c_j, so R
is the largest count over the smallest. With neurons drawn at random, counts are multinomial (`typical_ratio`).
"""

import math
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from tacit.papers.li2025.phase.settings import Phase

FIRST_ORDER = 0.2  # a larger correction is not the end of the series (as `story.theory`)
GRID = np.linspace(-9, 9, 4001)
DRAWS = 20_000


@cache
def median_gap(q: int) -> float:
    """m(q): P(max_{j <= q} e_j - e <= m) = E Phi(e + m)^q = 1/2."""
    weight = norm.pdf(GRID)

    def excess(m: float) -> float:
        return float(np.trapezoid(weight * norm.cdf(GRID + m) ** q, GRID)) - 0.5

    return float(brentq(excess, -1.0, 10.0))


def group_radius(config: Phase, labels: int, sigma: float) -> float:
    """r_g of the ideal planes, in units of sqrt(d)."""
    g, s = config.k // labels, sigma / math.sqrt(config.d)
    return (1 - s * math.sqrt(g) * median_gap(labels // 2)) / math.sqrt(2 * g)


def learned(config: Phase, sigma: float) -> float:
    """What the noise of the means of N = n/k points takes off a radius, as a factor."""
    return 1 / math.sqrt(1 + sigma**2 * config.k / config.n)


def predicted(config: Phase, p: float, labels: int, sigma: float) -> float:
    """The median radius of a trained net; NaN where no closed form is given or s is not small."""
    effective = config.k if p > 2 else labels
    g, s = config.k // effective, sigma / math.sqrt(config.d)
    if s * math.sqrt(g) * median_gap(effective // 2) > FIRST_ORDER:
        return math.nan
    if 1 < p <= 2 and labels < config.k:
        return math.nan
    return group_radius(config, effective, sigma) * learned(config, sigma)


def s_meet(k: int) -> float:
    """The noise from which averages have the larger median radius."""
    return (1 - math.sqrt(2 / k)) / median_gap(k // 2)


def powers(tau: float, p: float) -> float:
    """E relu(tau + e)^(p-1)."""
    return float(np.trapezoid(norm.pdf(GRID) * np.maximum(tau + GRID, 0) ** (p - 1), GRID))


def s_stay(p: float, ratio: float = 1.0) -> float:
    """The noise up to which a neuron stays at its centre; 0 where it never does (p <= 2)."""
    return 0.0 if p <= 2 else float((most_leak(p) / ratio) ** (1 / (p - 2)))


@cache
def most_leak(p: float) -> float:
    """max_tau tau / A(tau); p > 2, where it is attained (A grows as tau^(p-1))."""
    tau = np.linspace(0.02, 8, 400)
    return float(max(t / powers(t, p) for t in tau))


@cache
def typical_ratio(neurons: int, clusters: int) -> float:
    """R: the median of the largest count over the smallest, `neurons` on `clusters` at random (0 counts as 1)."""
    counts = np.random.default_rng(0).multinomial(neurons, [1 / clusters] * clusters, size=DRAWS)
    return float(np.median(counts.max(1) / np.maximum(counts.min(1), 1)))
