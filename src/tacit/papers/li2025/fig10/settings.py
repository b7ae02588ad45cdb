"""The settings and the entry of `li2025.fig10` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least
from tacit.papers._shared.frozen import Frozen


@dataclass(frozen=True)
class Correlations(Frozen):
    """Figure 10: cos(z_i, z_j) of the embeddings of `each` training images of every class (the paper's 100).

    The paper's extractor is CLIP, as in `li2025.fig2cd`.
    """

    train: int = 1000
    test: int = 100
    each: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("each", (self.each,), 2, "one image alone has no other of its class")


EXHIBITS = (
    Exhibit(
        id="li2025.fig10",
        title="Embeddings of one class lie together",
        where="Appendix E.2, Figure 10",
        claim="embeddings of one class correlate more than those of two, and class means are near orthogonal",
        scales={
            "smoke": Correlations(
                dataset="digits", extractor="pixels", train=300, test=100, each=10
            ),
            "laptop": Correlations(size=128, test=1000),
            "paper": Correlations(),
        },
    ),
)
