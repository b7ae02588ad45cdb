"""The settings and the entry of `li2025.prop4.8` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_clusters, check_positive


@dataclass(frozen=True)
class MultiClass:
    """The multi-class net of Proposition 4.8 on orthogonal centres of norm sqrt(D), for each K (half of
    the clusters positive), with noise `sigma`: `n` clean samples, `attacked` ones with a radius."""

    D: int = 3072
    K: tuple[int, ...] = (4, 6, 10, 16, 32, 64)
    sigma: float = 1.0
    n: int = 100_000
    attacked: int = 1000

    def __post_init__(self) -> None:
        check_at_least("K", self.K, 2, "both classes need a cluster")
        for K in self.K:
            check_clusters(K, K // 2, self.D)
        check_at_least("sigma", (self.sigma,), 0, "noise is not negative")
        check_positive("n", (self.n,))
        check_positive("attacked", (self.attacked,))


EXHIBITS = (
    Exhibit(
        id="li2025.prop4.8",
        title="Subclass labels alone do not make a net robust",
        where="Section 4.2, Proposition 4.8; Appendix D.3",
        claim="a multi-class net with perfect accuracy has a radius of the order sqrt(d/k)",
        scales={
            "smoke": MultiClass(K=(4, 10), n=2000, attacked=200),
            "laptop": MultiClass(),
            "paper": MultiClass(K=(4, 6, 10, 16, 32, 64, 128, 256), n=1_000_000, attacked=20_000),
        },
    ),
)
