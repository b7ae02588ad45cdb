"""The settings and the entry of `allenzhu2020.thm5.4` (without torch)."""

from dataclasses import dataclass, replace

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_positive, check_unique
from tacit.papers.allenzhu2020._shared.settings import PAPER, SMOKE, Dictionary, Finite


@dataclass(frozen=True)
class Box(Finite):
    """Clean training, then FGM in linf at radius k^-1.75/||M||_inf, for each of the `dictionaries`.

    `block` is the size of the blocks of the block-diagonal M. Each of the `repeats` trainings is tried on
    `points` fresh points, and on `shown` of them at each of `radii` (in units of k^-1.75) for the figure.
    """

    dictionaries: tuple[Dictionary, ...] = ("identity", "block")
    block: int = 2
    repeats: int = 3
    points: int = 200
    shown: int = 150
    radii: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unique("dictionaries", self.dictionaries)
        if not self.dictionaries or set(self.dictionaries) - {"identity", "block"}:
            raise CallError(
                f"dictionaries={','.join(self.dictionaries)}: identity and block have small ||M||_inf, which the "
                "theorem needs"
            )
        for name in ("repeats", "points", "shown"):
            check_positive(name, (getattr(self, name),))
        check_positive("radii", self.radii)
        check_unique("radii", self.radii)

    @property
    def unit(self) -> float:
        """k^-1.75."""
        return float(self.k**-1.75)

    def on(self, dictionary: Dictionary) -> Finite:
        """The finite setting with that M."""
        return replace(self, dictionary=dictionary)


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.thm5.4",
        title="Adversarial training in linf",
        where="Section 5.2, Theorem 5.4; Corollary F.6",
        claim="clean training is broken at k^-2, adversarial training withstands k^-1.75",
        scales={
            "smoke": Box(
                **SMOKE,
                repeats=1,
                points=40,
                shown=20,
                radii=(0.5, 1.0),
            ),
            "laptop": Box(dictionaries=("identity",)),
            "paper": Box(
                **PAPER,
                pure_steps=2000,
                repeats=6,
                points=2000,
                shown=500,
            ),
        },
    ),
)
