"""The settings and the entries of `allenzhu2020.fig11` and of `allenzhu2020.fig6` (without torch)."""

from dataclasses import dataclass
from typing import Any, Literal

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive
from tacit.papers.allenzhu2020.deep.settings import STAGES_LAPTOP, STAGES_SMOKE, Stages

RESTS = {"grey": 0.5, "black": 0.0}  # RGB (128, 128, 128) and (0, 0, 0), footnote 16


@dataclass(frozen=True)
class Purified(Stages):
    """What excites the first `neurons` neurons of each of `layers` after each stage, by gradient ascent.

    `steps` steps; pixels are pulled to `rest`. `shown` of each layer are drawn. `natural` test images are the
    yardstick of what a picture looks like.
    """

    neurons: int = 64
    steps: int = 2000
    shown: int = 8
    rest: Literal["grey", "black"] = "grey"
    natural: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("neurons", (self.neurons,), 2, "a mean over neurons needs more than one")
        check_at_least("natural", (self.natural,), 2, "a mean over images needs more than one")
        for name in ("steps", "shown"):
            check_positive(name, (getattr(self, name),))


CLAIM = "what a layer wants to see is noise after clean training, and a picture after adversarial training"
CODE = "tacit.papers.allenzhu2020.fig11.exhibit"
FEW: dict[str, Any] = {"neurons": 8, "steps": 20, "natural": 40}
SOME: dict[str, Any] = {"layers": (5,), "neurons": 32, "steps": 500}

EXHIBITS = (
    Exhibit(
        id="allenzhu2020.fig6",
        title="Purified features of deep layers, on black",
        where="Section 5.1, Figure 6; Section 8.2",
        claim=CLAIM,
        scales={
            "smoke": Purified(**STAGES_SMOKE, **FEW, rest="black"),
            "laptop": Purified(**STAGES_LAPTOP, **SOME, rest="black"),
            "paper": Purified(layers=(17, 27, 29), rest="black"),
        },
        code=CODE,
    ),
    Exhibit(
        id="allenzhu2020.fig11",
        title="Purification in each layer of a deep net",
        where="Section 8.2, Figure 11",
        claim=CLAIM,
        scales={
            "smoke": Purified(**STAGES_SMOKE, **FEW),
            "laptop": Purified(**STAGES_LAPTOP, **SOME),
            "paper": Purified(),
        },
        code=CODE,
    ),
)
