"""Li, Pan, Lyu & Li 2025: gradient descent averages features, subclass labels decouple them."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.lab.exhibit import Exhibit, Paper
from tacit.papers._checks import check_at_least, check_clusters, check_positive
from tacit.papers.li2025 import _dynamics, _features, _fig3a, _matrices, _story

PAPER = Paper(
    key="li2025",
    title="Feature Averaging: An Implicit Bias of Gradient Descent Leading to Non-Robustness in "
    "Neural Networks",
    authors="Binghui Li, Zhixuan Pan, Kaifeng Lyu and Jian Li",
    year=2025,
    bibtex="""@inproceedings{li2025,
  title     = {Feature Averaging: An Implicit Bias of Gradient Descent Leading to Non-Robustness
               in Neural Networks},
  author    = {Li, Binghui and Pan, Zhixuan and Lyu, Kaifeng and Li, Jian},
  booktitle = {International Conference on Learning Representations},
  year      = {2025}
}""",
)


@dataclass(frozen=True)
class Picture:
    """Figure 1 on a simplex of K clusters in D dimensions, `n` random points for the identity; and
    Figure 4 with `points` points of either class at height `h` above and below a hyperplane of R^`dim`.

    Half of the clusters (rounded up: three of five) are positive.
    """

    D: int = 3072
    K: tuple[int, ...] = (5, 6, 10, 20, 40)
    n: int = 2000
    h: float = 0.05
    points: int = 60
    dim: int = 20

    def __post_init__(self) -> None:
        check_at_least("K", self.K, 3, "a simplex of two clusters is a line")
        check_at_least("K", (max(self.K),), 6, "the caption's claim is tested at some K > 5")
        for K in self.K:
            check_clusters(K, (K + 1) // 2, self.D)
        check_positive("n", (self.n,))
        check_positive("h", (self.h,))
        check_at_least("points", (self.points,), 2)
        check_at_least("dim", (self.dim,), 2, "a line in the plane is the least hyperplane")


@dataclass(frozen=True)
class Biases:
    """Appendix D's nets on orthogonal centres of norm sqrt(D), noise `sigma`: `n` samples, biases
    of f_avg on a grid of `steps` x `steps` from `low` to `high`, in units of D."""

    D: int = 3072
    K: int = 10
    K1: int = 5
    sigma: float = 1.0
    low: float = -0.95
    high: float = 1.5
    steps: int = 15
    n: int = 100_000

    def __post_init__(self) -> None:
        check_clusters(self.K, self.K1, self.D)
        check_at_least("sigma", (self.sigma,), 0, "noise is not negative")
        check_at_least("low", (self.low,), -1, "a bias below -D switches its neuron off for good")
        check_at_least(
            "high", (self.high,), self.low, "it is the end of the grid that starts at low"
        )
        check_at_least("steps", (self.steps,), 2)
        check_positive("n", (self.n,))


@dataclass(frozen=True)
class MultiClass:
    """The multi-class net of Proposition 4.8 on orthogonal centres of norm sqrt(D), for each K (half of
    the clusters positive), with noise `sigma`: `n` clean samples, `attacked` ones with a radius."""

    D: int = 3072
    K: tuple[int, ...] = (4, 6, 10, 16, 32, 64)
    sigma: float = 1.0
    n: int = 100_000
    attacked: int = 1000

    def __post_init__(self) -> None:
        check_at_least("K", self.K, 2, "both classes need a cluster")
        for K in self.K:
            check_clusters(K, K // 2, self.D)
        check_at_least("sigma", (self.sigma,), 0, "noise is not negative")
        check_positive("n", (self.n,))
        check_positive("attacked", (self.attacked,))


EXHIBITS = (
    Exhibit(
        id="li2025.fig1",
        title="Five clusters, two boundaries",
        where="Figures 1 and 4",
        claim="the points are much farther from the boundary of f_FD than from that of f_FA",
        scales={
            "smoke": Picture(D=50, K=(5, 6, 10), n=200, points=12, dim=6),
            "laptop": Picture(),
            "paper": Picture(K=(5, 6, 10, 20, 40, 80, 160), n=20_000, points=200, dim=50),
        },
        code="tacit.papers.li2025.fig1",
    ),
    Exhibit(
        id="li2025.thmD",
        title="No bias makes averaging robust; decoupling is",
        where="Appendix D, Theorems D.1 to D.3",
        claim="f_avg breaks at the order sqrt(d/k) for all accurate biases, f_dec survives sqrt(d)/3",
        scales={
            "smoke": Biases(steps=4, n=2000),
            "laptop": Biases(),
            "paper": Biases(steps=50, n=200_000),
        },
        code="tacit.papers.li2025.thm_d",
    ),
    Exhibit(
        id="li2025.prop4.8",
        title="Subclass labels alone do not make a net robust",
        where="Section 4.2, Proposition 4.8; Appendix D.3",
        claim="a multi-class net with perfect accuracy has a radius of the order sqrt(d/k)",
        scales={
            "smoke": MultiClass(K=(4, 10), n=2000, attacked=200),
            "laptop": MultiClass(),
            "paper": MultiClass(K=(4, 6, 10, 16, 32, 64, 128, 256), n=1_000_000, attacked=20_000),
        },
        code="tacit.papers.li2025.prop4_8",
    ),
    *_matrices.EXHIBITS,
    *_fig3a.EXHIBITS,
    *_dynamics.EXHIBITS,
    *_story.EXHIBITS,
    *_features.EXHIBITS,
)
