r"""Failure probabilities of F and F^(p) on Gaussian clusters as integrals over one coordinate, in logarithms.

A point of cluster k is x = mu_k + s z with standard normal z and s = alpha/sqrt(D). In the coordinates
<x, mu_l>, K of them and independent, and in units of s, its own is N(m, 1), m = 1/s, and the others are N(0, 1).
Write K1 for the clusters of its own class, K2 for the others, Q for the normal tail, and

    A = ( sum_own   relu(x_l)^p )^(1/p)        B = ( sum_other relu(x_l)^p )^(1/p).

F^(p) errs where A <= B. One more coordinate t ~ N(0, 1) changes the two laws by, with b(t) = (a^p - t^p)^(1/p),

    P(A' <= a) = P(A <= a)/2 + int_0^a phi(t) P(A <= b(t)) dt
    P(A' >  a) = P(A >  a)/2 + int_0^a phi(t) P(A >  b(t)) dt + Q(a),

in which every term is positive: far tails lose no digit, and logarithms reach below 1e-308. So the probability
of a polyhedral or curved set in K dimensions is K integrals over a line.

**Perturbed, p = 2.** A and B are norms, so a perturbation of length r lowers A by r at most, or raises B by r.
Let B~ be B, or the largest of the other coordinates where all are negative. The nearest x' with F^(2) = 0 lies at
min(A, (A - B~)/sqrt(2)): A falls and B rises alike, or all of A is removed. Hence x is broken within r where
A <= max(r, B~ + sqrt(2) r). With K = 2 there is one coordinate each, and this is F^(p) for every p.

**F.** With u = <x, mu_bar_own>, v = <x, mu_bar_other> the broken set is the union of two half-planes,
u <= max(r, (sqrt(K) r + sqrt(K2) v)/sqrt(K1)): one integral over v.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from numpy.polynomial.legendre import leggauss
from scipy.interpolate import CubicSpline
from scipy.special import log_ndtr, logsumexp

Array = npt.NDArray[np.float64]
STEP = 0.1  # of the tables, in units of s: the logarithms of the laws are smooth on that of 1
NODES = 96  # Gauss-Legendre on each half of (0, a): they are dense at its ends, where the mass is
BEYOND = 15.0  # how far past the last place of interest integrals run, in units of s
LOG_ROOT = 0.5 * np.log(2 * np.pi)


def log_phi(t: Array) -> Array:
    """The logarithm of the standard normal density."""
    return -0.5 * t * t - LOG_ROOT


def with_one_more(grid: Array, log_law: Array, p: float, tail: bool) -> Array:
    """The table of log P(A <= a), or of log P(A > a) where `tail`, after one more N(0, 1) coordinate.

    The integral is split where t = b(t), and its second half is taken over b: each has its steep end at 0.
    """
    law = CubicSpline(grid, log_law)
    nodes, weights = leggauss(NODES)
    unit, log_weight = (nodes + 1) / 2, np.log(weights / 2)
    a = grid[1:, None]
    half = a * 2 ** (-1 / p)
    near = half * unit
    far = (a**p - near**p) ** (1 / p)
    slope = (p - 1) * (np.log(near) - np.log(far))  # |dt/db| at t = far, b = near
    terms = np.concatenate([log_phi(near) + law(far), log_phi(far) + law(near) + slope], axis=1)
    inner = logsumexp(terms + np.log(half) + np.tile(log_weight, 2), axis=1)
    out = np.logaddexp(log_law - np.log(2), np.concatenate([[-np.inf], inner]))
    return np.asarray(np.logaddexp(out, log_ndtr(-grid)) if tail else out)


def table(p: float, coordinates: int, m: float, reach: float, tail: bool) -> CubicSpline:
    """log P(A <= a) or log P(A > a) for 0 <= a <= reach: one coordinate N(m, 1), the others N(0, 1)."""
    grid: Array = STEP * np.arange(int(reach / STEP) + 3, dtype=np.float64)
    log_law = log_ndtr(m - grid if tail else grid - m)
    for _ in range(coordinates - 1):
        log_law = with_one_more(grid, log_law, p, tail)
    return CubicSpline(grid, log_law)


@lru_cache(maxsize=64)
def others(p: float, coordinates: int, reach: float) -> CubicSpline:
    """log P(B > b) of N(0, 1) coordinates: of no setting but their number and p."""
    return table(p, coordinates, 0.0, reach, tail=True)


def panels(low: float, high: float, width: float = 0.5) -> tuple[Array, Array]:
    """Nodes and log-weights of Gauss-Legendre rules of 8 on panels of that width from low to high."""
    edges = np.linspace(low, high, max(int((high - low) / width), 1) + 1)
    nodes, weights = leggauss(8)
    half = np.diff(edges) / 2
    at = (edges[:-1] + half)[:, None] + half[:, None] * nodes
    return at.ravel(), np.log(half[:, None] * weights).ravel()


def log_failure(
    p: float, own: int, other: int, m: float, r: float = 0.0, kept: bool = False
) -> float:
    """log P(a perturbation of length r breaks F^(p)), or log P(none does) where `kept`, for one cluster.

    For r > 0 this is p = 2, or one cluster on each side. r is in units of s, as is m = 1/s.
    """
    high = BEYOND + (0.0 if kept else m)
    root = np.sqrt(2) * r
    A = table(p, own, m, high + root, tail=kept)
    # a round length, so that the tables of the other side are shared
    B = others(p, other, float(np.ceil(high / 50) * 50))
    least = r - root
    b, log_weight = panels(least, high)
    b, log_weight = b[b < high], log_weight[b < high]
    below = b < 0
    log_density = np.empty_like(b)
    log_density[below] = np.log(other) + (other - 1) * log_ndtr(b[below]) + log_phi(b[below])
    above = b[~below]
    log_density[~below] = B(above) + np.log(-B(above, 1))
    inner = logsumexp(log_weight + log_density + A(b + root))
    return float(np.logaddexp(other * log_ndtr(least) + A(r), inner))


def log_failure_average(own: int, other: int, m: float, r: float = 0.0) -> float:
    """log P(a perturbation of length r breaks F), for one cluster of `own`; r and m in units of s."""
    K, u = own + other, m / np.sqrt(own)
    edge = (np.sqrt(own) - np.sqrt(K)) * r / np.sqrt(other)  # below it F breaks at u <= r
    v, log_weight = panels(edge, max(edge, 0.0) + m + BEYOND)
    reached = (np.sqrt(K) * r + np.sqrt(other) * v) / np.sqrt(own)
    inner = logsumexp(log_weight + log_phi(v) + log_ndtr(reached - u))
    return float(np.logaddexp(log_ndtr(edge) + log_ndtr(r - u), inner))
