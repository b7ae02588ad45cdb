"""The settings and the entry of `allenzhu2020.fig9` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive
from tacit.papers.allenzhu2020.deep.settings import ALEX_LAPTOP, ALEX_SMOKE, Alex


@dataclass(frozen=True)
class Summary(Alex):
    """Clean, adversarial, and `again` more clean epochs; accuracies on the first `points` test images.

    `shown` filters are drawn.
    """

    again: int = 20
    points: int = 5000
    shown: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("width", (self.width,), 3, "filters are compared with the others")
        check_at_least("points", (self.points,), 2)
        for name in ("again", "shown"):
            check_positive(name, (getattr(self, name),))


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.fig9",
        title="From random to mixed to pure, and back",
        where="Section 6.2, Figure 9",
        claim="clean filters are pure filters and a small dense mixture, which adversarial training removes and "
        "clean training brings back",
        scales={
            "smoke": Summary(**ALEX_SMOKE, again=1, points=100, shown=8),
            "laptop": Summary(**ALEX_LAPTOP, again=2, points=500),
            "paper": Summary(),
        },
    ),
)
