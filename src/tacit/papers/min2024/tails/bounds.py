"""The five printed bounds a exp(-C c D/alpha^2) at C = 1/2, and how fast the truth falls beside them.

A Gaussian leaves a half-space at distance d from its centre with probability exp(-d^2 D/(2 alpha^2)), but for a
factor that no exponent shows: so the truth's exponent is set by the nearest point of the failure set.
"""

import math
from dataclasses import dataclass

from tacit.measure.tails import C

NAMES = ("prop1.F", "prop1.Fp", "thm1.Fp", "thm3.F", "thm3.Fp")


@dataclass(frozen=True)
class Printed:
    """The bounds at one K, by the names of `NAMES`."""

    K: int
    rho: float
    delta: float

    def parts(self, name: str) -> tuple[float, float]:
        """(a, c) of a exp(-C c D/alpha^2)."""
        K = self.K
        return {
            "prop1.F": (4.0, 1 / (4 * K)),
            "prop1.Fp": (2.0 * (K + 1), 1 / K**2),
            "thm1.Fp": (2.0 * (K + 1), self.delta**2 / (2 * K**2)),
            "thm3.F": (2.0, self.rho**2 / K),
            "thm3.Fp": (4.0, self.delta**2 / (8 * K**2)),
        }[name]

    def m(self, name: str, bound: float) -> float:
        """sqrt(D)/alpha, the centres' length in units of the noise, at which the bound has this value."""
        a, c = self.parts(name)
        return math.sqrt(math.log(a / bound) / (C * c))

    def distance(self, name: str, p: float, other: int) -> float:
        """From a centre that faces `other` centres to the nearest failure.

        1/sqrt(K) for F, sqrt(q/(1+q)) for F^(p) with q = other^min(1 - 2/p, 0). A perturbation of the theorems'
        length leaves rho/sqrt(K) of the first and delta/2 of the second. To survive (sqrt(2) + delta)/2 the own
        coordinate has to rise and all others to fall.
        """
        q = other ** min(1 - 2 / p, 0.0)
        return {
            "prop1.F": 1 / math.sqrt(self.K),
            "prop1.Fp": math.sqrt(q / (1 + q)),
            "thm1.Fp": self.delta / 2,
            "thm3.F": self.rho / math.sqrt(self.K),
            "thm3.Fp": self.delta * math.sqrt(other / (1 + other) / 2),
        }[name]

    def exponents(self, name: str, p: float, K1: int) -> float:
        """How many times as fast as the bound the truth falls: d^2/2 over C c, for the class that fails more."""
        nearest = min(self.distance(name, p, other) for other in (K1, self.K - K1))
        return nearest**2 / 2 / (C * self.parts(name)[1])
