"""The settings and the entries of Figures 2 and 5, the experiment on Conjecture 1 (torch is not needed here)."""

from dataclasses import dataclass
from typing import Any

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_clusters,
    check_init,
    check_positive,
    check_unique,
)

ALPHAS = (
    *(0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.14),
    *(0.16, 0.18, 0.2, 0.225, 0.25, 0.275, 0.3),
)  # 15 values in .01 ... .3
RADII = tuple(round(1.5 * i / 14, 6) for i in range(15))


@dataclass(frozen=True)
class Experiment:
    """For each alpha and repeat one data set of n points, on which a net of h neurons is trained for each p.

    Weights start as N(0, init^2). `points` test points give each net's radii; robust accuracy is kept at the
    radii `radius`. `repeats` is 5 at paper scale, as in the released config (the captions say 10).
    """

    D: int = 1000
    K: int = 10
    K1: int = 6
    h: int = 2000
    n: int = 20_000
    p: tuple[float, ...] = (1.0, 3.0)
    alpha: tuple[float, ...] = (0.01, 0.1, 0.3)
    init: float = 1e-7
    radius: tuple[float, ...] = RADII
    points: int = 500
    repeats: int = 3

    def __post_init__(self) -> None:
        check_clusters(self.K, self.K1, self.D)
        for p in self.p:
            if p != 1 and not p > 2:
                raise CallError(
                    f"p={p:g}: the conjecture is about p = 1 (ReLU) and p > 2; between, see min2025.transition"
                )
        check_positive("alpha", self.alpha)
        check_at_least("radius", self.radius, 0)
        check_init("init", (self.init,), flow=True)
        check_at_most("init", (self.init,), 1e-3, "the conjecture is about small weights")
        for name in ("p", "alpha", "radius"):
            check_unique(name, getattr(self, name))
        check_at_least("h", (self.h,), 2 * self.K, "each centre needs neurons of its sign")
        check_at_least("n", (self.n,), 10 * self.K, "each centre needs points")
        check_positive("points", (self.points,))
        check_positive("repeats", (self.repeats,))


@dataclass(frozen=True)
class Conjecture(Experiment):
    """Trained by gradient flow of the mean exponential loss until that is exp(log_loss)."""

    log_loss: float = -11.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_most("log_loss", (self.log_loss,), -1, "beyond it every point is fitted")


SMOKE: dict[str, Any] = {"D": 20, "h": 40, "n": 200, "alpha": (0.1,), "points": 12, "repeats": 1}
PAPER: dict[str, Any] = {"alpha": ALPHAS, "points": 1000, "repeats": 5}

EXHIBITS = (
    Exhibit(
        id="min2024.fig2",
        title="Conjecture 1 by experiment: averages at p = 1, centres at p = 3",
        where="Section 5.1, Figure 2",
        claim="trained nets are near F (p = 1) and F^(p) (p = 3), and break at 1/sqrt(K) and sqrt(2)/2",
        scales={
            "smoke": Conjecture(**SMOKE, K=4, K1=2),
            "laptop": Conjecture(),
            "paper": Conjecture(**PAPER),
        },
    ),
    Exhibit(
        id="min2024.fig5",
        title="Conjecture 1 with twice the subclasses",
        where="Appendix A.2, Figure 5",
        claim="at K = 20 the ReLU net breaks earlier, at 1/sqrt(20); at p = 3 nothing changes",
        scales={
            "smoke": Conjecture(**SMOKE, K=5, K1=2),
            "laptop": Conjecture(K=20, K1=8, alpha=(0.01, 0.1)),
            "paper": Conjecture(**PAPER, K=20, K1=8),
        },
        code="tacit.papers.min2024.fig2.exhibit",
    ),
)
