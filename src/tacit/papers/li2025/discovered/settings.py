"""The settings and the entry of `li2025.discovered` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_clusters,
    check_init,
    check_positive,
    check_unique,
)


@dataclass(frozen=True)
class Discovered:
    """Subclasses that are found, at each noise `sigma`, and, at noise `at`, with `count` of them in each class.

    k clusters (the first k1 positive) in d dimensions, n training points, `points` test points, the
    first `few` where nets are compared with one another at the same points. Multi-class nets
    have h neurons a subclass, the net with 2 labels 2m; `init`, `eta`, T as in the paper. `early`: the steps
    after which the hidden features of a net with 2 labels and 2 * `width` neurons are clustered too.
    """

    d: int = 1024
    k: int = 10
    k1: int = 5
    n: int = 1000
    points: int = 50
    few: int = 16
    sigma: tuple[float, ...] = (1.0, 2.5, 3.5, 5.0)
    at: float = 1.0
    count: tuple[int, ...] = (1, 2, 3, 4, 5, 10)
    early: tuple[int, ...] = (0, 1, 10, 300)
    m: int = 5
    width: int = 50
    h: int = 1
    init: float = 1e-5
    eta: float = 1e-3
    T: int = 300
    repeats: int = 6  # the fewest of which all can show a share of a half

    def __post_init__(self) -> None:
        check_init("init", (self.init,))
        check_clusters(self.k, self.k1, self.d, names=("k", "k1", "d"))
        check_at_least("n", (self.n,), 8)
        check_positive("sigma", self.sigma)
        check_positive("at", (self.at,))
        check_at_least("count", self.count, 1)
        check_at_most("count", self.count, self.n // 4, "a class needs several points a subclass")
        check_at_least("early", self.early, 0)
        for name in ("sigma", "count", "early"):
            check_unique(name, getattr(self, name))
        for name in ("init", "eta"):
            check_positive(name, (getattr(self, name),))
        for name in ("points", "few", "m", "width", "h", "T", "repeats"):
            check_at_least(name, (getattr(self, name),), 1)


EXHIBITS = (
    Exhibit(
        id="li2025.discovered",
        title="Subclass labels that nobody gave",
        where="Section 4.2 (beyond the paper)",
        claim="subclasses found by k-means within each class make a net as robust as given ones",
        scales={
            "smoke": Discovered(
                d=60, k=4, k1=2, n=80, points=4, sigma=(0.3,), at=0.3, count=(1, 2), early=(0, 3), m=4, width=8,
                T=40, eta=0.01, repeats=2,
            ),
            "laptop": Discovered(),
            "paper": Discovered(
                d=3072, T=100, sigma=(0.5, 1.0, 2.5, 3.5, 5.0), count=(1, 2, 3, 4, 5, 10, 20),
                early=(0, 1, 3, 10, 30, 100), points=500, few=100,
            ),
        },
    ),
)  # fmt: skip
