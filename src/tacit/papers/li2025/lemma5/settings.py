"""The settings and the entry of `li2025.lemma5` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_clusters, check_positive


@dataclass(frozen=True)
class Coefficients:
    """Figure 2a's net, step by step, in `repeats` trainings: coefficients to `T_long` steps of size `eta`.

    The first net goes along in R^d to `T`; gradient flow goes on until eta t = `late`. The first `k1` clusters
    are positive; there are `m` neurons of either sign. `starts` are drawn for activation alone. `inside`: k of
    runs at d = k^10, n = k^7, eta = 1/d^2, sigma_w^2 = eta/k^5, the first assumption's own sizes.
    """

    d: int = 3072
    k: int = 10
    k1: int = 5
    m: int = 5
    n: int = 1000
    eta: float = 1e-3
    sigma_w: float = 1e-5
    T: int = 200
    T_long: int = 1000
    late: float = 1e6
    inside: int = 3
    repeats: int = 6  # the fewest of which all can show a share of a half
    starts: int = 2000

    def __post_init__(self) -> None:
        check_clusters(self.k, self.k1, self.d, names=("k", "k1", "d"))
        check_at_least("n", (self.n,), 2 * self.k, "two points a cluster, at least")
        for name in ("m", "T"):
            check_at_least(name, (getattr(self, name),), 1)
        check_at_least("T_long", (self.T_long,), self.T, "it goes on from T")
        check_at_least("late", (self.late,), 10 * self.eta * self.T_long, "a decade past T_long")
        check_at_least("inside", (self.inside,), 2, "both classes need a cluster")
        check_at_least("repeats", (self.repeats,), 2, "intervals are over trainings")
        check_positive("starts", (self.starts,))
        check_positive("eta", (self.eta,))
        check_at_least("sigma_w", (self.sigma_w,), 0, "a standard deviation is not negative")


EXHIBITS = (
    Exhibit(
        id="li2025.lemma5",
        title="Coefficients of features and of noise, step by step",
        where="Section 5; Appendix A.2, A.3, B.1",
        claim="the recursions of lambda and sigma are the descent; own margins stay balanced",
        scales={
            "smoke": Coefficients(
                d=300, n=100, T=60, T_long=120, late=100.0, inside=2, repeats=2, starts=50
            ),
            "laptop": Coefficients(),
            "paper": Coefficients(T=1000, T_long=10_000, late=1e9),
        },
    ),
)
