"""The settings and the entry of `li2025.fig2cd` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_init, check_positive, check_unique
from tacit.papers._shared.frozen import Frozen

PAPERS = "open_clip:ViT-B-32/openai"  # the paper's embeddings: CLIP ViT-B-32


@dataclass(frozen=True)
class Embedded(Frozen):
    """Figure 2 (c, d): nets with 2 labels (the first half of the classes, the rest) and with a label a class.

    The paper has embeddings of CIFAR-10 by CLIP, `--set extractor=open_clip:ViT-B-32/openai`, whose weights are
    not with this package; efficientnet-lite0 stands for it. `h` neurons a class (the paper's 3). The paper gives
    no other setting: embeddings are scaled to length sqrt(d) (Assumption 3.2's norm, root mean square), weights
    start at `init`, as in Figure 2 (a, b), and full-batch descent takes steps of `eta`. The nets are looked at
    after each of `T` steps and judged after the last. `points` test images get a robust radius.
    """

    h: int = 3
    eta: float = 1e-2
    init: float = 1e-5
    T: tuple[int, ...] = (10, 30, 100, 300, 1000)
    points: int = 100
    repeats: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_init("init", (self.init,))
        for name in ("h", "eta", "init", "points", "repeats"):
            check_positive(name, (getattr(self, name),))
        check_at_least("T", self.T, 1)
        check_unique("T", self.T)


EXHIBITS = (
    Exhibit(
        id="li2025.fig2cd",
        title="Two labels average frozen features, ten labels decouple them",
        where="Section 6.1, Figure 2 (c, d)",
        claim="a neuron of the 2-label net sees its class's features alike, of the 10-label net one",
        scales={
            "smoke": Embedded(
                dataset="digits", extractor="pixels", train=300, test=100, h=1, T=(5, 60), points=2
            ),
            "laptop": Embedded(size=128, train=1000, test=1000, repeats=3),
            "paper": Embedded(points=500, repeats=3),
        },
    ),
)
