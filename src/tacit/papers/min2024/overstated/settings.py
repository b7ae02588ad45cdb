"""The settings and the entry of `min2024.overstated` (torch is not needed here)."""

import math
from dataclasses import dataclass, fields, replace

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_clusters,
    check_positive,
    check_unique,
)
from tacit.papers.min2024.images.settings import Dataset, ImageNets


@dataclass(frozen=True)
class Overstated(ImageNets):
    """Nets of each p on clusters and on images, `repeats` of each, under attacks of every strength.

    Images: the nets of Section 5.2.1, `points` test points in the box [0, 1] at the radii `linf` and `l2`; the
    first `few` of them are given `queries` queries by the Square attack, the first `certified` are certified.

    Clusters: min2024's mixture (`D`, `K`, `K1`, `alpha`), h neurons trained by gradient flow on n points, and
    `cluster_points` test points, all certified, at the l2 radii `radius` and at 1.06 of each net's median radius.
    D is a square number: the Square attack reads a point as an image. `steps` is APGD's; `short` that of the
    cheaper search.

    `mnist`: MNIST beside them, where its images are here; the settings `mnist_...` stand in place of those
    without. At laptop scale it is left out, for it takes minutes more.
    """

    dataset: Dataset = "digits"
    width: int = 100
    batch: int = 100
    points: int = 120
    repeats: int = 5
    linf: tuple[float, ...] = (0.1, 0.15)
    l2: tuple[float, ...] = (0.5, 0.75)
    few: int = 60
    queries: int = 100
    certified: int = 10
    short: int = 20
    D: int = 100
    K: int = 10
    K1: int = 6
    h: int = 200
    n: int = 2000
    alpha: float = 0.01
    radius: tuple[float, ...] = (0.6, 0.75, 0.9)
    cluster_points: int = 150
    mnist: bool = False
    mnist_train: int = 5000
    mnist_width: int = 100
    mnist_batch: int = 100
    mnist_linf: tuple[float, ...] = (0.05, 0.1)
    mnist_l2: tuple[float, ...] = (1.0, 2.0)
    mnist_points: int = 60
    mnist_few: int = 40
    mnist_certified: int = 4
    mnist_repeats: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.p) < 2:
            given = ",".join(f"{p:g}" for p in self.p)
            raise CallError(
                f"p={given}: give at least two values, as in --set p=1,4 (one alone shows no growth)"
            )
        check_at_least(
            "repeats", (self.repeats,), 2, "half of the trainings choose an attack, half judge it"
        )
        for name in ("linf", "l2", "radius"):
            check_at_least(name, (len(getattr(self, name)),), 1, "radii")
            check_positive(name, getattr(self, name))
            check_unique(name, getattr(self, name))
        if self.mnist and self.dataset == "mnist":
            raise CallError("dataset=mnist with mnist=true: one ground twice; --set mnist=false")
        if self.mnist:
            check_positive("mnist_train", (self.mnist_train,))
            self.on_mnist()
        for name in ("few", "queries", "certified", "short", "cluster_points", "alpha"):
            check_positive(name, (getattr(self, name),))
        check_at_least("points", (self.points,), max(self.few, self.certified), "few and certified")
        check_clusters(self.K, self.K1, self.D)
        side = math.isqrt(self.D)
        if side**2 != self.D or side < 2:
            near = max(round(math.sqrt(self.D)), 2) ** 2
            raise CallError(f"D={self.D}: give a square number, as in --set D={near}")
        check_at_least("h", (self.h,), 2 * self.K, "each centre needs neurons of its sign")
        check_at_least("n", (self.n,), 10 * self.K, "each centre needs points")
        check_at_most("alpha", (self.alpha,), 0.3, "as in Figure 2")

    def on_mnist(self) -> "Overstated":
        """The settings of the ground MNIST."""
        names = [f.name for f in fields(self) if hasattr(self, f"mnist_{f.name}")]
        own = {name: getattr(self, f"mnist_{name}") for name in names}
        return replace(self, **own, dataset="mnist", mnist=False)


EXHIBITS = (
    Exhibit(
        id="min2024.overstated",
        title="How far common attacks overstate robustness as p grows",
        where="Figure 2 (e) and Table 1, re-examined",
        claim="the larger p, the more points common attacks leave that stronger ones break",
        scales={
            "smoke": Overstated(
                p=(1.0, 3.0),
                width=20,
                epochs=8,
                batch=200,
                points=8,
                steps=5,
                short=3,
                repeats=2,
                few=3,
                queries=10,
                certified=1,
                D=25,
                K=4,
                K1=2,
                h=40,
                n=200,
                radius=(0.75,),
                cluster_points=8,
            ),
            "laptop": Overstated(),
            "paper": Overstated(
                points=500,
                few=200,
                queries=2000,
                certified=50,
                mnist=True,
                mnist_train=50_000,
                mnist_width=500,
                mnist_batch=1000,
                mnist_points=1000,
                mnist_few=200,
                mnist_certified=50,
                mnist_repeats=5,
                D=900,
                h=2000,
                n=20_000,
                radius=tuple(round(0.05 * k, 2) for k in range(4, 21)),
                cluster_points=500,
            ),
        },
    ),
)
