"""Section 8's nets, attackers and trainings as settings (without torch)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

from tacit.errors import CallError
from tacit.papers._shared.checks import check_at_least, check_positive, check_unique

Dataset = Literal["digits", "cifar10"]
AttackerName = Literal["linf4", "linf8", "l2half", "l2one"]
GROWN = 6  # l2 radii grow over a sixth of the epochs
TOLD_STAGES = "50, 50 and fewer than 50"


@dataclass(frozen=True)
class Attacker:
    """An attacker of Section 8: its norm, radius, steps and their length in radii, noise and its draws.

    With noise it is Salman et al.'s (2019) SmoothAdvPGD, which starts at the image.
    """

    told: str
    norm: float
    radius: float
    steps: int
    step: float
    random_start: bool = False
    sigma: float = 0.0
    draws: int = 1


def linf(radius: int) -> Attacker:
    """Madry et al.'s (2018) PGD, 7 steps; 2.5/7 radii and the random start are theirs."""
    return Attacker(
        f"linf({radius}/255)", float("inf"), radius / 255, 7, 2.5 / 7, random_start=True
    )


def smooth(radius: float, sigma: float) -> Attacker:
    """Footnote 14: 4 steps and 2 draws; steps of 2/4 radii are those of the released code of Salman et al."""
    return Attacker(f"l2({radius:g}, {sigma:g})", 2.0, radius, 4, 2 / 4, sigma=sigma, draws=2)


ATTACKERS: dict[str, Attacker] = {
    "linf4": linf(4),
    "linf8": linf(8),
    "l2half": smooth(0.5, 0.12),
    "l2one": smooth(1.0, 0.25),
}


@dataclass(frozen=True)
class Trained(ABC):
    """Nets trained clean and adversarially on images.

    `side`: images are averaged down to side x side (0: as they are); `train`: so many training images (0: all).
    SGD in batches of `batch`, with Nesterov's momentum .9 and weight decay `decay`; the step size rises to `step`
    over one epoch and falls as a cosine. `clean_epochs` without and `epochs` with an attacker, whose radius, if
    its norm is l2, grows over the first sixth of them.
    """

    dataset: Dataset = "cifar10"
    width: int = 4
    side: int = 0
    train: int = 0
    batch: int = 128
    step: float = 0.1
    decay: float = 1e-4
    clean_epochs: int = 80
    epochs: int = 15

    def __post_init__(self) -> None:
        for name in ("width", "batch", "step", "clean_epochs", "epochs"):
            check_positive(name, (getattr(self, name),))
        for name in ("side", "train", "decay"):
            check_at_least(name, (getattr(self, name),), 0)

    @property
    @abstractmethod
    def net(self) -> str:
        """What the net is called."""

    @property
    @abstractmethod
    def convolutions(self) -> int:
        """The number of convolutions that have numbers."""

    @property
    def smaller(self) -> list[str]:
        """In what nets and images are less than the paper's."""
        found = [f"images of {self.side} x {self.side}"] if self.side else []
        return [*found, *([f"{self.train:,} training images"] if self.train else [])]

    @property
    def how(self) -> str:
        """The training, and what the paper prints of it."""
        grown = self.epochs / GROWN
        return (
            f"{self.clean_epochs} clean and {self.epochs} adversarial epochs, Nesterov, warm-up and cosine, "
            f"l2 radii grown over {grown:.3g} epochs (paper: plain momentum, 10 epochs of growth; its epochs, "
            f"schedule and width are not printed), width {self.width}"
        )


@dataclass(frozen=True)
class Deep(Trained):
    """Pre-activation ResNets of `depth` layers and `width`: Section 8's ResNet-34 and ResNet-16."""

    depth: int = 34

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.depth < 10 or (self.depth - 4) % 6:
            raise CallError(f"depth={self.depth}: it is 6n + 4, as 10, 16, 22, 28, 34")

    @property
    def net(self) -> str:
        """By its depth."""
        return f"ResNet-{self.depth}"

    @property
    def convolutions(self) -> int:
        """The number of 3x3 convolutions."""
        return self.depth - 3

    @property
    def smaller(self) -> list[str]:
        """The depth too."""
        return [*([f"{self.net} for ResNet-34"] if self.depth != 34 else []), *super().smaller]

    @property
    def whole(self) -> bool:
        """Whether nets and images are the paper's."""
        return self.dataset == "cifar10" and not self.smaller


