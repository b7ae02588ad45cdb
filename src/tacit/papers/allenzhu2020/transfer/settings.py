"""The settings and the entry of `allenzhu2020.transfer` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_positive, check_unique
from tacit.papers.allenzhu2020._shared.settings import PAPER, SMOKE, Finite


@dataclass(frozen=True)
class Transferred(Finite):
    """In each of `repeats` dictionaries two nets trained apart, and a third of `narrow` neurons.

    A universal direction is learned on the first net from `learn` points; the others are tried on `points` fresh
    ones, along it at each of the `radii`.
    """

    repeats: int = 6
    narrow: int = 1000
    learn: int = 1000
    points: int = 1000
    radii: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("repeats", "narrow", "learn", "points"):
            check_positive(name, (getattr(self, name),))
        check_positive("radii", self.radii)
        check_unique("radii", self.radii)


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.transfer",
        title="What breaks one net breaks another",
        where="Section 6.2, the vulnerable dense mixtures",
        claim="the universal direction of one net is M w*, and breaks nets that were trained independently",
        scales={
            "smoke": Transferred(
                **SMOKE,  # type: ignore[arg-type]
                repeats=2,
                narrow=150,
                learn=100,
                points=100,
                radii=(0.2, 0.35),
            ),
            "laptop": Transferred(),
            "paper": Transferred(**PAPER, repeats=3, narrow=10_000),  # type: ignore[arg-type],
        },
    ),
)
