"""The settings and the entry of `frei2023.thm3.1` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_clusters,
    check_init,
    check_positive,
    check_unique,
)


@dataclass(frozen=True)
class Generalise:
    """Test error of trained nets: `K` clusters, n = k ln^2 d, for each `sigma`; varied one at a time are the
    `widths`, the `inits` (0: NTK-like) at `h` neurons, and the loss. Every one of the `repeats` nets has data of
    its own and `tests` fresh points. D and K are such that a few dozen nets can decide the theorem's probability.

    The sample complexity is measured with `clusters` clusters in `at` dimensions, at n = `share` times k ln^2 d,
    over `draws` data sets for each sigma.
    """

    D: int = 200
    K: int = 6
    sigma: tuple[float, ...] = (1e-3, 1.0)
    widths: tuple[int, ...] = (4, 10, 100, 1000)
    inits: tuple[float, ...] = (1e-6, 1e-3, 0.0)
    h: int = 100
    log_loss: float = -50.0
    tests: int = 50_000
    clusters: int = 20
    at: int = 500
    share: tuple[float, ...] = (0.013, 0.026, 0.05, 0.1)
    draws: int = 10
    repeats: int = 5

    def __post_init__(self) -> None:
        check_clusters(self.K, self.K // 2, self.D)
        check_clusters(self.clusters, self.clusters // 2, self.at, names=("clusters", "K1", "at"))
        for name in ("sigma", "widths", "inits", "share"):
            check_unique(name, getattr(self, name))
        check_positive("sigma", self.sigma)
        check_at_least("widths", (*self.widths, self.h), 2, "one neuron of each sign")
        check_at_least("inits", self.inits, 0, "a standard deviation; 0 stands for NTK-like")
        check_init("inits", [init for init in self.inits if init])
        check_at_most("log_loss", (self.log_loss,), -15, "every point must be fitted")
        check_positive("share", self.share)
        check_at_most("share", self.share, 1, "k ln^2 d itself")
        for name in ("tests", "draws", "repeats"):
            check_at_least(name, (getattr(self, name),), 1)


EXHIBITS = (
    Exhibit(
        id="frei2023.thm3.1",
        title="Trained nets generalise, whatever their width",
        where="Section 3, Theorem 3.1; Appendix A",
        claim="n = k ln^2 d points suffice at every width: the test error is at most 4 n d^(-ln(d)/2)",
        scales={
            "smoke": Generalise(
                D=60,
                K=4,
                sigma=(1e-3,),
                widths=(50,),
                inits=(1e-6, 0.0),
                h=50,
                log_loss=-15.0,
                tests=2000,
                clusters=6,
                at=60,
                share=(0.05,),
                draws=1,
                repeats=1,
            ),
            "laptop": Generalise(),
            "paper": Generalise(
                D=250,
                K=10,
                widths=(4, 10, 100, 1000, 4000),
                inits=(1e-6, 1e-4, 1e-3, 1e-2, 0.0),
                clusters=32,
                at=2000,
                log_loss=-300.0,
                tests=1_000_000,
                draws=40,
                repeats=20,
            ),
        },
    ),
)
