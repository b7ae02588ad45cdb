"""The settings and the entry of `min2025.learned` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_clusters,
    check_init,
    check_positive,
    check_unique,
)


@dataclass(frozen=True)
class Learned:
    """Nets of width `h` trained on `n` noisy points for every p; Gaussian weights of sd `init`, as in min2024.

    `repeats` seeds at every p, and `near` seeds at the least p above 2, where trainings differ.
    """

    K: int = 10
    K1: int = 6
    D: int = 100
    h: int = 400
    n: int = 2000
    alpha: float = 0.1
    init: float = 1e-7
    p: tuple[float, ...] = (1.0, 1.5, 2.1, 2.3, 3.0, 4.0, 8.0)
    repeats: int = 6
    near: int = 60

    def __post_init__(self) -> None:
        check_init("init", (self.init,), flow=True)
        check_clusters(self.K, self.K1, self.D)
        for name in ("alpha", "init"):
            check_positive(name, (getattr(self, name),))
        check_at_least("p", self.p, 1)
        check_unique("p", self.p)
        check_at_least("n", (self.n,), self.K, "every cluster needs a point")
        for name in ("h", "repeats", "near"):
            check_at_least(name, (getattr(self, name),), 1)


EXHIBITS = (
    Exhibit(
        id="min2025.learned",
        title="What gradient flow learns as p grows",
        where="Poster, Observations and Theorems",
        claim="p = 1 learns F, p > 2 learns F^(p), and the larger p, the longer it takes",
        scales={
            "smoke": Learned(K=4, K1=2, D=12, h=40, n=60, p=(1.0, 3.0), repeats=1, near=1),
            "laptop": Learned(),
            "paper": Learned(D=1000, h=2000, n=20_000, p=(*Learned.p, 12.0)),
        },
    ),
)
