"""The settings and the entry of `allenzhu2020.fig13` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive, check_unique
from tacit.papers.allenzhu2020.deep.settings import (
    LAPTOP,
    SMOKE,
    AttackerName,
    Deep,
    check_layers,
)


@dataclass(frozen=True)
class Attackers(Deep):
    """What excites the first `neurons` neurons of `layer`, in the clean net and in those of `attackers`.

    By `steps` steps of gradient ascent; `shown` of each net are drawn.
    """

    attackers: tuple[AttackerName, ...] = ("linf4", "linf8", "l2half", "l2one")
    layer: int = 27
    neurons: int = 64
    steps: int = 2000
    shown: int = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unique("attackers", self.attackers)
        check_layers("layer", (self.layer,), self)
        check_at_least("neurons", (self.neurons,), 2, "a mean over neurons needs more than one")
        for name in ("steps", "shown"):
            check_positive(name, (getattr(self, name),))


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.fig13",
        title="Stronger attackers purify more",
        where="Section 8.4, Figure 13",
        claim="features are purified against each attacker, and more against stronger ones",
        scales={
            "smoke": Attackers(
                **SMOKE, attackers=("l2one",), layer=7, neurons=8, steps=20, shown=8
            ),
            "laptop": Attackers(
                **LAPTOP,
                attackers=("linf4", "linf8"),
                layer=7,
                neurons=32,
                steps=500,
                shown=16,
            ),
            "paper": Attackers(),
        },
    ),
)
