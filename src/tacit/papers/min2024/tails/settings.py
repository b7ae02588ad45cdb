"""The settings and the entry of `min2024.tails` (without torch)."""

import math
from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_pairs,
    check_positive,
    check_unique,
)

LEAST_BOUND = 1e-15


@dataclass(frozen=True)
class Tails:
    """Failure probabilities where the printed bounds are 1, .1, ..., 1e-12: D/alpha^2 is solved from the bound.

    `p`: the powers of F^(p) on clean data. `sampled`: the powers above 2 at which perturbed F^(p) is reached by
    importance sampling alone, `n` points for each class (p = 2 is integrated). `rho`, `delta`: the theorems'
    own, one of each, for they enter through D rho^2/alpha^2 and D delta^2/alpha^2. `counted` points check the
    integrals by plain counting.
    """

    K: tuple[int, ...] = (2, 4, 10)
    K1: tuple[int, ...] = (1, 2, 6)
    bound: tuple[float, ...] = (1.0, 0.1, 1e-3, 1e-6, 1e-9, 1e-12)
    p: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 4.0)
    sampled: tuple[float, ...] = (3.0,)
    rho: float = 0.5
    delta: float = 1.0
    n: int = 8000
    counted: int = 50_000

    def __post_init__(self) -> None:
        check_pairs(self.K, self.K1, 10**6)
        check_at_most("K", self.K, 12, "the integrals are over one coordinate after the other")
        check_at_most("bound", self.bound, 1, "a bound above 1 says nothing")
        check_at_least("bound", self.bound, LEAST_BOUND)
        check_at_least("p", self.p, 1, "p = 1 is ReLU")
        check_at_most("p", self.p, 8, "larger powers need finer tables")
        check_at_least(
            "sampled", self.sampled, 2.01, "p = 2 is integrated, and below the radius differs"
        )
        check_positive("rho", (self.rho,))
        check_at_most("rho", (self.rho,), 1, "the radius is (1 - rho)/sqrt(K)")
        check_at_least("delta", (self.delta,), 0.2, "a smaller one needs longer tables")
        check_at_most(
            "delta", (self.delta,), math.sqrt(2), "the radius below is (sqrt(2) - delta)/2"
        )
        for name in ("K", "bound", "p", "sampled"):
            check_unique(name, getattr(self, name))
        if len(self.bound) < 2:
            raise CallError(
                f"bound={self.bound}: two or more, for how fast both sides fall is compared"
            )
        check_at_least("n", (self.n,), 100, "an interval needs points")
        check_at_least("counted", (self.counted,), 100, "an interval needs points")


EXHIBITS = (
    Exhibit(
        id="min2024.tails",
        title="The failure probabilities where the bounds say something",
        where="Section 3, Proposition 1 and Theorem 1; Appendix C.4, Theorem 3; the poster's Theorems",
        claim="where the printed bounds are 1 down to 1e-12, the failures are rarer still",
        scales={
            "smoke": Tails((2, 4), (1, 2), (0.1, 1e-6, 1e-12), (1.0, 3.0), n=100, counted=2000),
            "laptop": Tails(),
            "paper": Tails(
                p=(1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0),
                sampled=(2.5, 3.0, 4.0),
                n=20_000,
                counted=400_000,
            ),
        },
    ),
)
