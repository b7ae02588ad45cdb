"""The settings and the entry of `frei2023.assumption` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive
from tacit.papers.frei2023._shared.settings import check_dimensions


@dataclass(frozen=True)
class Reach:
    """Which dimensions and cluster counts Assumption 2.2 admits, and P1 to P6 on sampled data sets.

    The largest K is found at `per_decade` dimensions a decade up to 10^`decades`; with random means,
    over `draws` draws. P1 to P6 are checked on `datasets` data sets for each pair (D, K), with
    n = K ln^2 D points and sigma = 0.001 and 1: sizes at which a few hundred sets can decide what is stated.
    """

    decades: int = 12
    per_decade: int = 2
    draws: int = 20
    D: tuple[int, ...] = (200, 250, 300)
    K: tuple[int, ...] = (6, 10, 10)
    datasets: int = 200

    def __post_init__(self) -> None:
        check_at_least(
            "decades", (self.decades,), 11, "an exponent over four decades that admit clusters"
        )
        if self.decades > 14:
            raise CallError(f"decades={self.decades}: at most 14, or K no longer fits into memory")
        check_positive("per_decade", (self.per_decade,))
        check_at_least("draws", (self.draws,), 2, "an interval needs repeats")
        check_dimensions(self.D, self.K)
        check_positive("datasets", (self.datasets,))


EXHIBITS = (
    Exhibit(
        id="frei2023.assumption",
        title="Who satisfies Assumption 2.2",
        where="Section 2, Assumption 2.2 and Example 1; Appendices A.1, A.2 and D",
        claim="the assumption admits k of order sqrt(d) (random means) or d (orthogonal, small noise)",
        scales={
            "smoke": Reach(per_decade=1, draws=3, D=(100,), K=(2,), datasets=3),
            "laptop": Reach(),
            "paper": Reach(decades=14, per_decade=4, draws=100, datasets=2000),
        },
    ),
)
