"""The settings and the entry of `allenzhu2020.fig1` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least
from tacit.papers.allenzhu2020.deep.settings import ALEX_LAPTOP, ALEX_SMOKE, Alex


@dataclass(frozen=True)
class Purified(Alex):
    """Filters beside `patches` patches of training images; accuracies on the first `points` test images."""

    points: int = 5000
    patches: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("width", (self.width,), 2, "a mean over filters needs more than one")
        for name in ("points", "patches"):
            check_at_least(name, (getattr(self, name),), 2)


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.fig1",
        title="Adversarial training purifies filters",
        where="Section 1, Figure 1",
        claim="adversarial training leaves every filter of AlexNet what it is, with less noise in it",
        scales={
            "smoke": Purified(**ALEX_SMOKE, points=100, patches=100),
            "laptop": Purified(**ALEX_LAPTOP, points=500),
            "paper": Purified(),
        },
    ),
)
