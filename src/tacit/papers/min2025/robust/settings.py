"""The settings and the entry of `min2025.robust` (without torch)."""

import math
from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_clusters,
    check_positive,
    check_unique,
)


@dataclass(frozen=True)
class Robust:
    """F^(p) for growing p beside the Bayes rule.

    `ratio` = D / (alpha^2 K) as in min2024: the noise at which failures are counted (at K = 10 and 200 the bound
    is below 1 from `delta` = 0.8 on). `alpha` and `D`: the setting of the radius curves. `n` samples a setting
    for counts, `points` for curves.
    """

    K: int = 10
    K1: int = 6
    p: tuple[float, ...] = (3.0, 4.0, 6.0, 12.0, 30.0)
    delta: tuple[float, ...] = (0.2, 0.5, 0.8, 1.0, 1.2)
    ratio: tuple[float, ...] = (1.0, 2.0, 200.0)
    n: int = 100_000
    points: int = 4000
    D: int = 1000
    alpha: float = 0.3

    def __post_init__(self) -> None:
        check_clusters(self.K, self.K1, self.D)
        check_at_least("p", self.p, 2.01, "the statement is for p > 2")
        check_at_most("delta", self.delta, math.sqrt(2), "the radius is (sqrt(2) - delta)/2")
        check_at_least("delta", self.delta, 0)
        check_positive("ratio", self.ratio)
        for name in ("p", "delta", "ratio"):
            check_unique(name, getattr(self, name))
        check_positive("n", (self.n,))
        check_positive("points", (self.points,))
        check_positive("alpha", (self.alpha,))


EXHIBITS = (
    Exhibit(
        id="min2025.robust",
        title="F^(p) against the Bayes rule and the best possible radius",
        where="Poster, Theorems: provable robustness of pReLU",
        claim="F^(p), p > 2, survives up to sqrt(2)/2, where no accurate classifier can; large p is Bayes",
        scales={
            "smoke": Robust(K=4, K1=2, p=(3.0, 6.0), ratio=(1.0, 50.0), n=1000, points=300),
            "laptop": Robust(),
            "paper": Robust(p=(2.5, 3.0, 4.0, 6.0, 12.0, 30.0, 100.0), n=400_000, points=20_000),
        },
    ),
)
