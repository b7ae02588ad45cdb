"""The settings and the entry of `allenzhu2020.thm5.2` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_positive
from tacit.papers.allenzhu2020._shared.settings import PAPER, SMOKE, Finite


@dataclass(frozen=True)
class Mixed(Finite):
    """The neurons of `repeats` clean nets in the dictionary, and what their mixtures do on `points` points."""

    repeats: int = 6
    points: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("repeats", (self.repeats,))
        check_positive("points", (self.points,))


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.thm5.2",
        title="Every neuron is one feature and a dense mixture of all others",
        where="Section 5.1, Theorem 5.2; Section 6.2; Appendix E, Lemma E.2",
        claim="w_i = alpha M_j plus a mixture of all features, whose coefficients are of order k/d",
        scales={
            "smoke": Mixed(**SMOKE, repeats=2, points=100),
            "laptop": Mixed(),
            "paper": Mixed(**PAPER),
        },
    ),
)
