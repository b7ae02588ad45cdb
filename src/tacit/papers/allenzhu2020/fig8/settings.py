"""The settings and the entry of `allenzhu2020.fig8` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least
from tacit.papers.allenzhu2020.deep.settings import ALEX_LAPTOP, ALEX_SMOKE, Alex


@dataclass(frozen=True)
class Tickets(Alex):
    """Clean training, looked at after every epoch. `shown` winners and as many losers are drawn.

    Winners are the half of the filters that have the larger norm after the last epoch. A filter's response is
    measured on the first `seen` training images.
    """

    shown: int = 6
    seen: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("width", (self.width,), 4, "half of the filters win, and ranks need four")
        check_at_least("clean_epochs", (self.clean_epochs,), 2, "the first one foretells the last")
        check_at_least("seen", (self.seen,), 2)
        if not 1 <= self.shown <= self.width // 2:
            raise CallError(
                f"shown={self.shown}: of {self.width} filters {self.width // 2} win; choose 1 to that"
            )

    @property
    def frames(self) -> tuple[int, ...]:
        """The epochs that are drawn: 0, 1, 2, 5, 10, 20, ... and the last."""
        usual = (0, 1, 2, 5, *(10 * 2**k for k in range(10)))
        return (*(each for each in usual if each < self.clean_epochs), self.clean_epochs)

    @property
    def quarter(self) -> int:
        """The epoch after a quarter of the training, 1 at least."""
        return max(1, self.clean_epochs // 4)

    @property
    def tenth(self) -> int:
        """The epoch after a tenth of the training, 1 at least."""
        return max(1, self.clean_epochs // 10)


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.fig8",
        title="Lottery tickets among filters",
        where="Section 6.1, Figure 8",
        claim="which filters of AlexNet's first layer grow is decided near random initialization",
        scales={
            "smoke": Tickets(**ALEX_SMOKE, shown=4, seen=100),
            "laptop": Tickets(**ALEX_LAPTOP),
            "paper": Tickets(),
        },
    ),
)
