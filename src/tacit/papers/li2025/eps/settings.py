"""The settings and the entry of `li2025.eps` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_clusters


@dataclass(frozen=True)
class Small:
    """Few clusters and many points, so that eps is small; Assumption 4.3 is met with constants 1 (laptop, paper).

    `n` points in so many dimensions (`d`) that their noises count as orthogonal, and `n_exact` points in
    `d_exact` dimensions with all their products. m = k neurons of either sign, `h` a label; eta = 1/d^2, and
    the largest start that is allowed, sigma_w^2 = eta/k^5. Training goes on until eta t = `late`; `fresh` draws
    of noise at the end.
    """

    k: int = 3
    k1: int = 1
    h: int = 1
    d: int = 10**16
    n: int = 90_000
    d_exact: int = 10**7
    n_exact: int = 2187  # k^7, the fewest that the assumption has
    late: float = 1e3
    stride: float = 0.2
    repeats: int = 6  # the fewest of which all can show a share of a half
    fresh: int = 2000

    def __post_init__(self) -> None:
        check_clusters(self.k, self.k1, self.d, names=("k", "k1", "d"))
        check_at_least("h", (self.h,), 1)
        for name in ("n", "n_exact"):
            check_at_least(
                name, (getattr(self, name),), 2 * self.k, "two points a cluster, at least"
            )
        rows = max(2, self.h) * self.k
        check_at_least(
            "d_exact",
            (self.d_exact,),
            self.n_exact + rows + self.k,
            "n_exact + neurons + k: the span",
        )
        check_at_least(
            "d", (self.d,), 10**10, "noises count as orthogonal there; with fewer take d_exact"
        )
        check_at_least("late", (self.late,), 1, "the theorems begin at eta T = 1")
        if not 0 < self.stride <= 1:
            raise CallError(
                f"stride={self.stride}: a part of the elapsed time, more than 0 and at most 1"
            )
        check_at_least("repeats", (self.repeats,), 2, "intervals are over trainings")
        check_at_least("fresh", (self.fresh,), 1)


EXHIBITS = (
    Exhibit(
        id="li2025.eps",
        title="The lemmas of Appendices B and C where their eps is small",
        where="Appendix B.1, B.2, C.2, C.3",
        claim="margins balance, foreign coefficients stay small and weights stay near the features",
        scales={
            "smoke": Small(
                n=600,
                d=10**10,
                n_exact=60,
                d_exact=10**6,
                late=10.0,
                repeats=2,
                fresh=100,
                stride=1.0,
            ),
            "laptop": Small(),
            "paper": Small(n=2_000_000, n_exact=6000, d_exact=10**8, repeats=6, fresh=20_000),
        },
    ),
)
