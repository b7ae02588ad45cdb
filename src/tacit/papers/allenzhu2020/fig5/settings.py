"""The settings and the entry of `allenzhu2020.fig5` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least
from tacit.papers.allenzhu2020.deep.settings import Dataset, Deep

DEPTH, WIDTH = 28, 10


@dataclass(frozen=True)
class Active:
    """One clean training, looked at on the first `images` test images before it and after each epoch.

    The rest as `Deep` has it, but for `epochs`, which are clean: WideResNet-28-10 is depth 28 and width 10.
    """

    dataset: Dataset = "cifar10"
    depth: int = DEPTH
    width: int = WIDTH
    side: int = 0
    train: int = 0
    batch: int = 128
    step: float = 0.1
    decay: float = 1e-4
    epochs: int = 30
    images: int = 1000

    def __post_init__(self) -> None:
        check_at_least("epochs", (self.epochs,), 2, "the end is compared with the first epoch")
        check_at_least("images", (self.images,), 2, "a mean over images needs more than one")
        assert self.training  # which checks the rest

    @property
    def training(self) -> Deep:
        """The settings whose clean net this is."""
        return Deep(
            dataset=self.dataset, width=self.width, side=self.side, train=self.train, batch=self.batch,
            step=self.step, decay=self.decay, clean_epochs=self.epochs, depth=self.depth,
        )  # fmt: skip

    @property
    def net(self) -> str:
        """What the net is called."""
        return f"WideResNet-{self.depth}-{self.width}"

    @property
    def whole(self) -> bool:
        """Whether net and images are the paper's."""
        same = (self.dataset, self.depth, self.width) == ("cifar10", DEPTH, WIDTH)
        return same and not (self.side or self.train)

    @property
    def regime(self) -> str:
        """Of every claim: the paper prints the net and the data, and no more."""
        how = (
            f"{self.epochs} epochs, Nesterov, warm-up and cosine (the paper prints neither epochs nor schedule); "
            "one training, intervals are over images"
        )
        if self.dataset != "cifar10":
            return f"other data: {self.dataset} where the paper has CIFAR-10; {how}"
        other = (
            []
            if (self.depth, self.width) == (DEPTH, WIDTH)
            else [f"{self.net} for WideResNet-28-10"]
        )
        fewer = [f"images of {self.side} x {self.side}"] if self.side else []
        fewer += [f"{self.train:,} training images"] if self.train else []
        return f"shortened: {', '.join([*other, *fewer, how])}"


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.fig5",
        title="Fewer neurons are active as training goes",
        where="Section 4, Figure 5",
        claim="the share of active neurons falls during clean training",
        scales={
            "smoke": Active(
                dataset="digits", depth=10, width=1, train=256, batch=64, epochs=2, images=50
            ),
            "laptop": Active(
                depth=10, width=2, side=16, train=5000, batch=64, epochs=5, images=500
            ),
            "paper": Active(),
        },
    ),
)
