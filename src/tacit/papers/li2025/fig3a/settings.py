"""The settings and the entry of `li2025.fig3a` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_clusters,
    check_init,
    check_positive,
    check_unique,
)


@dataclass(frozen=True)
class Curves:
    """Section 6.1's data and training: k clusters (k1 positive) in d dimensions, noise `sigma`, n points, inits
    of sd `init` for weights and biases, T steps of size eta. `equal`: as many training points of each cluster.

    Trained with 2 labels: 2m neurons with biases; with k labels: h neurons a cluster, for each h. `points` test
    points a repeat have a radius. The nets of 2 labels and of the first h are also trained for `longer` steps
    (0: not at all).
    """

    k: int = 10
    k1: int = 5
    d: int = 3072
    m: int = 5
    h: tuple[int, ...] = (1, 3, 5)
    n: int = 1000
    equal: bool = False
    sigma: float = 1.0
    init: float = 1e-5
    eta: float = 1e-3
    T: int = 100
    longer: int = 1000
    points: int = 100
    repeats: int = 6

    def __post_init__(self) -> None:
        check_init("init", (self.init,))
        check_clusters(self.k, self.k1, self.d, names=("k", "k1", "d"))
        check_at_least("k", (self.k,), 3, "at k = 2 the radii sqrt(d/k) and sqrt(d/2) are one")
        for name in ("sigma", "init", "eta"):
            check_positive(name, (getattr(self, name),))
        for name in ("m", "n", "T", "points", "repeats"):
            check_at_least(name, (getattr(self, name),), 1)
        if not self.h:
            raise CallError("h: give at least one number of neurons a cluster, as in --set h=1,3")
        check_at_least("h", self.h, 1)
        check_unique("h", self.h)
        if self.longer != 0 and self.longer <= self.T:
            raise CallError(
                f"longer={self.longer}: it is more steps than T={self.T}, or 0 for none"
            )


EXHIBITS = (
    Exhibit(
        id="li2025.fig3a",
        title="Robust accuracy with 2 labels and with subclass labels",
        where="Section 6.2, Figure 3 (left)",
        claim="the net trained with 10 labels is more robust at every radius: sqrt(d/2) against sqrt(d/k)",
        scales={
            "smoke": Curves(
                k=4, k1=2, d=200, m=2, h=(1, 2), n=80, T=20, longer=40, points=20, repeats=1
            ),
            "laptop": Curves(),
            "paper": Curves(longer=10_000, points=1000, repeats=10),
        },
    ),
)
