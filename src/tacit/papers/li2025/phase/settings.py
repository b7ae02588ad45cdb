"""The settings and the entry of `li2025.phase` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_clusters,
    check_init,
    check_positive,
    check_unique,
)


@dataclass(frozen=True)
class Phase:
    """A net for each power `p`, noise `sigma`, number of `labels` and training.

    k clusters in d dimensions, half of them positive, centres of norm sqrt(d), noise of standard deviation
    `sigma`; n training points, `points` test points for each of `trainings` data sets. A label stands for
    k / labels clusters of one class: 2 are the classes, k the clusters. The net has `neurons` hidden neurons, as
    many for each label, and first weights of standard deviation `init`/sqrt(d). Training is gradient descent: in
    the first half of T steps their size grows geometrically up to `eta`, in the second half it is that (`nets`).
    """

    d: int = 64
    k: int = 8
    n: int = 800
    points: int = 5
    p: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    sigma: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0)
    labels: tuple[int, ...] = (2, 4, 8)
    neurons: int = 40
    init: float = 1e-5
    eta: float = 4.0
    T: int = 400
    trainings: int = 6  # the fewest of which all can show a share of a half

    def __post_init__(self) -> None:
        check_init("init", (self.init,))
        check_clusters(self.k, self.k // 2, self.d, names=("k", "k/2", "d"))
        if self.k % 2:
            raise CallError(f"k={self.k}: half of the clusters are positive; take an even k")
        for labels in self.labels:
            if labels < 2 or labels % 2 or self.k % labels:
                raise CallError(
                    f"labels={labels}: an even number that divides k={self.k} is needed, so that each label "
                    "stands for as many clusters of one class"
                )
            if self.neurons % labels:
                raise CallError(
                    f"neurons={self.neurons}: each of {labels} labels has as many; take a multiple of {labels}"
                )
        check_at_least("p", self.p, 1, "p = 1 is ReLU")
        check_at_least("n", (self.n,), 2 * self.k, "two points for each cluster")
        for name in ("p", "sigma", "labels"):
            check_at_least(f"the number of values of {name}", (len(getattr(self, name)),), 1)
            check_unique(name, getattr(self, name))
        check_positive("sigma", self.sigma)
        for name in ("init", "eta"):
            check_positive(name, (getattr(self, name),))
        check_at_least("T", (self.T,), 2)
        for name in ("points", "trainings"):
            check_at_least(name, (getattr(self, name),), 1)


EXHIBITS = (
    Exhibit(
        id="li2025.phase",
        title="A phase diagram: power, noise and labels",
        where="Sections 4 and 6.1 (beyond the paper)",
        claim="k labels reach the centres' radius at every power; without them, a power above 2 does",
        scales={
            "smoke": Phase(
                d=24, k=4, n=80, points=2, p=(1.0, 3.0), sigma=(0.25,), labels=(2, 4), neurons=8, T=40,
                trainings=2,
            ),
            "laptop": Phase(),
            "paper": Phase(
                d=3072, n=4000, points=20, p=(1.0, 1.5, 2.0, 2.5, 3.0, 4.0),
                sigma=(0.25, 1.0, 2.0, 4.0, 8.0, 14.0), T=2000,
            ),
        },
    ),
)  # fmt: skip
