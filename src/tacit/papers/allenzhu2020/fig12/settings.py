"""The settings and the entry of `allenzhu2020.fig12` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive
from tacit.papers.allenzhu2020.deep.settings import (
    LAPTOP,
    SMOKE,
    AttackerName,
    Deep,
)


@dataclass(frozen=True)
class Reconstruction(Deep):
    """Lasso paths of `images` images, and of perturbations of them, in the features of first convolutions.

    The images are the first of `among` test images that the net trained against `attacker` has right. `steps`
    steps make the perturbations. Paths have `lambdas` weights, from the least that leaves nothing down to `least`
    of it; dictionaries are compared at the relative squared error `error`.
    """

    attacker: AttackerName = "l2one"
    images: int = 100
    among: int = 1000
    steps: int = 20
    lambdas: int = 20
    least: float = 0.01
    error: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("steps", (self.steps,))
        check_at_least("images", (self.images,), 2, "a mean over images needs more than one")
        check_at_least("among", (self.among,), self.images, "images")
        check_at_least("lambdas", (self.lambdas,), 2)
        for name in ("least", "error"):
            if not 0 < getattr(self, name) < 1:
                raise CallError(f"{name}={getattr(self, name)}: it lies between 0 and 1")


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.fig12",
        title="Robust features reconstruct with fewer",
        where="Section 8.3, Figure 12, its ResNet half",
        claim="images and robust perturbations are sparse in robust features, clean perturbations are not",
        scales={
            "smoke": Reconstruction(
                **SMOKE, images=3, among=200, steps=3, lambdas=3, least=0.2, error=0.5
            ),
            "laptop": Reconstruction(
                **LAPTOP, attacker="l2half", images=20, among=300, steps=10, lambdas=12
            ),
            "paper": Reconstruction(),
        },
    ),
)
