"""The settings and the entry of `min2024.after_thm2` (without torch)."""

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
class Trajectories:
    """Neurons followed by gradient flow on the centres, from length `eps`, at each p.

    Of each sign of v: `n` random neurons, as (4) draws them, and `n` in each of four places at the edge of a ball
    of cosine 1 - `delta`: just inside and just outside that of their class's average, outside it in the span of
    the own centres, and just inside that of a centre. `times` moments are kept up to
    T = log(1/(sqrt(h) eps))/(4 K), h the number of neurons, and as many from there to the end of the alignment
    phase (`min2024.lemma1`).
    """

    D: int = 50
    K: int = 10
    K1: int = 6
    p: tuple[float, ...] = (1.0, 2.0, 2.5, 3.0, 4.0)
    delta: float = 0.05
    eps: float = 1e-30
    n: int = 200
    times: int = 40

    def __post_init__(self) -> None:
        check_clusters(self.K, self.K1, self.D)
        check_at_least("K1", (self.K1,), 2, "with one centre it is the average")
        check_at_most("K1", (self.K1,), self.K - 2, "with one centre it is the average")
        check_at_least("D", (self.D,), self.K + 1, "neighbours outside the span are followed")
        check_at_least("p", self.p, 1, "p = 1 is ReLU")
        check_unique("p", self.p)
        check_positive("delta", (self.delta,))
        edge = 1 - (1 - 1 / max(self.K1, self.K - self.K1)) ** 0.5
        check_at_most("delta", (self.delta,), edge, "beyond, a centre may be inactive")
        check_positive("eps", (self.eps,))
        check_at_most("eps", (self.eps,), 1e-4, "the statements are for a small start")
        check_at_least("n", (self.n,), 6, "fewer decide nothing")
        check_at_least("times", (self.times,), 2)


EXHIBITS = (
    Exhibit(
        id="min2024.after_thm2",
        title="Who stays near the average, who comes closer: trajectories",
        where="Section 4.2, after Theorem 2",
        claim="at p = 1 neurons stay near the average; at p >= 3 none outside gets any closer to it",
        scales={
            "smoke": Trajectories(D=12, K=4, K1=2, p=(1.0, 3.0), n=8, times=6),
            "laptop": Trajectories(),
            "paper": Trajectories(D=1000, p=(1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0), n=500, times=60),
        },
    ),
)
