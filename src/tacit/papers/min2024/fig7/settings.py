"""The settings and the entry of `min2024.fig7` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_unique


@dataclass(frozen=True)
class Field:
    """Directions of w in the quarter plane between the two centres, and the activations shown."""

    angles: int = 181
    p: tuple[float, ...] = (1.0, 2.0, 3.0)

    def __post_init__(self) -> None:
        check_at_least("angles", (self.angles,), 5)
        check_at_least("p", self.p, 1, "p = 1 is ReLU")
        check_unique("p", self.p)


EXHIBITS = (
    Exhibit(
        id="min2024.fig7",
        title="What turns a neuron: x^(p)(w) in the plane",
        where="Appendix D.1, Figure 7",
        claim="x^(p)(w) points at the average (p = 1), along w (p = 2), towards the closer centre (p = 3)",
        scales={"smoke": Field(angles=19), "laptop": Field(), "paper": Field(angles=1801)},
    ),
)
