"""Min & Vidal 2024: neurons that learn class averages, and an activation that learns the centres."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.lab.exhibit import Exhibit, Paper
from tacit.papers._checks import (
    check_at_least,
    check_at_most,
    check_clusters,
    check_pairs,
    check_positive,
    check_unique,
)
from tacit.papers.min2024 import _alg1, _alignment, _features, _fig1, _fig2, _images, _strict

PAPER = Paper(
    key="min2024",
    title="Can Implicit Bias Imply Adversarial Robustness?",
    authors="Hancheng Min and René Vidal",
    year=2024,
    bibtex="""@inproceedings{min2024,
  title     = {Can Implicit Bias Imply Adversarial Robustness?},
  author    = {Min, Hancheng and Vidal, Ren{\\'e}},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}""",
)


@dataclass(frozen=True)
class Realize:
    """`splits` random ways to spread F and F^(p) over h neurons, compared at n points."""

    D: int = 50
    K: int = 10
    K1: int = 6
    h: int = 60
    p: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 4.0)
    splits: int = 20
    n: int = 2000

    def __post_init__(self) -> None:
        check_clusters(self.K, self.K1, self.D)
        check_at_least("p", self.p, 1, "p = 1 is ReLU")
        check_unique("p", self.p)
        check_at_least("h", (self.h,), self.K, "each of the K centres needs a neuron")
        check_positive("splits", (self.splits,))
        check_positive("n", (self.n,))


@dataclass(frozen=True)
class Bounds:
    """A sweep of clean or robust probabilities against a bound with an unnamed constant.

    Everything depends on noise and dimension through alpha^2/D alone, so the sweep is over
    ratio = D / (alpha^2 K): 1..30 is where failures can be seen. `alpha` and `D` are the setting of the
    critical radii. `rho` and `delta` are the theorems' own; `n` samples a setting.
    """

    K: tuple[int, ...] = (2, 4, 10)
    K1: tuple[int, ...] = (1, 2, 6)
    ratio: tuple[float, ...] = (2.0, 20.0)
    p: tuple[float, ...] = (2.0, 3.0)
    rho: tuple[float, ...] = (0.25, 0.5, 1.0)
    delta: tuple[float, ...] = (0.2, 0.5, 1.0)
    n: int = 100_000
    D: int = 1000
    alpha: float = 0.1

    def __post_init__(self) -> None:
        check_pairs(self.K, self.K1, self.D)
        check_positive("ratio", self.ratio)
        check_at_least("p", self.p, 1, "p = 1 is ReLU")
        check_at_least("rho", self.rho, 0)
        check_at_least("delta", self.delta, 0)
        for name in ("K", "ratio", "p", "rho", "delta"):
            check_unique(name, getattr(self, name))
        check_positive("n", (self.n,))
        check_at_most("n", (self.n,), 1e9)
        check_at_least("alpha", (self.alpha,), 0, "noise is not negative")


@dataclass(frozen=True)
class Attacked(Bounds):
    """As `Bounds`, for Theorem 1: p >= 2, delta <= sqrt(2)."""

    delta: tuple[float, ...] = (0.2, 0.5, 1.0, 1.2)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("p", self.p, 2, "the theorem's radius sqrt(2)/2 is for p >= 2")
        check_at_most("delta", self.delta, math.sqrt(2), "the radius is (sqrt(2) - delta)/2")


@dataclass(frozen=True)
class Critical(Bounds):
    """As `Bounds`, for Theorem 3: p >= 2, rho <= 1."""

    p: tuple[float, ...] = (3.0,)
    delta: tuple[float, ...] = (0.2, 0.5, 1.0, 2.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("p", self.p, 2, "the theorem's radius sqrt(2)/2 is for p >= 2")
        check_at_most("rho", self.rho, 1, "the radius is (1 - rho)/sqrt(K)")


@dataclass(frozen=True)
class Field:
    """Directions of w in the quarter plane between the two centres, and the activations shown."""

    angles: int = 181
    p: tuple[float, ...] = (1.0, 2.0, 3.0)

    def __post_init__(self) -> None:
        check_at_least("angles", (self.angles,), 5)
        check_at_least("p", self.p, 1, "p = 1 is ReLU")
        check_unique("p", self.p)


WIDE_K, WIDE_K1 = (2, 4, 10, 20, 40), (1, 2, 6, 8, 20)

EXHIBITS = (
    Exhibit(
        id="min2024.claim",
        title="F and F^(p) are PolyReLU networks, in many ways",
        where="Section 3, Claim and Remark 1",
        claim="f_p equals F (p = 1) and F^(p) for every split of the neurons, rescaling, permutation",
        scales={
            "smoke": Realize(D=20, h=20, splits=3, n=200),
            "laptop": Realize(),
            "paper": Realize(D=1000, h=2000, splits=20, n=2000),
        },
        code="tacit.papers.min2024.claim",
    ),
    Exhibit(
        id="min2024.prop1",
        title="Both classifiers generalise",
        where="Section 3, Proposition 1",
        claim="F and F^(p) classify clean samples but for an exponentially small probability",
        scales={
            "smoke": Bounds(K=(4,), K1=(2,), ratio=(1.0, 3.0), p=(1.0, 3.0), n=2000),
            "laptop": Bounds(ratio=(1.0, 3.0, 10.0, 30.0), p=(1.0, 2.0, 3.0, 4.0), n=200_000),
            "paper": Bounds(
                WIDE_K, WIDE_K1, (1.0, 2.0, 3.0, 5.0, 10.0, 30.0), (1.0, 2.0, 3.0, 4.0), n=2_000_000
            ),
        },
        code="tacit.papers.min2024.prop1",
    ),
    Exhibit(
        id="min2024.thm1",
        title="F breaks at 1/sqrt(K), F^(p) survives to sqrt(2)/2",
        where="Section 3, Theorem 1",
        claim="one direction breaks F at radius 1/sqrt(K); nothing breaks F^(p), p >= 2, below sqrt(2)/2",
        scales={
            "smoke": Attacked(K=(2,), K1=(1,), ratio=(1.0, 20.0), p=(3.0,), n=1000),
            "laptop": Attacked(),
            "paper": Attacked(
                WIDE_K, WIDE_K1, (1.0, 2.0, 3.0, 5.0, 10.0, 30.0), (2.0, 3.0, 4.0), n=200_000
            ),
        },
        code="tacit.papers.min2024.thm1",
    ),
    Exhibit(
        id="min2024.thm3",
        title="The two radii are critical",
        where="Appendix C.4, Theorem 3",
        claim="nothing breaks F below 1/sqrt(K), and F^(p) breaks above sqrt(2)/2",
        scales={
            "smoke": Critical(K=(2,), K1=(1,), ratio=(1.0, 20.0), p=(3.0,), n=1000),
            "laptop": Critical(),
            "paper": Critical(
                WIDE_K, WIDE_K1, (1.0, 2.0, 3.0, 5.0, 10.0, 30.0), (2.0, 3.0, 4.0), n=200_000
            ),
        },
        code="tacit.papers.min2024.thm3",
    ),
    Exhibit(
        id="min2024.fig7",
        title="What turns a neuron: x^(p)(w) in the plane",
        where="Appendix D.1, Figure 7",
        claim="x^(p)(w) points at the average (p = 1), along w (p = 2), towards the closer centre (p = 3)",
        scales={"smoke": Field(angles=19), "laptop": Field(), "paper": Field(angles=1801)},
        code="tacit.papers.min2024.fig7",
    ),
    *_fig1.EXHIBITS,
    *_fig2.EXHIBITS,
    *_alg1.EXHIBITS,
    *_alignment.EXHIBITS,
    *_images.EXHIBITS,
    *_features.EXHIBITS,
    *_strict.EXHIBITS,
)
