"""The settings and the entry of `min2024.thm2` (without torch)."""

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
class NearAlignment:
    """Directions w at cosine 1 - delta from a class average or a centre.

    `starts` searches for the extreme derivative from each of that many random directions; `n` random
    neighbours show how often a sign occurs. Every delta is below 1 - sqrt(1 - 1/K1) for both classes.
    """

    D: int = 50
    K: int = 10
    K1: int = 6
    p: tuple[float, ...] = (1.0, 1.25, 1.5, 1.75, 2.0, 2.1, 2.5, 3.0, 4.0)
    delta: tuple[float, ...] = (1e-6, 1e-3, 0.05)
    starts: int = 40
    n: int = 10_000

    def __post_init__(self) -> None:
        check_clusters(self.K, self.K1, self.D)
        check_at_least("K1", (self.K1,), 2, "with one centre it is the average")
        check_at_most("K1", (self.K1,), self.K - 2, "each class has two centres or more")
        check_at_least("p", self.p, 1, "p = 1 is ReLU")
        check_unique("p", self.p)
        check_positive("delta", self.delta)
        check_unique("delta", self.delta)
        most = max(self.K1, self.K - self.K1)
        check_at_most(
            "delta", self.delta, 1 - (1 - 1 / most) ** 0.5, "beyond, a centre may be inactive"
        )
        check_positive("starts", (self.starts,))
        check_positive("n", (self.n,))


EXHIBITS = (
    Exhibit(
        id="min2024.thm2",
        title="Near the average and near the centres: who is drawn in, who is pushed out",
        where="Section 4.2, Theorem 2; Appendix D.4",
        claim="near the average neurons come closer at p = 1 and leave at p >= 3; near a centre they stay",
        scales={
            "smoke": NearAlignment(
                D=10, K=5, K1=3, p=(1.0, 2.0, 3.0), delta=(1e-6, 0.01), starts=8, n=500
            ),
            "laptop": NearAlignment(),
            "paper": NearAlignment(
                D=1000,
                p=(1.0, 1.25, 1.5, 1.75, 2.0, 2.1, 2.25, 2.5, 3.0, 3.5, 4.0),
                starts=60,
                n=5000,
            ),
        },
    ),
)
