"""The settings and the entry of `frei2023.remarks` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_clusters,
    check_positive,
    check_unique,
)

ADMITTED = (
    "uniform",
    "sphere",
    "anisotropic",
    "laplace",
)  # <xi, e> and ||xi|| are as the remark asks
HEAVY = "student"  # 4 degrees of freedom: the tail of <xi, e> is a power
NOISES = (*ADMITTED, HEAVY)


@dataclass(frozen=True)
class Remarks:
    """Nets trained on K ln^2 D points where one assumption is given up, `repeats` data sets a case.

    `noises` with sigma = 1 in `D` dimensions with `K` orthogonal means. `spreads`: the norms of the means run
    evenly from 1 - s to 1 + s times sqrt(d), s a spread, at sigma = `still` with `many` clusters in `at`
    dimensions, where Assumption 2.2 holds at s = 0. `powers`: sigma = d^power at each of the `dims`, K clusters.

    Flows of `h` neurons end at `log_loss`; errors and flips are over `tests` fresh points.
    """

    D: int = 400
    K: int = 4
    noises: tuple[str, ...] = NOISES
    many: int = 6
    at: int = 200
    still: float = 1e-3
    spreads: tuple[float, ...] = (0.1, 0.3)
    powers: tuple[float, ...] = (0.125, 0.25)
    dims: tuple[int, ...] = (200, 400, 800)
    h: int = 20
    log_loss: float = -50.0
    tests: int = 20_000
    repeats: int = 8

    def __post_init__(self) -> None:
        check_clusters(self.K, self.K // 2, min(self.D, *self.dims))
        check_clusters(self.many, self.many // 2, self.at, names=("many", "K1", "at"))
        for name in ("noises", "spreads", "powers", "dims"):
            check_unique(name, getattr(self, name))
            if not getattr(self, name):
                raise CallError(f"{name}: give at least one value")
        unknown = [noise for noise in self.noises if noise not in NOISES]
        if unknown:
            raise CallError(f"noises={','.join(unknown)}: choose from {', '.join(NOISES)}")
        check_positive("still", (self.still,))
        check_positive("spreads", self.spreads)
        check_at_most("spreads", self.spreads, 0.9, "every mean has a norm")
        check_positive("powers", self.powers)
        check_at_least("h", (self.h,), 2, "each sign needs a neuron")
        check_at_most("log_loss", (self.log_loss,), -15, "every point must be fitted")
        check_at_least("tests", (self.tests,), 1)
        check_at_least("repeats", (self.repeats,), 2, "an interval needs repeats")


EXHIBITS = (
    Exhibit(
        id="frei2023.remarks",
        title="Other noise, unequal norms, sigma above 1",
        where="Section 2, the remarks after Example 1",
        claim="the results extend to other noise, to means of about the same norm and to sigma = d^(1/8)",
        scales={
            "smoke": Remarks(
                D=40, noises=("sphere", "student"), many=4, at=60, spreads=(0.1,), powers=(0.125,),
                dims=(40,), h=8, log_loss=-15.0, tests=500, repeats=2,
            ),
            "laptop": Remarks(),
            "paper": Remarks(
                D=2000, K=6, many=10, at=250, spreads=(0.03, 0.1, 0.3, 0.6), powers=(0.0625, 0.125, 0.1875, 0.25),
                dims=(500, 1000, 2000, 4000), h=100, tests=200_000, repeats=20,
            ),
        },
    ),
)  # fmt: skip
