"""The settings and the entry of `li2025.fig1` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_clusters, check_positive


@dataclass(frozen=True)
class Picture:
    """Figure 1 on a simplex of K clusters in D dimensions, `n` random points for the identity; Figure 4 with
    points at height `h` above and below a line.

    Half of the clusters (rounded up: three of five) are positive.
    """

    D: int = 3072
    K: tuple[int, ...] = (5, 6, 10, 20, 40)
    n: int = 2000
    h: float = 0.05

    def __post_init__(self) -> None:
        check_at_least("K", self.K, 3, "a simplex of two clusters is a line")
        for K in self.K:
            check_clusters(K, (K + 1) // 2, self.D)
        check_positive("n", (self.n,))
        check_positive("h", (self.h,))


EXHIBITS = (
    Exhibit(
        id="li2025.fig1",
        title="Five clusters, two boundaries",
        where="Figures 1 and 4",
        claim="the points are much farther from the boundary of f_FD than from that of f_FA",
        scales={
            "smoke": Picture(D=50, K=(5, 6, 10), n=200),
            "laptop": Picture(),
            "paper": Picture(K=(5, 6, 10, 20, 40, 80, 160), n=20_000),
        },
    ),
)
