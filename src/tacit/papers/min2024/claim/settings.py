"""The settings and the entry of `min2024.claim` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_clusters, check_positive, check_unique


@dataclass(frozen=True)
class Realize:
    """`splits` random ways to spread F and F^(p) over h neurons, compared at n points."""

    D: int = 50
    K: int = 10
    K1: int = 6
    h: int = 60
    p: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 4.0)
    splits: int = 20
    n: int = 2000

    def __post_init__(self) -> None:
        check_clusters(self.K, self.K1, self.D)
        check_at_least("p", self.p, 1, "p = 1 is ReLU")
        check_unique("p", self.p)
        check_at_least("h", (self.h,), self.K, "each of the K centres needs a neuron")
        check_positive("splits", (self.splits,))
        check_positive("n", (self.n,))


EXHIBITS = (
    Exhibit(
        id="min2024.claim",
        title="F and F^(p) are PolyReLU networks, in many ways",
        where="Section 3, Claim and Remark 1",
        claim="f_p equals F (p = 1) and F^(p) for every split of the neurons, rescaling, permutation",
        scales={
            "smoke": Realize(D=20, h=20, splits=3, n=200),
            "laptop": Realize(),
            "paper": Realize(D=1000, h=2000, splits=20, n=2000),
        },
    ),
)
