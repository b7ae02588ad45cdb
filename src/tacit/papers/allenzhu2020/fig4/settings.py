"""The settings and the entry of `allenzhu2020.fig4` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least
from tacit.papers.allenzhu2020.deep.settings import ALEX_LAPTOP, Alex
from tacit.papers.allenzhu2020.fig12.settings import ALEX_SPANNING, Paths

WIDTH = 64  # filters of the paper's AlexNet


@dataclass(frozen=True)
class Rebuilt(Paths, Alex):
    """Images rebuilt from AlexNet's robust features at the relative squared error `error`; `shown` are drawn.

    The paper does not print its error: .1 keeps nine tenths of an image's variance, a PSNR of about 22 dB.
    """

    shown: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_paths()
        check_at_least("shown", (self.shown,), 1)
        check_at_least("images", (self.images,), self.shown, "shown")

    @property
    def whole(self) -> bool:
        """Whether net and images have the paper's sizes."""
        return self.dataset == "cifar10" and self.width == WIDTH and not self.smaller


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.fig4",
        title="Images from a few robust features",
        where="Section 3, Figure 4",
        claim="4.05% of AlexNet's robust features or less rebuild an image",
        scales={
            "smoke": Rebuilt(
                **ALEX_SPANNING, images=3, among=200, lambdas=3, least=0.05, error=0.5, shown=3
            ),
            "laptop": Rebuilt(**ALEX_LAPTOP, images=20, among=300, lambdas=12),
            "paper": Rebuilt(),
        },
    ),
)
