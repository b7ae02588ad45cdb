"""Settings shared by exhibits (without torch)."""

from dataclasses import dataclass

from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_pairs,
    check_positive,
    check_unique,
)


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


WIDE_K, WIDE_K1 = (2, 4, 10, 20, 40), (1, 2, 6, 8, 20)
