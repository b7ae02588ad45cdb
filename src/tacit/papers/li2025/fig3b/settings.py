"""The settings and the entries of `li2025.fig3b` (MNIST) and `li2025.fig3c` (CIFAR-10), without torch."""

from dataclasses import dataclass, replace
from typing import Literal

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive, check_unique

Dataset = Literal["digits", "mnist", "fashion-mnist", "cifar10"]
Schedule = Literal["cosine", "constant"]


@dataclass(frozen=True)
class Labels:
    """Section 6.2: a ResNet-18 of `width` trained with 2 labels and one with 10, by SGD, for each repeat.

    The first `train` images (0: all), averaged down to `side` pixels (0: as they are), shifted by up to `crop`
    pixels and mirrored where `flip`. The first `points` test images are attacked at each l2 `radius` by `steps`
    steps of APGD from each start; all test images give the clean accuracy.
    """

    dataset: Dataset = "cifar10"
    train: int = 0
    side: int = 0
    width: int = 64
    epochs: int = 200
    batch: int = 128
    step: float = 0.1
    schedule: Schedule = "cosine"
    crop: int = 4
    flip: bool = True
    radius: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
    points: int = 1000
    steps: int = 40
    repeats: int = 1

    def __post_init__(self) -> None:
        if not self.radius:
            raise CallError("radius: give at least one, as in --set radius=0.1,0.2")
        check_positive("radius", self.radius)
        check_unique("radius", self.radius)
        check_positive("step", (self.step,))
        # torch 2.13 on a CPU: a 1x1 convolution with stride 2 on fewer channels ends the process
        check_at_least("width", (self.width,), 8)
        for name in ("epochs", "batch", "points", "steps", "repeats"):
            check_at_least(name, (getattr(self, name),), 1)
        for name in ("train", "side", "crop"):
            check_at_least(name, (getattr(self, name),), 0)


MNIST = Labels(
    dataset="mnist", epochs=100, step=1e-3, schedule="constant", crop=0, flip=False,
    radius=(0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0),
)  # fmt: skip
CIFAR10 = Labels()
PAPERS = {"mnist": MNIST, "cifar10": CIFAR10}

SMOKE = {
    "dataset": "digits", "train": 320, "width": 8, "epochs": 2, "batch": 64, "step": 0.05, "crop": 0,
    "flip": False, "radius": (0.2, 0.5), "points": 20, "steps": 5,
}  # fmt: skip
SMALLER = {"train": 10_000, "width": 8, "epochs": 8, "points": 500, "steps": 20}
SMALL_MNIST = replace(MNIST, side=14, radius=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6), **SMALLER)  # type: ignore[arg-type]
SMALL_CIFAR10 = replace(
    CIFAR10, side=16, crop=2, radius=(0.05, 0.1, 0.15, 0.2, 0.3), **SMALLER,  # type: ignore[arg-type]
)  # fmt: skip
CLAIM = "the net trained with 10 labels is more robust on the binary task at every radius"
CODE = "tacit.papers.li2025.fig3b.exhibit"

EXHIBITS = (
    Exhibit(
        id="li2025.fig3b",
        title="ResNet-18 on MNIST with 2 labels and with 10",
        where="Section 6.2, Figure 3 (middle)",
        claim=CLAIM,
        scales={"smoke": Labels(**SMOKE), "laptop": SMALL_MNIST, "paper": MNIST},  # type: ignore[arg-type]
        code=CODE,
    ),
    Exhibit(
        id="li2025.fig3c",
        title="ResNet-18 on CIFAR-10 with 2 labels and with 10",
        where="Section 6.2, Figure 3 (right)",
        claim=CLAIM,
        scales={"smoke": Labels(**SMOKE), "laptop": SMALL_CIFAR10, "paper": CIFAR10},  # type: ignore[arg-type]
        code=CODE,
    ),
)
