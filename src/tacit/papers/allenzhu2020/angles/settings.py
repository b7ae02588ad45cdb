"""The settings and the entry of `allenzhu2020.angles` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive
from tacit.papers.allenzhu2020._shared.settings import PAPER, SMOKE, Finite


@dataclass(frozen=True)
class Turned(Finite):
    """The weights of `repeats` trainings at the start, after clean and after adversarial training.

    `few` trainings are looked at without a margin too.
    """

    repeats: int = 6
    few: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("few", (self.few,))
        check_at_least(
            "repeats", (self.repeats,), self.few, "few of them are looked at without a margin"
        )


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.angles",
        title="How far features turn, from the start to clean to purified",
        where="Section 1, the principle of feature purification; Figure 2, the theory's side",
        claim="clean training turns features far, adversarial training little; features differ from one another",
        scales={
            "smoke": Turned(**SMOKE, repeats=2, few=2),
            "laptop": Turned(),
            "paper": Turned(**PAPER),
        },
    ),
)
