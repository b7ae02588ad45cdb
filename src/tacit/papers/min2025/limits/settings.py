"""The settings and the entry of `min2025.limits` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_clusters,
    check_positive,
    check_unique,
)

LEAST_INIT = 1e-300  # float64 keeps all digits down to 2e-308; squares are taken in logarithms
LARGEST = 8.0  # a critical p above it counts as 8, measured or predicted


@dataclass(frozen=True)
class Setting:
    """One kind of data: K clusters, half of them positive, noise alpha, n points.

    The last cluster of each class has `ratio` times the points of every other one. `role`: a setting of the noise
    sweep, a control without noise ("still") or with equal counts ("equal"), or one that is "unseen".
    """

    role: str
    K: int
    alpha: float
    ratio: float
    n: int

    @property
    def name(self) -> str:
        """As it is called in data sets and claims."""
        return f"K = {self.K}, alpha = {self.alpha:g}, ratio = {self.ratio:g}, n = {self.n}"


@dataclass(frozen=True)
class Limits:
    """From which p on centres are learned, over the init and kinds of data; `repeats` data sets of each.

    The noise sweep has `K` clusters, `n` points in `D` dimensions, the counts `ratio` and each `alpha`. The
    controls are the same without noise, and with equal counts at `equal_alpha`. The `unseen_` lists pair up:
    settings at which nothing was looked at while the law was derived. `init`: sd of the Gaussian weights of `h`
    neurons, |v| = ||w||, half of them of each sign. The critical p is sought in [2, top] by `rounds` halvings,
    and by as many in [top, 8] where it is not below top.
    """

    K: int = 6
    D: int = 24
    h: int = 48
    n: int = 120
    ratio: float = 0.5
    alpha: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3)
    equal_alpha: float = 0.1
    init: tuple[float, ...] = (1e-3, 1e-6, 1e-12, 1e-22, 1e-40, 1e-70)
    repeats: int = 5
    top: float = 5.0
    rounds: int = 7
    unseen_clusters: tuple[int, ...] = (4, 8, 6, 6, 6)
    unseen_alpha: tuple[float, ...] = (0.1, 0.2, 0.1, 0.2, 0.15)
    unseen_ratio: tuple[float, ...] = (0.5, 0.5, 0.75, 0.25, 0.6)
    unseen_n: tuple[int, ...] = (120, 120, 120, 120, 60)

    def __post_init__(self) -> None:
        sizes = {
            len(v)
            for v in (self.unseen_clusters, self.unseen_alpha, self.unseen_ratio, self.unseen_n)
        }
        if len(sizes) > 1:
            raise CallError(
                "unseen_clusters, unseen_alpha, unseen_ratio and unseen_n pair up: give all four the same length"
            )
        check_unique("alpha", self.alpha)
        check_unique("init", self.init)
        noises = (*self.alpha, self.equal_alpha, *self.unseen_alpha)
        check_positive("alpha", noises)
        check_at_most("alpha", noises, 1, "noise as long as a centre")
        check_positive("ratio", (self.ratio, *self.unseen_ratio))
        for ratio in (self.ratio, *self.unseen_ratio):
            if not ratio < 1:
                raise CallError(
                    f"ratio={ratio}: it is below 1 (equal counts are run as a control anyway)"
                )
        check_at_most("init", self.init, 1)
        why = "float64 has no smaller weight with all its digits"
        check_at_least("init", self.init, LEAST_INIT, why)
        if len(self.init) < 2:
            raise CallError(f"init={self.init[0]:g}: two sizes or more, to see what changes")
        if not 2 < self.top <= LARGEST:
            raise CallError(
                f"top={self.top}: the critical p is sought from 2 to top <= {LARGEST:g}"
            )
        check_at_least("h", (self.h,), 16, "each class needs neurons that its points activate")
        for name in ("repeats", "rounds"):
            check_at_least(name, (getattr(self, name),), 1)
        for each in self.settings:
            check_clusters(each.K, each.K // 2, self.D)
            if each.K < 4 or each.K % 2:
                raise CallError(
                    f"K={each.K}: an even number from 4 on, so that each class has a poor and a rich cluster"
                )
            if round(each.n * each.ratio / (each.K - 2 + 2 * each.ratio)) < 2:
                raise CallError(
                    f"n={each.n} with K={each.K}, ratio={each.ratio:g}: the poor clusters would have less than "
                    "2 points; raise n or ratio"
                )
        names = [each.name for each in self.settings]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise CallError(f"unseen settings: '{twice}' is there twice; each setting once")

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The noise sweep, the controls, the unseen ones."""
        unseen = zip(
            self.unseen_clusters, self.unseen_alpha, self.unseen_ratio, self.unseen_n, strict=True
        )
        return (
            *(Setting("noise", self.K, alpha, self.ratio, self.n) for alpha in self.alpha),
            Setting("still", self.K, 0.0, self.ratio, self.n),
            Setting("equal", self.K, self.equal_alpha, 1.0, self.n),
            *(Setting("unseen", *each) for each in unseen),
        )


SMOKE = Limits(
    K=4, D=8, h=24, n=24, alpha=(0.3,), init=(1e-3, 1e-12), repeats=1, rounds=1, top=4.0, unseen_clusters=(4,),
    unseen_alpha=(0.2,), unseen_ratio=(0.5,), unseen_n=(30,),
)  # fmt: skip
PAPER = Limits(
    D=100, h=200, n=600, alpha=(0.05, 0.1, 0.2, 0.4), repeats=10, top=6.0,
    init=(1e-3, 1e-6, 1e-12, 1e-22, 1e-40, 1e-70, 1e-150), unseen_n=(600, 600, 600, 600, 1200),
)  # fmt: skip

EXHIBITS = (
    Exhibit(
        id="min2025.limits",
        title="Small init and p > 2 do not commute: from which p on centres are learned",
        where="Beyond the poster: Observations and Theorems, under noise and unequal counts",
        claim="with noise and unequal counts p > 2 learns centres only from init >= f(p, noise, imbalance)",
        scales={"smoke": SMOKE, "laptop": Limits(), "paper": PAPER},
    ),
)
