"""The edge of Assumption 2.2, found by bisection, and how much of Lemmas A.9, D.5 and D.9 is used up along it.

Each lemma is arithmetic in d, k, sigma, p and c that the assumption is said to imply. Nothing here uses how: the
largest sigma, and the largest p for a k and a sigma, are those that the assumption's own inequality still admits.
"""

import math

import numpy as np
import xarray as xr

from tacit.papers._shared.assumptions import most_clusters, noise_term
from tacit.papers.frei2023._shared.means import largest, largest_overlap
from tacit.papers.frei2023._shared.trained import eta_in_numbers

NOISE = (1.0, 0.5, 0.1, 0.01)  # of the largest sigma that two clusters are admitted with
LEMMAS = ("A.9", "D.5", "D.9")


def edges(d: np.ndarray) -> xr.Dataset:
    """The largest of each at each d: Delta over d/21, k (p + Delta) over d - Delta, and D.9's constant."""
    found = np.array([np.max([used(x, *at) for at in edge(x)], axis=0) for x in d])
    return xr.Dataset({"edge": (("d", "lemma"), found)}, coords={"d": d, "lemma": list(LEMMAS)})


def edge(d: float) -> list[tuple[int, float, float]]:
    """(k, sigma, p) that are admitted: k from 2 to the most, without overlap and with the largest."""
    most_noise = largest(lambda sigma: most_clusters(d, sigma) >= 2, 1.0)
    found = []
    for sigma in (share * most_noise for share in NOISE):
        most = most_clusters(d, sigma)
        for K in sorted({2, max(2, math.isqrt(most)), most}):
            found += [(K, sigma, 0.0), (K, sigma, largest_overlap(d, K, sigma))]
    return found


def used(d: float, K: int, sigma: float, p: float) -> list[float]:
    """What each lemma bounds: A.9 and D.5 by 1; D.9's (eta_1 + eta_2) ||u|| over sqrt(d/(c^2 k)), at the worst c.

    ||u||^2 is at most k d + k (k - 1) p.
    """
    delta = noise_term(d, sigma)
    size = math.sqrt(K * d + K * (K - 1) * p)
    lengths = [
        eta_in_numbers(d, K, p, delta, rarer) * size / math.sqrt(d * K) * rarer
        for rarer in (1, K // 2)
    ]
    return [21 * delta / d, K * (p + delta) / (d - delta), max(lengths)]
