"""The settings and the entry of `frei2023.beyond` (without torch)."""

from dataclasses import dataclass
from typing import Literal

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_init,
    check_positive,
    check_unique,
)

Law = Literal["gaussian", "sphere"]
RULES = ("with bias", "without bias")
SLACK = 0.3  # a flow at loss e^-l has slackness of the order of log(n)/l


@dataclass(frozen=True)
class Beyond:
    """Section 5's two questions, in `D` dimensions: `repeats` data sets for the first, `sets` for the second.

    Many clusters: `K` means uniform on the sphere, the label of each cluster by a fair coin, noise `sigma` (0
    stands for 1/sqrt(D)), ln^2 D training points a cluster, one net of `h` neurons with weights of sd `small`.
    Whether the means are linearly separable is found for `draws` draws besides; `points` test points a net get a
    radius.

    No clusters: `n` points of each of the `laws`, the first coordinate +-gamma or farther from 0 and its sign the
    label; nets of `widths` neurons with weights of sd `inits`, in pairs. Those up to `small` are near KKT points.

    Flows end at `log_loss`; errors are over `tests` fresh points.
    """

    D: int = 20
    K: tuple[int, ...] = (5, 20, 40, 60)
    sigma: float = 0.0
    h: int = 100
    points: int = 8
    draws: int = 100
    laws: tuple[Law, ...] = ("gaussian", "sphere")
    n: tuple[int, ...] = (10, 20, 40, 80)
    gamma: float = 0.5
    widths: tuple[int, ...] = (50, 200, 100)
    inits: tuple[float, ...] = (1e-3, 1e-3, 0.3)
    small: float = 1e-3
    log_loss: float = -15.0
    tests: int = 10_000
    sets: int = 12
    repeats: int = 8

    def __post_init__(self) -> None:
        check_at_least("D", (self.D,), 2)
        check_at_least("K", self.K, 2, "two classes need two clusters")
        check_unique("K", self.K)
        check_at_least("sigma", (self.sigma,), 0, "noise is not negative; 0 stands for 1/sqrt(D)")
        check_at_least("n", self.n, 2)
        check_unique("n", self.n)
        check_unique("laws", self.laws)
        check_positive("gamma", (self.gamma,))
        check_at_most("gamma", (self.gamma,), 2, "no more than 1 in 20 Gaussian points is farther")
        if not (self.laws and self.K and self.n):
            raise CallError("laws, K and n: at least one value each")
        if not len(self.widths) == len(self.inits) > 0:
            raise CallError("widths and inits describe starts together: give as many of each")
        check_init("inits", self.inits)
        check_positive("small", (self.small,))
        if min(self.inits) > self.small:
            raise CallError(
                f"inits={min(self.inits):g} or more: one of at most small={self.small:g} is needed, "
                "since the claims are about nets near KKT points"
            )
        check_at_most("log_loss", (self.log_loss,), -5, "below 1/n, where Theorem 2.1 begins")
        for name in ("h", "points", "draws", "tests"):
            check_positive(name, (getattr(self, name),))
        check_positive("widths", self.widths)
        for name in ("sets", "repeats"):
            check_at_least(name, (getattr(self, name),), 2, "an interval needs repeats")


EXHIBITS = (
    Exhibit(
        id="frei2023.beyond",
        title="More clusters than a hyperplane can split, and separable data without clusters",
        where="Section 5, Discussion",
        claim="past separability nets still generalise, not robustly; without clusters they match linear rules",
        scales={
            "smoke": Beyond(
                D=5,
                K=(4, 12),
                sigma=0.1,
                h=60,
                points=2,
                draws=20,
                laws=("gaussian",),
                n=(10, 30),
                widths=(60, 60),
                inits=(1e-3, 0.3),
                log_loss=-5.0,
                tests=300,
                sets=2,
                repeats=2,
            ),
            "laptop": Beyond(),
            "paper": Beyond(
                D=50,
                K=(10, 25, 50, 75, 100, 150, 200),
                h=400,
                points=50,
                draws=1000,
                n=(25, 50, 100, 200, 400),
                widths=(50, 400, 4000, 400),
                inits=(1e-3, 1e-3, 1e-3, 0.3),
                log_loss=-30.0,
                tests=100_000,
                repeats=8,
            ),
        },
    ),
)
