r"""What Appendix A.3 promises of a start by chance: extremes of Gaussians (A.9), and active points (A.12, C.3).

**Lemma A.9**, of l independent standard Gaussians, for every t >= 0 (the second to t = 2 ln l):

    P(X_min <= -sqrt(2 ln l) - t)  <=  exp(-t^2/2) / 2
    P(X_max <= sqrt(2 ln l - t))   <=  exp(-e^(t/2) / (sqrt(2 pi) (sqrt(2 ln l) + 1)))

The chances are 1 - Phi(a)^l and Phi(a)^l. (The proof's last step wants a + 1/a <= sqrt(2 ln l) + 1, which is
false for a near 0; with Birnbaum's bound on the tail, 2/(a + sqrt(a^2 + 4)), it goes through.)

**Propositions A.12 and C.3** ask each pair of a neuron and a cluster for some active points. Of the points of a
cluster a share Phi(z) activates a neuron, z = <w, mu_j>/(sigma_w sqrt d), a standard Gaussian. Centres are
orthogonal, so pairs are independent, but for products of two weights: of the order 1/sqrt(d), they are left out.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

Array = npt.NDArray[np.float64]
COUNTS = (1, 2, 3, 5, 10, 20, 100, 1000, 10**4, 10**6)  # l
DEEPEST = 10.0  # t of the least; the largest has t to 2 ln l
GRID = 400


def least_below(count: int, t: Array) -> Array:
    """ln P(X_min <= -sqrt(2 ln l) - t)."""
    tail = ndtr(-math.sqrt(2 * math.log(count)) - t)
    return np.asarray(np.log(-np.expm1(count * np.log1p(-tail))))


def least_bound(count: int, t: Array) -> Array:
    """The logarithm of Lemma A.9's bound on it, which has no l."""
    return np.asarray(math.log(0.5) - t**2 / 2)


def largest_below(count: int, t: Array) -> Array:
    """ln P(X_max <= sqrt(2 ln l - t))."""
    return np.asarray(count * log_ndtr(np.sqrt(np.maximum(2 * math.log(count) - t, 0.0))))


def largest_bound(count: int, t: Array) -> Array:
    """The logarithm of Lemma A.9's bound on it."""
    return np.asarray(
        -np.exp(t / 2) / (math.sqrt(2 * math.pi) * (math.sqrt(2 * math.log(count)) + 1))
    )


def excess(
    chance: Callable[[int, Array], Array],
    bound: Callable[[int, Array], Array],
    top: Callable[[int], float],
) -> float:
    """The most by which ln(chance) is above ln(bound), for all l of COUNTS and t on a grid from 0 to top(l)."""
    found = []
    for count in COUNTS:
        t = np.linspace(0.0, top(count), GRID)
        found.append(float((chance(count, t) - bound(count, t)).max()))
    return max(found)


def extremes() -> tuple[float, float]:
    """Lemma A.9's two lines: the most by which each is missed, in logarithms."""
    return (
        excess(least_below, least_bound, lambda _: DEEPEST),
        excess(largest_below, largest_bound, lambda count: 2 * math.log(count)),
    )


def promise(n: int, lead: float, factor: float, per: float) -> float:
    """1 - lead^-0.01 - factor exp(-n/per): A.12 has m, 2mk, 9km^2, and C.3 hk, 2hk^2, 9k^3h^2."""
    return 1 - lead**-0.01 - factor * math.exp(-n / per)


def enough_points(lead: float, factor: float, per: float) -> int:
    """The least n at which the promise is half of its limit in n; 0 where that limit is 0.

    With far fewer points the promise is negative, and says nothing.
    """
    limit = 1 - lead**-0.01
    return math.ceil(per * math.log(2 * factor / limit)) if limit > 0 else 0


def activated(
    neurons: int, k: int, n: int, asked: float, draws: int, rng: np.random.Generator
) -> int:
    """In how many of `draws` each pair of a neuron and a cluster of n points has `asked` active ones or more."""
    points = rng.multinomial(n, [1 / k] * k, size=draws)[:, None, :]
    share = ndtr(rng.standard_normal((draws, neurons, k)))
    counts = rng.binomial(points, share)
    return int((counts.min((1, 2)) >= asked).sum())
