"""The settings and the entry of `li2025.fig1` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_clusters, check_positive


@dataclass(frozen=True)
class Picture:
    """Figure 1 on a simplex of K clusters in D dimensions, `n` random points for the identity; and
    Figure 4 with `points` points of either class at height `h` above and below a hyperplane of R^`dim`.

    Half of the clusters (rounded up: three of five) are positive.
    """

    D: int = 3072
    K: tuple[int, ...] = (5, 6, 10, 20, 40)
    n: int = 2000
    h: float = 0.05
    points: int = 60
    dim: int = 20

    def __post_init__(self) -> None:
        check_at_least("K", self.K, 3, "a simplex of two clusters is a line")
        check_at_least("K", (max(self.K),), 6, "the caption's claim is tested at some K > 5")
        for K in self.K:
            check_clusters(K, (K + 1) // 2, self.D)
        check_positive("n", (self.n,))
        check_positive("h", (self.h,))
        check_at_least("points", (self.points,), 2)
        check_at_least("dim", (self.dim,), 2, "a line in the plane is the least hyperplane")


EXHIBITS = (
    Exhibit(
        id="li2025.fig1",
        title="Five clusters, two boundaries",
        where="Figures 1 and 4",
        claim="the points are much farther from the boundary of f_FD than from that of f_FA",
        scales={
            "smoke": Picture(D=50, K=(5, 6, 10), n=200, points=12, dim=6),
            "laptop": Picture(),
            "paper": Picture(K=(5, 6, 10, 20, 40, 80, 160), n=20_000, points=200, dim=50),
        },
    ),
)
