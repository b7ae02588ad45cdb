"""The settings and the entry of `allenzhu2020.transfer` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive, check_unique
from tacit.papers.allenzhu2020._shared.settings import PAPER, SMOKE, Finite


@dataclass(frozen=True)
class Transferred(Finite):
    """In each of `repeats` dictionaries two nets trained apart, the second of `narrow` neurons.

    In `few` of them also without a margin.

    A universal direction is learned on the first net from `learn` points; both are tried on `points` fresh
    ones, along it at each of the `radii`.
    """

    repeats: int = 6
    few: int = 3
    narrow: int = 500
    learn: int = 200
    points: int = 500
    radii: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("repeats", "few", "narrow", "learn", "points"):
            check_positive(name, (getattr(self, name),))
        check_at_least(
            "repeats", (self.repeats,), self.few, "few of them are tried without a margin"
        )
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
                **SMOKE,
                repeats=2,
                few=2,
                narrow=150,
                learn=100,
                points=100,
                radii=(0.2, 0.35),
            ),
            "laptop": Transferred(),
            "paper": Transferred(**PAPER, narrow=5000),
        },
    ),
)
