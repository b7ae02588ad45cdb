"""The settings and the entries of `allenzhu2020.fig12` (ResNet) and `.fig12_alexnet`, without torch."""

from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive
from tacit.papers.allenzhu2020.deep.settings import (
    ALEX_LAPTOP,
    ALEX_SMOKE,
    LAPTOP,
    SMOKE,
    Alex,
    AttackerName,
    Deep,
)


@dataclass(frozen=True)
class Paths:
    """Lasso paths of `images` images in the features of first convolutions.

    The images are the first of `among` test images that the net trained against the attacker has right. Paths
    have `lambdas` weights, from the least that leaves nothing down to `least` of it; what is compared is compared
    at the relative squared error `error`.
    """

    images: int = 100
    among: int = 1000
    lambdas: int = 20
    least: float = 0.01
    error: float = 0.1

    def check_paths(self) -> None:
        """Numbers that make sense together."""
        check_at_least("images", (self.images,), 2, "a mean over images needs more than one")
        check_at_least("among", (self.among,), self.images, "images")
        check_at_least("lambdas", (self.lambdas,), 2)
        for name in ("least", "error"):
            if not 0 < getattr(self, name) < 1:
                raise CallError(f"{name}={getattr(self, name)}: it lies between 0 and 1")


@dataclass(frozen=True)
class Compared(Paths):
    """Perturbations too, made by `steps` steps; least squares (Remark 8.2) takes `regression_steps` at most."""

    steps: int = 20
    regression_steps: int = 20_000
    in_span: ClassVar[str]  # the regression error of Remark 8.2, as printed

    def check_compared(self) -> None:
        """The paths, and these."""
        self.check_paths()
        for name in ("steps", "regression_steps"):
            check_positive(name, (getattr(self, name),))


@dataclass(frozen=True)
class Reconstruction(Compared, Deep):
    """The ResNet half, where the robust net starts at random."""

    attacker: AttackerName = "l2one"
    in_span: ClassVar[str] = "1e-9"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_compared()


@dataclass(frozen=True)
class AlexReconstruction(Compared, Alex):
    """The AlexNet half, where the robust net goes on from the clean one."""

    in_span: ClassVar[str] = "5e-5"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_compared()


EitherNet = Reconstruction | AlexReconstruction
CLAIM = "images and robust perturbations are sparse in robust features, clean perturbations are not"
CODE = "tacit.papers.allenzhu2020.fig12.exhibit"
FEW: dict[str, Any] = {
    "images": 3,
    "among": 200,
    "steps": 3,
    "lambdas": 3,
    "least": 0.2,
    "error": 0.5,
}
# at stride 4 it takes 4 x 4 filters for a channel of pixels
ALEX_SPANNING = {**ALEX_SMOKE, "width": 16}
SOME: dict[str, Any] = {"images": 20, "among": 300, "steps": 10, "lambdas": 12}

EXHIBITS = (
    Exhibit(
        id="allenzhu2020.fig12",
        title="Robust features reconstruct with fewer",
        where="Section 8.3, Figure 12, its ResNet half",
        claim=CLAIM,
        scales={
            "smoke": Reconstruction(**SMOKE, **FEW),
            "laptop": Reconstruction(**LAPTOP, attacker="l2half", **SOME),
            "paper": Reconstruction(),
        },
    ),
    Exhibit(
        id="allenzhu2020.fig12_alexnet",
        title="AlexNet's robust features reconstruct with fewer",
        where="Section 8.3, Figure 12, its AlexNet half",
        claim=CLAIM,
        scales={
            "smoke": AlexReconstruction(**ALEX_SPANNING, **FEW | {"least": 0.05}),
            "laptop": AlexReconstruction(
                **ALEX_LAPTOP, **SOME | {"images": 10}, regression_steps=2000
            ),
            "paper": AlexReconstruction(),
        },
        code=CODE,
    ),
)
