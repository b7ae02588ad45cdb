"""The settings and the entry of `li2025.story` (without torch)."""

from dataclasses import dataclass
from typing import Literal

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_clusters,
    check_cosine,
    check_init,
    check_positive,
)


@dataclass(frozen=True)
class Story:
    """Data sets, and every classifier on each.

    k clusters (the first k1 positive) in d dimensions, centres of norm sqrt(d) with one pairwise `cosine`;
    relative `weights` (none: equal); `noise` of standard deviation `sigma`; n training points, `points` test
    points, `few` of them for classifiers whose radii take long. The nets with 2 labels have 2m neurons, the one
    with k labels h a subclass; `init` is their first standard deviation; T steps of size `eta`. `attack`: radius
    of adversarial training, in sqrt(d/2); `added`: standard deviation of noise added to training points; `width`:
    neurons of the PolyReLU net of power p.

    Adversarial training has 2 * `wide` neurons: with the paper's m = 5 it leaves some clusters without any. It is
    done on `hardened` data sets, the PolyReLU net is trained on `trainings` of them, all else on `repeats`.
    """

    d: int = 1024
    k: int = 10
    k1: int = 5
    weights: tuple[float, ...] = ()
    noise: Literal["gaussian", "uniform", "laplace", "student"] = "gaussian"
    sigma: float = 1.0
    cosine: float = 0.0
    n: int = 1000
    points: int = 200
    few: int = 40
    m: int = 5
    wide: int = 20
    h: int = 1
    init: float = 1e-5
    eta: float = 1e-3
    T: int = 300
    attack: float = 0.5
    added: float = 1.0
    p: float = 3.0
    width: int = 400
    repeats: int = 5
    trainings: int = 8
    hardened: int = 3

    def __post_init__(self) -> None:
        check_init("init", (self.init,))
        check_clusters(self.k, self.k1, self.d, names=("k", "k1", "d"))
        if self.weights and len(self.weights) != self.k:
            raise CallError(
                f"weights has {len(self.weights)} values: k={self.k} clusters need one each"
            )
        for name in ("weights", "sigma", "init", "eta"):
            values = getattr(self, name)
            check_positive(name, values if isinstance(values, tuple) else (values,))
        check_cosine(self.cosine, self.k)
        check_at_least("n", (self.n,), 2)
        for name in ("points", "few", "m", "wide", "h", "T", "repeats", "trainings", "hardened"):
            check_at_least(name, (getattr(self, name),), 1)
        check_at_least("width", (self.width,), 2, "each sign needs a neuron")
        for name in ("attack", "added"):
            check_at_least(name, (getattr(self, name),), 0)
        check_at_least("p", (self.p,), 2, "below 2 opposite neurons rise together")


EXHIBITS = (
    Exhibit(
        id="li2025.story",
        title="Ten classifiers on the same data",
        where="Sections 4 and 6.2",
        claim="2 labels leave the radius at sqrt(d/k), k labels bring it near sqrt(d/2); what else does?",
        scales={
            "smoke": Story(
                d=60, k=4, k1=2, n=80, points=6, m=4, wide=4, T=40, eta=0.01, width=30, sigma=0.5, repeats=2,
                trainings=3, hardened=2,
            ),
            "laptop": Story(),
            "paper": Story(
                d=3072, T=100, points=500, few=200, width=2000, trainings=20, hardened=5
            ),
        },
    ),
)  # fmt: skip
