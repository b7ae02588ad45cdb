"""The settings and the entry of `frei2023.thm2.1` (without torch)."""

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

LOSSES = ("exp", "logistic")


@dataclass(frozen=True)
class Direction:
    """Flows on n = k ln^2 d points for every `sigma`, loss and `init`, and the KKT point that they approach.

    K/2 clusters of D-dimensional points are positive. A flow of `h` neurons goes to each of the `depths` (minus
    the log-loss) in turn; then the neurons of each sign are united, and the two are followed to the `deep` ones.
    Also, `repeats` times each: `widths` from the first init, to `shallow`, gradient descent, to `early`, and the
    multipliers where Assumption 2.2 holds: as many clusters as it admits in `inside` dimensions with
    sigma = 1/sqrt(d). And, once: the inits `large` (0: NTK-like, w and b of sd 1/sqrt(d), v of sd 1/sqrt(h)), to
    `shallow`; flows of `few` neurons and both losses in which nothing is merged, for the smoothed margin, to
    `early`; and `small` data sets of ten points in three dimensions, for the global optimum, with flows of
    `looks` looks at the data.
    """

    D: int = 500
    K: int = 10
    h: int = 100
    sigma: tuple[float, ...] = (1.0, 0.1)
    loss: tuple[str, ...] = ("logistic",)
    init: tuple[float, ...] = (1e-6, 1e-3)
    depths: tuple[float, ...] = (30.0, 100.0, 300.0)
    deep: tuple[float, ...] = (1000.0,)
    widths: tuple[int, ...] = (4, 4000)
    large: tuple[float, ...] = (0.01, 0.0)
    shallow: float = 400.0
    few: int = 20
    early: float = 60.0
    small: int = 12
    looks: int = 1000
    inside: int = 2000
    repeats: int = 6

    def __post_init__(self) -> None:
        check_init("init", self.init)
        check_clusters(self.K, self.K // 2, self.D)
        check_at_least("D", (self.D,), 3)
        for name in ("sigma", "init", "depths", "deep", "early", "shallow"):
            values = getattr(self, name)
            check_positive(name, values if isinstance(values, tuple) else (values,))
        check_at_least("large", self.large, 0, "0 stands for an NTK-like start")
        check_at_least("widths", self.widths, 2, "each sign needs a neuron")
        for name in ("h", "few"):
            check_at_least(name, (getattr(self, name),), 2, "each sign needs a neuron")
        for name in ("small", "repeats"):
            check_at_least(name, (getattr(self, name),), 1)
        check_at_least("looks", (self.looks,), 2)
        check_at_least(
            "inside", (self.inside,), 549, "the least d at which two clusters are admitted"
        )
        for name in ("sigma", "loss", "init", "depths", "deep", "widths", "large"):
            values = getattr(self, name)
            check_unique(name, values)
            if not values:
                raise CallError(f"{name}: give at least one value")
        unknown = [name for name in self.loss if name not in LOSSES]
        if unknown:
            raise CallError(f"loss={','.join(unknown)}: choose from {', '.join(LOSSES)}")
        for name in ("depths", "deep"):
            values = getattr(self, name)
            if list(values) != sorted(values):
                raise CallError(f"{name}={','.join(map(str, values))}: from small to large")


EXHIBITS = (
    Exhibit(
        id="frei2023.thm2.1",
        title="The flow ends at a KKT point, and here it is",
        where="Section 2, Theorem 2.1 (Lyu & Li 2020; Ji & Telgarsky 2020)",
        claim="gradient flow converges in direction to a KKT point of the maximum-margin problem",
        scales={
            "smoke": Direction(
                D=20,
                K=2,
                h=12,
                sigma=(0.3,),
                loss=("logistic",),
                init=(1e-3,),
                depths=(5.0, 12.0),
                deep=(25.0,),
                widths=(8, 20),
                large=(0.0,),
                shallow=12.0,
                few=4,
                early=6.0,
                small=2,
                looks=60,
                inside=549,
                repeats=2,
            ),
            "laptop": Direction(),
            "paper": Direction(
                loss=LOSSES,
                widths=(4, 20, 100, 500, 4000),
                large=(0.003, 0.01, 0.03, 0.0),
                shallow=3200.0,
                init=(1e-6, 1e-4, 1e-3),
                depths=(30.0, 100.0, 300.0, 1000.0, 3200.0, 6400.0),
                deep=(1000.0, 4000.0, 10_000.0),
                small=40,
            ),
        },
    ),
)
