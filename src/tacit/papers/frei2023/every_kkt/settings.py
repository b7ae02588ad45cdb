"""The settings and the entry of `frei2023.every_kkt` (without torch)."""

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

MEANS = ("orthogonal", "opposed", "mixed")
FLOWS = ("small", "NTK-like", "large", "first layer", "second layer", "one sign", "sparse")
SPARE = 0.98  # of the overlap that Assumption 2.2 admits
SMALL, LARGE = 1e-6, 0.1  # standard deviations of a start's weights


@dataclass(frozen=True)
class EveryKkt:
    """KKT points of Problem (2) from many starts, on `repeats` data sets of K ln^2 D points for each `means`.

    K/2 of the clusters are positive. The means are orthogonal, or have products +-p with each other, p as large
    as Assumption 2.2 admits: negative within each class ("opposed"), or of either sign by a coin ("mixed").

    Starts: one neuron a sign, one a cluster, and `draws` each of random groups of clusters, of random sets of
    clusters that may overlap, and of neurons that are on at random points. And a flow of `h` neurons to
    `log_loss` from every one of the `flows`. Errors and flips are over `tests` fresh points. D and K are such
    that a dozen data sets can decide the theorems' probability.
    """

    D: int = 180
    K: int = 6
    sigma: float = 1e-3
    means: tuple[str, ...] = MEANS
    flows: tuple[str, ...] = FLOWS
    draws: int = 2
    h: int = 20
    log_loss: float = -50.0
    tests: int = 20_000
    repeats: int = 6

    def __post_init__(self) -> None:
        check_clusters(self.K, self.K // 2, self.D)
        check_positive("sigma", (self.sigma,))
        for name, known in (("means", MEANS), ("flows", FLOWS)):
            values = getattr(self, name)
            check_unique(name, values)
            unknown = [value for value in values if value not in known]
            if unknown or not values:
                raise CallError(
                    f"{name}={','.join(unknown) or 'nothing'}: choose from {', '.join(known)}"
                )
        check_at_least("h", (self.h,), 2, "each sign needs a neuron")
        check_at_most("log_loss", (self.log_loss,), -15, "every point must be fitted")
        for name in ("draws", "tests", "repeats"):
            check_at_least(name, (getattr(self, name),), 1)


EXHIBITS = (
    Exhibit(
        id="frei2023.every_kkt",
        title="Every KKT point: also those that no flow finds",
        where="Section 3, Theorem 3.1; Section 4, Theorem 4.2; Appendices A and D",
        claim="every KKT point generalises and is broken by the one z = eta sum y mu",
        scales={
            "smoke": EveryKkt(
                D=40, K=4, means=("opposed",), flows=("sparse",), draws=1, h=4, log_loss=-15.0,
                tests=500, repeats=1,
            ),
            "laptop": EveryKkt(),
            "paper": EveryKkt(D=250, K=10, draws=4, h=100, log_loss=-100.0, tests=200_000, repeats=18),
        },
    ),
)  # fmt: skip
