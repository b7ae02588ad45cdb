"""The constants of Lemmas B.7 and C.10, and at which sizes eps is as small as one asks."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.optimize import brentq

NETS = ("two", "classes")


@dataclass(frozen=True)
class Constants:
    """What stands before eps, for the net with two labels (B) and with k (C).

    `letter` and `numbers` name the lemmas: of the induction, of lambda's window, of lambda's ratio, of the
    weights.
    """

    letter: str
    induction: str
    same: float
    hat: float
    gap: float
    ratio_same: float
    ratio: float
    balance: float
    spread: float
    L2: float


def constants(net: str, k: int) -> Constants:
    """Lemmas B.7, B.19, B.24, B.25; Lemmas C.10, C.19, C.24, C.25."""
    if net == "two":
        return Constants("B", "B.7", 5, 63, 65, 14, 130, 200, 204, 900 * k)
    q = k * k
    return Constants(
        "C", "C.10", 5 * k, 32 * q, 33 * q, 14 * k, 67 * q, 200 * q, 204 * q, 900 * k**2.5
    )


def counts_term(share: float) -> float:
    """The first term of eps, 2 ln N / (sqrt N - ln N), N = n/k."""
    return 2 * math.log(share) / (math.sqrt(share) - math.log(share))


def sizes_for(eps: float, k: int) -> tuple[float, float]:
    """The least n/k and d whose terms of eps are all at most `eps` (the k^2/n among them).

    Both terms fall from ln N = 4.1 and from ln d = 2 on.
    """

    def size(term: Callable[[float], float], low: float, high: float) -> float:
        """exp(u) where term(u) = ln eps, `low` where it is smaller there already."""
        goal = math.log(eps)
        return math.exp(brentq(lambda u: term(u) - goal, low, high) if term(low) > goal else low)

    share = size(lambda u: math.log(counts_term(math.exp(u))), 4.1, 180.0)
    return max(share, k / eps), size(lambda u: math.log(4 * k * k * u) - u / 2, 2.0, 700.0)


def nearest(eps: float, k: int) -> str:
    """Where eps is that small, in words."""
    share, d = sizes_for(eps, k)
    return f"eps <= {eps:.2g} takes n/k = {share:.2g} points a cluster and d = {d:.2g}"
