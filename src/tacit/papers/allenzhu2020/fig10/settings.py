"""The settings and the entry of `allenzhu2020.fig10` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive
from tacit.papers.allenzhu2020.deep.settings import (
    LAPTOP,
    SMOKE,
    AttackerName,
    Deep,
    check_layers,
)


@dataclass(frozen=True)
class Features(Deep):
    """What excites the first `neurons` neurons of each of `layers`, by `steps` steps of gradient ascent.

    Of the clean net, and of the one trained against `attacker`; `shown` of each layer are drawn.
    """

    attacker: AttackerName = "l2one"
    layers: tuple[int, ...] = (9, 17, 27, 31)
    neurons: int = 64
    steps: int = 2000
    shown: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_layers("layers", self.layers, self)
        check_at_least("neurons", (self.neurons,), 2, "a mean over neurons needs more than one")
        for name in ("steps", "shown"):
            check_positive(name, (getattr(self, name),))


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.fig10",
        title="What deep neurons want to see",
        where="Section 8.1, Figure 10",
        claim="plain gradient ascent shows pictures in robust nets, and noise in clean ones",
        scales={
            "smoke": Features(**SMOKE, layers=(3, 7), neurons=8, steps=20, shown=8),
            "laptop": Features(
                **LAPTOP, attacker="l2half", layers=(3, 5, 7), neurons=32, steps=500
            ),
            "paper": Features(),
        },
    ),
)
