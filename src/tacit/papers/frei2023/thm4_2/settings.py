"""The settings and the entry of `frei2023.thm4.2` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_clusters,
    check_init,
    check_positive,
    check_unique,
)

NETS = ("flow", "again", "logistic", "narrow", "wide", "GD", "Adam", "NTK-like")


@dataclass(frozen=True)
class Flipped:
    """Nets trained by the flow on n = k ln^2 d points, and how far each test point moves along z to be flipped.

    Over the clusters `K` in `D` dimensions, for each `sigma`; over `dims` dimensions with `few` clusters; over
    `inits` and noise levels `noise`, and over the number of `positive` clusters of `many`, in `at` dimensions;
    and with random means, k = sqrt(d), in `random` dimensions (Example 2). Weights start Gaussian of standard
    deviation `init`, except over `inits`, where 0 stands for an NTK-like start (w and b of sd 1/sqrt(d), v of
    sd 1/sqrt(h)), and are followed to `log_loss`. `h` neurons, `tests` test points a net. Transfer is measured
    in `transfer` dimensions between `nets`: two of the flow, one with the logistic loss, one with h/10 neurons
    and one with 10 h, GD, Adam, and an NTK-like start. That and the random means are drawn
    `draws` times, all else `repeats` times.
    """

    K: tuple[int, ...] = (2, 4, 8, 16, 32)
    D: int = 2000
    sigma: tuple[float, ...] = (1e-3, 1.0)
    dims: tuple[int, ...] = (250, 500, 1000, 2000)
    at: int = 500
    few: int = 8
    many: int = 16
    positive: tuple[int, ...] = (2, 4, 8)
    random: tuple[int, ...] = (144, 256, 576, 1024)
    noise: tuple[float, ...] = (0.0, 1e-3, 0.03, 0.3, 1.0)
    inits: tuple[float, ...] = (1e-6, 1e-4, 1e-3, 1e-2, 0.0)
    init: float = 1e-6
    log_loss: float = -50.0
    h: int = 50
    tests: int = 4000
    transfer: int = 500
    nets: tuple[str, ...] = NETS
    draws: int = 6
    repeats: int = 4

    def __post_init__(self) -> None:
        for key, K, name, D in (
            *(("K", K, "D", self.D) for K in self.K),
            ("many", self.many, "at", self.at),
            *(("few", self.few, "dims", D) for D in self.dims),
            ("few", self.few, "at", self.at),
            ("few", self.few, "transfer", self.transfer),
        ):
            check_clusters(K, K // 2, D, names=(key, "positive", name))
        for name in ("K", "sigma", "dims", "positive", "random", "noise", "inits", "nets"):
            check_unique(name, getattr(self, name))
        for name in ("K", "dims", "random"):
            if len(getattr(self, name)) < 2:
                raise CallError(f"{name}={getattr(self, name)[0]}: an exponent needs two values")
        unknown = [name for name in self.nets if name not in NETS]
        if unknown or len(self.nets) < 2:
            raise CallError(
                f"nets={','.join(unknown or self.nets)}: choose two or more of {', '.join(NETS)}"
            )
        check_positive("sigma", self.sigma)
        check_at_least("noise", self.noise, 0, "a standard deviation")
        check_at_least("inits", self.inits, 0, "a standard deviation; 0 stands for NTK-like")
        check_init("inits", [init for init in self.inits if init])
        check_init("init", (self.init,))
        check_at_most("init", (self.init,), 1e-3, "a small start; larger ones belong to inits")
        check_at_least("positive", self.positive, 1)
        check_at_most("positive", self.positive, self.many - 1, "a negative cluster is needed")
        check_at_least("random", self.random, 16, "k = sqrt(d) clusters")
        check_at_most("log_loss", (self.log_loss,), -15, "every point must be fitted")
        check_at_least("h", (self.h,), 4)
        check_at_least("tests", (self.tests,), 20)
        for name in ("draws", "repeats"):
            check_at_least(name, (getattr(self, name),), 1)


EXHIBITS = (
    Exhibit(
        id="frei2023.thm4.2",
        title="One small perturbation flips every trained net",
        where="Section 4, Theorem 4.2 and Example 2; Appendix D",
        claim="z = eta sum_q y_q mu_q of length O(sqrt(d/(c^2 k))) flips almost every test point of every net",
        scales={
            "smoke": Flipped(
                K=(2, 4),
                D=60,
                sigma=(1e-3,),
                dims=(40, 60),
                at=60,
                few=4,
                many=4,
                positive=(2,),
                random=(25, 36),
                noise=(1e-3,),
                inits=(1e-3,),
                init=1e-3,
                h=10,
                log_loss=-15.0,
                tests=60,
                transfer=40,
                nets=("flow", "GD"),
                draws=2,
                repeats=1,
            ),
            "laptop": Flipped(),
            "paper": Flipped(
                dims=(250, 500, 1000, 2000, 4000, 8000),
                at=2000,
                positive=(1, 2, 4, 8),
                random=(256, 576, 1024, 2025, 4096),
                h=100,
                log_loss=-300.0,
                tests=20_000,
                transfer=2000,
                draws=12,
                repeats=5,
            ),
        },
    ),
)
