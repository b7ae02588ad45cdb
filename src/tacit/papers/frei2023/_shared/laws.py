"""Probabilities of frei2023 in closed form: the proofs' bound, and the exact laws it is held against."""

import math

import numpy as np
from scipy.integrate import quad
from scipy.special import log_ndtr, logsumexp, ndtr

from tacit.data import ClusterMixture
from tacit.nets import linear_rule

EIGHTH = 1 / 8  # Theorem 4.1's radius over sqrt(d)


def log_error(mixture: ClusterMixture) -> float:
    """ln P(y u'x <= 0), exactly."""
    u = linear_rule(mixture).u
    margin = mixture.labels * (mixture.centres @ u) / (mixture.sd * u.norm())
    return float(logsumexp(log_ndtr(-margin.numpy()))) - math.log(mixture.K)


def log_bound(d: float) -> float:
    """ln(2 d^(1 - ln(d)/2))."""
    return math.log(2) + (1 - math.log(d) / 2) * math.log(d)


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
