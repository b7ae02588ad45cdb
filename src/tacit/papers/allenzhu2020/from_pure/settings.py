"""The settings and the entry of `allenzhu2020.from_pure` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive
from tacit.papers.allenzhu2020._shared.settings import PAPER, SMOKE, Course, Finite, Leg


@dataclass(frozen=True)
class FromPure(Finite):
    """Clean training from w_i = sign(w*_i) M_i, one neuron a feature, in `repeats` trainings, on `points` points.

    After the clean steps and after `times` as many; beside it stands clean training from random weights.
    """

    repeats: int = 6
    points: int = 500
    times: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("repeats", (self.repeats,))
        check_positive("points", (self.points,))
        check_at_least("times", (self.times,), 2, "it goes on from the clean steps")

    @property
    def legs(self) -> dict[str, Course]:
        """From pure features, once and `times` the steps."""
        first = self.from_pure
        more = Leg(((self.times - 1) * sum(self.clean_steps),), (self.clean_eta[-1],))
        return {"pure": first, "longer": (*first, more)}


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.from_pure",
        title="Clean training from pure features accumulates the mixture",
        where="Section 6.2, the formation of the dense mixtures",
        claim="even from w_i = M_i, clean training accumulates a small but dense mixture",
        scales={
            "smoke": FromPure(**SMOKE, repeats=2, points=100, times=3),
            "laptop": FromPure(),
            "paper": FromPure(**PAPER),
        },
    ),
)
