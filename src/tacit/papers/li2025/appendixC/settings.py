"""The settings and the entry of `li2025.appendixC` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_clusters, check_positive


@dataclass(frozen=True)
class Classes:
    """Figure 2b's net, step by step, in `repeats` trainings: coefficients to eta t = `late`.

    `T` steps of size `eta`, then growing ones; the first training also by descent, to `T_descent`. `starts` short
    trainings of `T_start` steps count the neurons that nothing moves; `draws` starts are drawn for activation
    alone. `inside`: k of runs at d = k^10, n = k^7, eta = 1/d^2, sigma_w^2 = eta/k^5, the first assumption's own
    sizes.
    """

    d: int = 3072
    k: int = 10
    k1: int = 5
    h: int = 3
    n: int = 1000
    eta: float = 1e-3
    sigma_w: float = 1e-5
    T: int = 300
    T_descent: int = 60
    late: float = 1e6
    repeats: int = 6  # the fewest of which all can show a share of a half
    starts: int = 200
    T_start: int = 40
    draws: int = 2000
    inside: int = 3

    def __post_init__(self) -> None:
        check_clusters(self.k, self.k1, self.d, names=("k", "k1", "d"))
        check_at_least("n", (self.n,), 2 * self.k, "two points a cluster, at least")
        span = self.n + self.k * self.h + self.k
        check_at_least("d", (self.d,), span, "n + neurons + k: the span")
        for name in ("h", "T", "T_descent", "T_start"):
            check_at_least(name, (getattr(self, name),), 1)
        check_at_least("T", (self.T,), self.T_descent, "descent and recursions have the same steps")
        check_at_least("late", (self.late,), 10 * self.eta * self.T, "a decade past T")
        check_at_least("repeats", (self.repeats,), 2, "intervals are over trainings")
        check_at_least("inside", (self.inside,), 2, "both classes need a cluster")
        check_positive("starts", (self.starts,))
        check_positive("draws", (self.draws,))
        check_positive("eta", (self.eta,))
        check_at_least("sigma_w", (self.sigma_w,), 0, "a standard deviation is not negative")


EXHIBITS = (
    Exhibit(
        id="li2025.appendixC",
        title="The coefficients of the net with k labels, step by step",
        where="Appendix C.1, C.2",
        claim="the recursions of lambda and sigma are the descent; neurons keep the points of their own label",
        scales={
            "smoke": Classes(
                d=300,
                k=4,
                k1=2,
                n=100,
                T=40,
                T_descent=20,
                late=100.0,
                repeats=2,
                starts=5,
                draws=50,
                inside=2,
            ),
            "laptop": Classes(),
            "paper": Classes(T=1000, late=1e9, repeats=12, starts=1000, draws=10_000),
        },
    ),
)
