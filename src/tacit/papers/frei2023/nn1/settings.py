"""The settings and the entry of `frei2023.nn1` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least
from tacit.papers.frei2023._shared.settings import check_dimensions


@dataclass(frozen=True)
class Neighbour:
    """1-NN against averaging over dimensions D at K clusters, sigma = 1/sqrt(D): K ln^2 D training points
    (at most `most`), `tests` test points with exact radii; and over the `clusters` in `at` dimensions."""

    D: tuple[int, ...] = (250, 500, 1000, 2000, 4000)
    K: int = 6
    clusters: tuple[int, ...] = (2, 4, 8, 16, 32)
    at: int = 2000
    most: int = 600
    tests: int = 40

    def __post_init__(self) -> None:
        if len(set(self.D)) < 3:
            raise CallError(
                f"D={','.join(map(str, self.D))}: an exponent needs three dimensions or more"
            )
        check_dimensions(self.D, (self.K,) * len(self.D))
        check_dimensions((self.at,) * len(self.clusters), self.clusters)
        largest = max(self.K, *self.clusters)
        check_at_least("most", (self.most,), 4 * largest, "every cluster needs training points")
        check_at_least("tests", (self.tests,), 10)


EXHIBITS = (
    Exhibit(
        id="frei2023.nn1",
        title="The nearest neighbour is more robust than averaging",
        where="Section 4, the remark on 1-nearest-neighbour",
        claim="1-NN needs a perturbation of order sqrt(d), a net that averages a much smaller one",
        scales={
            "smoke": Neighbour(D=(50, 100, 200), K=4, clusters=(2, 4), at=100, tests=10),
            "laptop": Neighbour(),
            "paper": Neighbour(D=(500, 1000, 2000, 4000, 8000, 16_000), K=10, most=5000, tests=200),
        },
    ),
)
