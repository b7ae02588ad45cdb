"""The settings and the entry of `frei2023.lemma2.1` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive
from tacit.papers.frei2023._shared.settings import check_dimensions


@dataclass(frozen=True)
class Separator:
    """sign(u'x) outside Assumption 2.2: every K with every sigma in D dimensions, `n` samples each;
    inside it: the largest K for each of `inside`, sigma = 1/sqrt(d)."""

    D: int = 100
    K: tuple[int, ...] = (4, 16, 50, 100)
    sigma: tuple[float, ...] = (0.5, 1.0, 2.0)
    n: int = 100_000
    inside: tuple[int, ...] = (1000, 2000, 5000, 12_424)

    def __post_init__(self) -> None:
        check_dimensions((self.D,) * len(self.K), self.K)
        check_positive("sigma", self.sigma)
        check_positive("n", (self.n,))
        check_at_least("inside", self.inside, 549, "the least d at which two clusters are admitted")


EXHIBITS = (
    Exhibit(
        id="frei2023.lemma2.1",
        title="The clusters are linearly separable",
        where="Section 2, Lemma 2.1; Section 4.1.2; Appendix B",
        claim="u = sum_q y_q mu_q classifies but for a probability of 2 d^(1 - ln(d)/2)",
        scales={
            "smoke": Separator(D=64, K=(4, 64), sigma=(1.0,), n=2000, inside=(1000, 2000)),
            "laptop": Separator(),
            "paper": Separator(D=1000, K=(4, 16, 64, 250, 1000), n=500_000),
        },
    ),
)
