"""The settings and the entry of `min2025.transition` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_clusters,
    check_pairs,
    check_positive,
    check_unique,
)


@dataclass(frozen=True)
class Transition:
    """The phase diagram p x init at alpha = 0, n = K weighted points in K dimensions, and cuts through it.

    `init` is the sd of the Gaussian weights of the first layer, |v| = ||w||. Counts are equal, or drawn: `n`
    points fall into the clusters at random. `rounds` halvings locate each boundary between two p of the diagram.
    Beside it: `starts` more starts at `share_p` and `cut_init`; other K and K1, `clusters` and `positives` (width
    `more_h`), at `cut_p` and `cut_init`; where centres begin with noise `alpha` (`noisy_sets` sets of `noisy_n`
    points in `noisy_dim` dimensions, width `noisy_h`, `noisy_rounds` halvings of [2, 4]) from `noisy_init`; and
    the time that fitting takes at `fit_p` in `fit_dims` dimensions.
    """

    K: int = 6
    K1: int = 3
    h: int = 128
    n: int = 300
    p: tuple[float, ...] = (1.0, 1.3, 1.5, 1.7, 1.9, 2.0, 2.1, 2.2, 2.4, 3.0, 4.0)
    init: tuple[float, ...] = (1.0, 1e-3, 1e-7, 1e-30, 1e-70)
    repeats: int = 4
    rounds: int = 4
    starts: int = 50
    share_p: tuple[float, ...] = (1.0, 2.1, 3.0)
    cut_p: tuple[float, ...] = (1.0, 1.3, 1.6, 1.8, 1.9, 2.0, 2.1, 2.2, 2.5, 3.0)
    cut_init: float = 1e-7
    clusters: tuple[int, ...] = (4, 10)
    positives: tuple[int, ...] = (2, 6)
    more_h: int = 300
    alpha: tuple[float, ...] = (0.1,)
    noisy_sets: int = 4
    noisy_init: tuple[float, ...] = (1e-7, 1e-30, 1e-70)
    noisy_dim: int = 24
    noisy_n: int = 240
    noisy_h: int = 64
    noisy_rounds: int = 5
    fit_p: tuple[float, ...] = (2.1, 3.0, 6.0, 12.0)
    fit_dims: tuple[int, ...] = (10, 100, 1000)
    fit_init: float = 1e-7

    def __post_init__(self) -> None:
        check_pairs(
            (self.K, *self.clusters),
            (self.K1, *self.positives),
            min(max(self.clusters), *self.fit_dims),
        )
        check_clusters(self.K, self.K1, self.noisy_dim)
        for name in ("p", "cut_p", "share_p"):
            check_at_least(name, getattr(self, name), 1)
        check_at_least("fit_p", self.fit_p, 2, "below 2 neurons never turn slowly")
        inits = (*self.init, *self.noisy_init, self.cut_init, self.fit_init)
        check_at_most("init", inits, 1)
        check_at_least("init", inits, 1e-100, "none smaller was tried")
        check_positive("alpha", self.alpha)
        swept = ("init", "cut_p", "share_p", "noisy_init", "clusters", "alpha", "fit_p", "fit_dims")
        for name in ("p", *swept):
            check_unique(name, getattr(self, name))
        check_at_least("noisy_n", (self.noisy_n,), self.K, "every cluster needs a point")
        check_at_least("n", (self.n,), self.K, "every cluster needs a point")
        sizes = ("repeats", "rounds", "starts", "more_h", "noisy_sets", "noisy_h", "noisy_rounds")
        for name in ("h", *sizes):
            check_at_least(name, (getattr(self, name),), 1)


SMOKE = Transition(
    K=4, K1=2, h=24, p=(1.0, 2.0, 3.0), init=(1e-2, 1e-5), repeats=1, rounds=1, starts=2, share_p=(1.0, 3.0),
    cut_p=(1.0, 3.0), cut_init=1e-3, clusters=(5,), positives=(3,), more_h=24, noisy_sets=1, noisy_init=(1e-3,),
    noisy_rounds=1, noisy_dim=8, noisy_n=16, noisy_h=24, fit_p=(3.0, 6.0), fit_dims=(10,), fit_init=1e-3,
)  # fmt: skip
PAPER = Transition(
    h=400, more_h=1000, init=(1.0, 0.1, 1e-3, 1e-7, 1e-15, 1e-30, 1e-70), alpha=(0.1, 0.3),
    noisy_dim=100, noisy_n=300, noisy_h=200, fit_p=(2.1, 2.5, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0),
)  # fmt: skip

EXHIBITS = (
    Exhibit(
        id="min2025.transition",
        title="Average, centres or a mixture: the phase diagram over p and the size of the init",
        where="Beyond the poster: Observations, and Conjecture 1 of min2024",
        claim="without noise both boundaries meet at p = 2 as the init shrinks; with noise centres begin later",
        scales={"smoke": SMOKE, "laptop": Transition(), "paper": PAPER},
    ),
)
