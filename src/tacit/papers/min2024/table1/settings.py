"""The settings and the entry of `min2024.table1` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_positive, check_unique
from tacit.papers.min2024.images.settings import PAPER, SMOKE, ImageNets


@dataclass(frozen=True)
class Table(ImageNets):
    """Table 1: attacks of three norms at these radii; l1 costs the most: points and restarts of its own.

    More than one restart in l1 begins in larger balls, as AutoAttack does, which has five.
    """

    linf: tuple[float, ...] = (0.05, 0.1)
    l2: tuple[float, ...] = (1.0, 2.0)
    l1: tuple[float, ...] = (5.0, 10.0)
    points_l1: int = 200
    restarts_l1: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("linf", "l2", "l1"):
            check_positive(name, getattr(self, name))
            check_unique(name, getattr(self, name))
        check_positive("points_l1", (self.points_l1,))
        check_positive("restarts_l1", (self.restarts_l1,))


EXHIBITS = (
    Exhibit(
        id="min2024.table1",
        title="Robust accuracy on MNIST under linf, l2 and l1 attacks",
        where="Appendix B, Table 1",
        claim="the 28 numbers of the table; the gain by p does not depend on the norm of the attack",
        scales={
            "smoke": Table(**SMOKE, points_l1=20, restarts_l1=1),  # type: ignore[arg-type]
            "laptop": Table(),
            "paper": Table(**PAPER, points_l1=10_000),  # type: ignore[arg-type]
        },
    ),
)
