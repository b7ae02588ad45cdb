"""The settings and the entry of `frei2023.thm4.1` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive
from tacit.papers.frei2023._shared.settings import Means, check_dimensions


@dataclass(frozen=True)
class Robust:
    """The constructed net for settings (D, K, sigma, means), K/2 clusters positive; sigma = 0 stands for
    1/sqrt(D). `small` dimensions show where "sufficiently large d" begins, at sigma = 1. `n` samples each."""

    D: tuple[int, ...] = (2000, 12_424, 3_000_000, 2000, 2000, 2000)
    K: tuple[int, ...] = (6, 32, 2, 6, 20, 10)
    sigma: tuple[float, ...] = (0.0, 0.0, 1.0, 1.0, 1.0, 1.0)
    means: tuple[Means, ...] = (*("orthogonal",) * 5, "sphere")
    small: tuple[int, ...] = (16, 25, 36, 50, 70, 100, 140, 200)
    n: int = 100_000

    def __post_init__(self) -> None:
        lengths = {len(self.D), len(self.K), len(self.sigma), len(self.means)}
        if len(lengths) != 1:
            raise CallError(
                "D, K, sigma and means describe settings together: give as many of each"
            )
        check_dimensions(self.D, self.K)
        check_at_least("sigma", self.sigma, 0, "noise is not negative; 0 stands for 1/sqrt(D)")
        check_at_least("small", self.small, 4)
        check_positive("n", (self.n,))


EXHIBITS = (
    Exhibit(
        id="frei2023.thm4.1",
        title="A robust net exists",
        where="Section 4, Theorem 4.1; Appendix C",
        claim="w = 4 mu/d, b = -2, v = y has margin 1 and survives sqrt(d)/8",
        scales={
            "smoke": Robust(
                D=(2000, 2000, 200),
                K=(6, 6, 4),
                sigma=(0.0, 1.0, 1.0),
                means=("orthogonal", "orthogonal", "sphere"),
                small=(25, 100),
                n=1000,
            ),
            "laptop": Robust(),
            "paper": Robust(n=1_000_000),
        },
    ),
)
