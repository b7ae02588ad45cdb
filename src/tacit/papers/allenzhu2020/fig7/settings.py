"""The settings and the entry of `allenzhu2020.fig7` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive
from tacit.papers.allenzhu2020.deep.settings import (
    LAPTOP,
    SMOKE,
    AttackerName,
    Deep,
)


@dataclass(frozen=True)
class Perturbations(Deep):
    """Perturbations of the first `images` test images by `steps` steps within the ball of `attacker`.

    They are made for the clean net and for the one trained against that attacker; `shown` of them are drawn.
    """

    attacker: AttackerName = "l2one"
    images: int = 1000
    steps: int = 20
    shown: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("images", "steps", "shown"):
            check_positive(name, (getattr(self, name),))
        check_at_least("images", (self.images,), self.shown, "shown")


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.fig7",
        title="Perturbations become pictures",
        where="Section 5.1, Figure 7",
        claim="perturbations of a clean net look like noise, those of a robust net like images",
        scales={
            "smoke": Perturbations(**SMOKE, images=20, steps=3, shown=4),
            "laptop": Perturbations(**LAPTOP, attacker="l2half", images=200, steps=10),
            "paper": Perturbations(),
        },
    ),
)