@dataclass(frozen=True)
class Stages(Deep):
    """Section 8.2: layer by layer, from random to clean to robust, on robust layers below.

    Stage 1 is `epochs` of adversarial training against `attacker`. Then, for each of `layers`, all layers below
    it are frozen and the others drawn anew; stage 2 is `clean_epochs` of clean training; stage 3 is adversarial
    again, until the robust and the clean accuracy of stage 1 are reached on `watch` test images, for `epochs` at
    most. Plain momentum .9; the step size falls to a tenth after four fifths of each stage, and l2 radii grow
    over the first fifth.
    """

    clean_epochs: int = 50
    epochs: int = 50
    attacker: AttackerName = "l2one"
    layers: tuple[int, ...] = (9, 13, 17, 19, 21, 23, 25, 27, 29)
    watch: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_layers("layers", self.layers, self)
        check_positive("watch", (self.watch,))

    @property
    def how(self) -> str:
        """Footnote 17, but for the width and what the stages were cut to."""
        same = (self.clean_epochs, self.epochs) == (50, 50)
        cut = "" if same else f" (paper: {TOLD_STAGES})"
        return (
            f"stages of {self.epochs}, {self.clean_epochs} and at most {self.epochs} epochs{cut}; stage 3 ends "
            f"by {self.watch:,} test images that nothing else uses; width {self.width}, which is not printed"
        )


@dataclass(frozen=True)
class Alex(Trained):
    """AlexNet with `width` filters in its first layer, clean, then trained on against `attacker`.

    The filters of its first layer are patches of 11 x 11 pixels: they can be looked at as they are.
    """

    width: int = 64
    step: float = 0.02
    decay: float = 5e-4
    clean_epochs: int = 60
    epochs: int = 40
    attacker: AttackerName = "l2one"

    @property
    def batches(self) -> int:
        """The steps of an epoch: a rest that fills no batch is left out."""
        every = {"cifar10": 50_000, "digits": 1_198}[self.dataset]
        return (self.train or every) // self.batch

    def left_of_start(self, epochs: int) -> float:
        """exp(-sum_t eta_t decay/(1 - .9)): what weight decay leaves of random weights where nothing else acts.

        eta_t, which falls as a cosine, is half of its height in the mean.
        """
        return math.exp(-epochs * self.batches * self.step / 2 * self.decay / (1 - 0.9))

    @property
    def too_short(self) -> str:
        """Why filters of this training are not done yet, if they are not: most of their start is left."""
        left = self.left_of_start(self.clean_epochs)
        if left <= 0.5:
            return ""
        return (
            f"weight decay alone leaves {100 * left:.0f}% of the start: filters still emerge from it; the run of "
            "the paper's size decides it (--scale paper --device cuda, minutes of one H200)"
        )

    @property
    def net(self) -> str:
        """It has one size."""
        return "AlexNet"

    @property
    def convolutions(self) -> int:
        """Five."""
        return 5


def check_layers(name: str, layers: tuple[int, ...], config: Trained) -> None:
    """Numbers of convolutions that the net has, each once."""
    for layer in layers:
        if not 1 <= layer <= config.convolutions:
            raise CallError(
                f"{name}={layer}: {config.net} has the convolutions 1 to {config.convolutions}"
            )
    check_unique(name, layers)


def regime_of(config: Trained, over: str = "images") -> str:
    """The regime of every claim: the paper prints neither epochs nor schedule nor width."""
    how = f"{config.how}; one training of each net, intervals are over {over}"
    if config.dataset != "cifar10":
        return f"other data: {config.dataset} where the paper has CIFAR-10; {how}"
    return f"shortened: {', '.join([*config.smaller, how])}"


NOT_HERE = "results/allenzhu2020.table1 has the run at paper scale"


def why_not(config: Deep) -> str:
    """Why the paper's numbers cannot be judged in this setting."""
    return f"the numbers are of ResNet-34 on all of CIFAR-10, which this is not; {NOT_HERE}"


# one clean and one robust net of 8x8 digits: a second or two each
SMALLEST: dict[str, Any] = {
    "dataset": "digits",
    "train": 256,
    "batch": 64,
    "clean_epochs": 2,
    "epochs": 1,
}
SMOKE: dict[str, Any] = {**SMALLEST, "depth": 10, "width": 1}
STAGES_SMOKE: dict[str, Any] = {**SMOKE, "clean_epochs": 1, "layers": (7,), "watch": 20}
ALEX_SMOKE: dict[str, Any] = {**SMALLEST, "width": 8}

# on two cores half a minute for the clean net and less than a minute for each robust one
LAPTOP: dict[str, Any] = {
    "depth": 10,
    "width": 1,
    "side": 16,
    "train": 5000,
    "batch": 64,
    "clean_epochs": 8,
    "epochs": 5,
}

# stages of a minute, half a minute and at most a minute for each layer
STAGES_LAPTOP: dict[str, Any] = {
    **LAPTOP,
    "train": 2500,
    "clean_epochs": 5,
    "epochs": 4,
    "attacker": "l2half",
    "watch": 500,
}

# without norms it starts slowly: 16 x 16 pixels, or steps of .02, leave it where it was
ALEX_LAPTOP: dict[str, Any] = {
    "width": 48,
    "train": 2500,
    "batch": 64,
    "step": 0.05,
    "clean_epochs": 10,
    "epochs": 3,
    "attacker": "l2half",
}
