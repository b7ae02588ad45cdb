"""The settings and the entry of `allenzhu2020.fig2` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_positive
from tacit.papers.allenzhu2020.deep.settings import STAGES_LAPTOP, STAGES_SMOKE, Alex, Stages


@dataclass(frozen=True)
class Turned(Stages):
    """The angles of Section 1 in each of `layers`, and in AlexNet's five; accuracies on `points` test images.

    AlexNet has `alex_width` filters in its first layer. All its layers are trained at once, on whole images, by
    steps of `alex_step`, for `alex_clean` epochs clean, then for `alex_epochs` against the attacker.
    """

    points: int = 5000
    alex_width: int = 64
    alex_step: float = 0.02
    alex_clean: int = 60
    alex_epochs: int = 40

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("points", "alex_width", "alex_step", "alex_clean", "alex_epochs"):
            check_positive(name, (getattr(self, name),))

    @property
    def alex(self) -> Alex:
        """AlexNet on the same images."""
        return Alex(
            self.dataset, self.alex_width, train=self.train, batch=self.batch, step=self.alex_step,
            clean_epochs=self.alex_clean, epochs=self.alex_epochs, attacker=self.attacker,
        )  # fmt: skip


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.fig2",
        title="Clean training finds the features, adversarial training turns them little",
        where="Section 1, Figure 2; Section 8.2",
        claim="weights end far from where they began, and adversarial training hardly turns clean ones",
        scales={
            "smoke": Turned(**STAGES_SMOKE, points=40, alex_width=4, alex_clean=1, alex_epochs=1),
            "laptop": Turned(
                **STAGES_LAPTOP,
                layers=(5,),
                points=1000,
                alex_width=48,
                alex_step=0.05,
                alex_clean=10,
                alex_epochs=3,
            ),
            "paper": Turned(),
        },
    ),
)
