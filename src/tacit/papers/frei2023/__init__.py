"""Frei, Vardi, Bartlett & Srebro 2023: gradient flow generalises and is not robust on clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tacit.errors import CallError
from tacit.lab.exhibit import Exhibit, Paper
from tacit.papers._checks import check_at_least, check_clusters, check_positive
from tacit.papers.frei2023 import _beyond, _thm2_1, _trained

PAPER = Paper(
    key="frei2023",
    title="The Double-Edged Sword of Implicit Bias: Generalization vs. Robustness in ReLU Networks",
    authors="Spencer Frei, Gal Vardi, Peter L. Bartlett and Nathan Srebro",
    year=2023,
    bibtex="""@inproceedings{frei2023,
  title     = {The Double-Edged Sword of Implicit Bias: Generalization vs. Robustness in {ReLU}
               Networks},
  author    = {Frei, Spencer and Vardi, Gal and Bartlett, Peter L. and Srebro, Nathan},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2023}
}""",
)

Means = Literal["orthogonal", "sphere"]


@dataclass(frozen=True)
class Reach:
    """Which dimensions and cluster counts Assumption 2.2 admits, and P1 to P6 on sampled data sets.

    The largest K is found at `per_decade` dimensions a decade up to 10^`decades`; with random means,
    over `draws` draws. P1 to P6 are checked on `datasets` data sets for each pair (D, K), with
    n = K ln^2 D points and sigma = 1/sqrt(D) and 1.
    """

    decades: int = 12
    per_decade: int = 2
    draws: int = 20
    D: tuple[int, ...] = (200, 500, 2000)
    K: tuple[int, ...] = (2, 2, 6)
    datasets: int = 20

    def __post_init__(self) -> None:
        check_at_least(
            "decades", (self.decades,), 8, "two clusters and sigma = 1 need d beyond 10^6"
        )
        if self.decades > 14:
            raise CallError(f"decades={self.decades}: at most 14, or K no longer fits into memory")
        check_positive("per_decade", (self.per_decade,))
        check_at_least("draws", (self.draws,), 2, "an interval needs repeats")
        check_dimensions(self.D, self.K)
        check_positive("datasets", (self.datasets,))


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


@dataclass(frozen=True)
class Robust:
    """The constructed net for settings (D, K, sigma, means), K/2 clusters positive; sigma = 0 stands for
    1/sqrt(D). `small` dimensions show where "sufficiently large d" begins, at sigma = 1. `n` samples each."""

    D: tuple[int, ...] = (2000, 12_424, 3_000_000, 2000, 2000, 2000)
    K: tuple[int, ...] = (6, 32, 2, 6, 20, 10)
    sigma: tuple[float, ...] = (0.0, 0.0, 1.0, 1.0, 1.0, 1.0)
    means: tuple[Means, ...] = (*("orthogonal",) * 5, "sphere")
    small: tuple[int, ...] = (16, 25, 36, 50, 70, 100, 140, 200)
    n: int = 100_000

    def __post_init__(self) -> None:
        lengths = {len(self.D), len(self.K), len(self.sigma), len(self.means)}
        if len(lengths) != 1:
            raise CallError(
                "D, K, sigma and means describe settings together: give as many of each"
            )
        check_dimensions(self.D, self.K)
        check_at_least("sigma", self.sigma, 0, "noise is not negative; 0 stands for 1/sqrt(D)")
        check_at_least("small", self.small, 4)
        check_positive("n", (self.n,))


@dataclass(frozen=True)
class Neighbour:
    """1-NN against averaging over dimensions D at K clusters, sigma = 1/sqrt(D): K ln^2 D training points
    (at most `most`), `tests` test points with exact radii; and over the `clusters` in `at` dimensions."""

    D: tuple[int, ...] = (250, 500, 1000, 2000, 4000)
    K: int = 6
    clusters: tuple[int, ...] = (2, 4, 8, 16, 32)
    at: int = 2000
    most: int = 600
    tests: int = 40

    def __post_init__(self) -> None:
        if len(set(self.D)) < 3:
            raise CallError(
                f"D={','.join(map(str, self.D))}: an exponent needs three dimensions or more"
            )
        check_dimensions(self.D, (self.K,) * len(self.D))
        check_dimensions((self.at,) * len(self.clusters), self.clusters)
        largest = max(self.K, *self.clusters)
        check_at_least("most", (self.most,), 4 * largest, "every cluster needs training points")
        check_at_least("tests", (self.tests,), 10)


def check_dimensions(D: tuple[int, ...], K: tuple[int, ...]) -> None:
    """D and K pair up, both classes have a cluster, and the means fit into the dimension."""
    if len(D) != len(K):
        raise CallError(f"D has {len(D)} values and K {len(K)}: they pair up")
    check_at_least("K", K, 2, "both classes need a cluster")
    for d, k in zip(D, K, strict=True):
        check_clusters(k, k // 2, d)


EXHIBITS = (
    Exhibit(
        id="frei2023.assumption",
        title="Who satisfies Assumption 2.2",
        where="Section 2, Assumption 2.2 and Example 1; Appendix A.1",
        claim="the assumption admits k of order sqrt(d) (random means) or d (orthogonal, small noise)",
        scales={
            "smoke": Reach(per_decade=1, draws=3, D=(100,), K=(2,), datasets=3),
            "laptop": Reach(),
            "paper": Reach(decades=14, per_decade=4, D=(200, 500, 2000, 12_424), K=(2, 2, 6, 32)),
        },
        code="tacit.papers.frei2023.assumption",
    ),
    Exhibit(
        id="frei2023.lemma2.1",
        title="The clusters are linearly separable",
        where="Section 2, Lemma 2.1; Appendix B",
        claim="u = sum_q y_q mu_q classifies but for a probability of 2 d^(1 - ln(d)/2)",
        scales={
            "smoke": Separator(D=64, K=(4, 64), sigma=(1.0,), n=2000, inside=(1000, 2000)),
            "laptop": Separator(),
            "paper": Separator(D=1000, K=(4, 16, 64, 250, 1000), n=500_000),
        },
        code="tacit.papers.frei2023.lemma2_1",
    ),
    Exhibit(
        id="frei2023.thm4.1",
        title="A robust net exists",
        where="Section 4, Theorem 4.1; Appendix C",
        claim="w = 4 mu/d, b = -2, v = y has margin 1 and survives sqrt(d)/8",
        scales={
            "smoke": Robust(
                D=(2000, 2000, 200),
                K=(6, 6, 4),
                sigma=(0.0, 1.0, 1.0),
                means=("orthogonal", "orthogonal", "sphere"),
                small=(25, 100),
                n=1000,
            ),
            "laptop": Robust(),
            "paper": Robust(n=1_000_000),
        },
        code="tacit.papers.frei2023.thm4_1",
    ),
    Exhibit(
        id="frei2023.nn1",
        title="The nearest neighbour is more robust than averaging",
        where="Section 4, the remark on 1-nearest-neighbour",
        claim="1-NN needs a perturbation of order sqrt(d), a net that averages a much smaller one",
        scales={
            "smoke": Neighbour(D=(50, 100, 200), K=4, clusters=(2, 4), at=100, tests=10),
            "laptop": Neighbour(),
            "paper": Neighbour(D=(500, 1000, 2000, 4000, 8000, 16_000), K=10, most=5000, tests=200),
        },
        code="tacit.papers.frei2023.nn1",
    ),
    *_thm2_1.EXHIBITS,
    *_trained.EXHIBITS,
    *_beyond.EXHIBITS,
)
