"""The settings and the entry of `frei2023.nn1` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least
from tacit.papers.frei2023._shared.settings import check_dimensions


@dataclass(frozen=True)
class Neighbour:
    """1-NN against the net trained on the same K ln^2 D points, sigma = 1/sqrt(D): over dimensions D at K
    clusters, and over the `clusters` in `at` dimensions. `repeats` data sets, with exact radii of `tests` points
    and errors of `fresh` ones."""

    D: tuple[int, ...] = (2000, 2800, 4000)
    K: int = 6
    clusters: tuple[int, ...] = (2, 4, 8, 16)
    at: int = 500
    tests: int = 5
    fresh: int = 1000
    repeats: int = 5

    def __post_init__(self) -> None:
        if len(set(self.D)) < 3:
            raise CallError(
                f"D={','.join(map(str, self.D))}: an exponent needs three dimensions or more"
            )
        check_dimensions(self.D, (self.K,) * len(self.D))
        check_dimensions((self.at,) * len(self.clusters), self.clusters)
        check_at_least("tests", (self.tests,), 1)
        check_at_least("fresh", (self.fresh,), 1)
        check_at_least("repeats", (self.repeats,), 1)


EXHIBITS = (
    Exhibit(
        id="frei2023.nn1",
        title="The nearest neighbour is more robust than the trained net",
        where="Section 4, the remark on 1-nearest-neighbour",
        claim="1-NN needs a perturbation of order sqrt(d), the trained net a much smaller one",
        scales={
            "smoke": Neighbour(D=(50, 100, 200), K=4, clusters=(2, 4), at=100, tests=5, repeats=2),
            "laptop": Neighbour(),
            "paper": Neighbour(
                D=(4000, 8000, 16_000),
                K=10,
                clusters=(2, 4, 8, 16, 32),
                at=2000,
                tests=40,
                repeats=10,
            ),
        },
    ),
)
