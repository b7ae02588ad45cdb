"""The settings and the entry of `min2024.thm3` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_at_most
from tacit.papers.min2024.bounds.settings import WIDE_K, WIDE_K1, Bounds


@dataclass(frozen=True)
class Critical(Bounds):
    """As `Bounds`, for Theorem 3: p >= 2, rho <= 1."""

    p: tuple[float, ...] = (3.0,)
    delta: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("p", self.p, 2, "the theorem's radius sqrt(2)/2 is for p >= 2")
        check_at_most("rho", self.rho, 1, "the radius is (1 - rho)/sqrt(K)")


EXHIBITS = (
    Exhibit(
        id="min2024.thm3",
        title="The two radii are critical",
        where="Appendix C.4, Theorem 3",
        claim="nothing breaks F below 1/sqrt(K), and F^(p) breaks above sqrt(2)/2",
        scales={
            "smoke": Critical(K=(2,), K1=(1,), ratio=(1.0, 20.0), p=(3.0,), n=1000),
            "laptop": Critical(),
            "paper": Critical(
                WIDE_K, WIDE_K1, (1.0, 2.0, 3.0, 5.0, 10.0, 30.0), (2.0, 3.0, 4.0), n=200_000
            ),
        },
    ),
)
