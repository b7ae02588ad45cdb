"""The settings and the entry of `li2025.deep_story` (without torch)."""

from dataclasses import dataclass
from typing import Literal

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_positive,
    check_unique,
)
from tacit.papers.li2025.fig3b.settings import Dataset, Schedule

Row = Literal[
    "two", "head", "control", "throughout", "ten", "both", "discovered", "adversarial"
]  # fmt: skip
EVERY: tuple[Row, ...] = (
    "two",
    "head",
    "control",
    "throughout",
    "ten",
    "both",
    "discovered",
    "adversarial",
)
CLASSES = 10  # of each data set that there is: five and five


@dataclass(frozen=True)
class DeepStory:
    """ResNet-18s of `width`, one for each of `rows` and each repeat: first five classes against last five.

    `two`: 2 labels. `head`: a head of `hidden` PolyReLU neurons of degree `p`; `control`: the same head of plain
    ReLU neurons, so that a gain of `head` can be told from that of a larger head. `throughout`: relu(z)^`power`
    wherever z is batch-normalised. `ten`: 10 labels; `both`: with that head too. `discovered`: 2 labels, then
    anew with 5 labels a class that k-means finds in the features. `adversarial`: 2 labels, l2 `ball`, in
    `inner` steps, for `hard_epochs`; all others are clean, for `epochs`.

    The first `train` images (0: all), averaged down to `side` pixels (0: as they are), shifted by up to `crop`
    pixels and mirrored where `flip`; SGD with steps of `step` that fall as `schedule` says. `points` test images
    are attacked at each l2 `radius` by `steps` steps of APGD from each start, the first `strict` of them at each
    radius of `at` by the strict attack: `strict_steps`, `restarts`, `queries`. Lasso paths of `images` images
    have `lambdas` weights, down to `least` of the first, and are compared at the relative error `error`.
    """

    dataset: Dataset = "cifar10"
    rows: tuple[Row, ...] = EVERY
    train: int = 0
    side: int = 0
    width: int = 64
    epochs: int = 12
    hard_epochs: int = 8
    batch: int = 128
    step: float = 0.1
    schedule: Schedule = "cosine"
    crop: int = 4
    flip: bool = True
    hidden: int = 256
    p: int = 3
    power: int = 2
    ball: float = 0.25
    inner: int = 7
    radius: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5)
    points: int = 1000
    steps: int = 20
    at: tuple[float, ...] = (0.1, 0.25)
    strict: int = 1000
    strict_steps: int = 30
    restarts: int = 2
    queries: int = 100
    images: int = 50
    lambdas: int = 12
    least: float = 0.02
    error: float = 0.1
    repeats: int = 3

    def __post_init__(self) -> None:
        if "two" not in self.rows or len(self.rows) < 2:
            raise CallError(
                "rows: 'two' and another are needed, for each row is compared with it: --set rows=two,ten"
            )
        for name in ("rows", "radius", "at"):
            check_unique(name, getattr(self, name))
        for name in ("radius", "at"):
            if not getattr(self, name):
                raise CallError(f"{name}: give at least one, as in --set {name}=0.1")
            check_positive(name, getattr(self, name))
        for radius in self.at:
            if radius not in self.radius:
                raise CallError(f"at={radius:g}: it is one of radius, where APGD has been before")
        check_positive("step", (self.step,))
        check_positive("ball", (self.ball,))
        # torch 2.13 on a CPU: a 1x1 convolution with stride 2 on fewer channels ends the process
        check_at_least("width", (self.width,), 8)
        counts = (
            "epochs",
            "hard_epochs",
            "batch",
            "hidden",
            "p",
            "power",
            "inner",
            "points",
            "steps",
        )
        for name in (*counts, "strict", "strict_steps", "restarts", "queries", "repeats"):
            check_at_least(name, (getattr(self, name),), 1)
        for name in ("train", "side", "crop"):
            check_at_least(name, (getattr(self, name),), 0)
        check_at_least("images", (self.images,), 2, "a mean over images needs more than one")
        check_at_least("lambdas", (self.lambdas,), 2)
        check_at_most("strict", (self.strict,), self.points, "points")
        for name in ("least", "error"):
            if not 0 < getattr(self, name) < 1:
                raise CallError(f"{name}={getattr(self, name)}: it lies between 0 and 1")


PAPER = DeepStory()
LAPTOP = DeepStory(
    dataset="mnist", train=2560, side=14, width=8, epochs=3, hard_epochs=2, batch=32, step=0.05, crop=0,
    flip=False, hidden=64, ball=0.5, inner=3, radius=(0.15, 0.3, 0.5), points=100, steps=8, at=(0.3,), strict=50,
    strict_steps=8, restarts=1, queries=20, images=20, lambdas=8, least=0.03, repeats=1,
)  # fmt: skip
SMOKE = DeepStory(
    dataset="digits", rows=("two", "head", "throughout", "discovered", "adversarial"), train=128, width=8,
    epochs=1, hard_epochs=1, batch=64, step=0.05, crop=0, flip=False, hidden=8, ball=0.3, inner=1,
    radius=(0.2, 0.5), points=6, steps=2, at=(0.2,), strict=2, strict_steps=2, restarts=1, queries=1, images=2,
    lambdas=3, least=0.2, error=0.5, repeats=1,
)  # fmt: skip

EXHIBITS = (
    Exhibit(
        id="li2025.deep_story",
        title="Activation, labels and adversarial training in one deep net",
        where="Section 6.2 (beyond the papers)",
        claim="a PolyReLU head or body and finer labels do to a clean ResNet-18 what adversarial training does",
        scales={"smoke": SMOKE, "laptop": LAPTOP, "paper": PAPER},
    ),
)
