"""Algorithm 1 in the catalogue: its config and its entry (no torch here)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_clusters,
    check_positive,
    check_unique,
)


@dataclass(frozen=True)
class Estimates:
    """Nets whose distance is known, measured by Algorithm 1 (printed, released) and by `function_distance`.

    The neurons of F (p = 1) or F^(p) are turned by `theta` into fresh orthogonal directions; `theta` = .0065
    gives dist .0075 at p = 3, as trained nets have. `step`, `N1`, `N2`, `max_iter` are Algorithm 1's;
    `budgets` are further values of max_iter, looked at for the largest D and p = 3. `plane` random pairs of
    nets in the plane are measured exhaustively.
    """

    D: tuple[int, ...] = (20, 140, 1000)
    K: int = 10
    K1: int = 6
    p: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    theta: float = 0.0065
    step: float = 0.01
    N1: int = 10_000
    N2: int = 100
    max_iter: int = 2000
    budgets: tuple[int, ...] = (10, 30, 100, 300, 1000)
    plane: int = 40
    repeats: int = 3

    def __post_init__(self) -> None:
        for D in self.D:
            check_clusters(self.K, self.K1, D)
        check_at_least(
            "D", self.D, 2 * self.K, "each of the K neurons turns into a direction of its own"
        )
        check_at_least("p", self.p, 1, "p = 1 is ReLU")
        for p in self.p:
            if p != 1:
                check_at_least("p", (p,), 2, "dist is known for p = 1 and p >= 2")
        check_at_most("theta", (self.theta,), 0.5, "radians: neurons near those of F")
        for name in ("theta", "step", "N1", "N2", "max_iter", "plane", "repeats"):
            check_positive(name, (getattr(self, name),))
        check_positive("budgets", self.budgets)
        for name in ("D", "p", "budgets"):
            check_unique(name, getattr(self, name))


EXHIBITS = (
    Exhibit(
        id="min2024.alg1",
        title="Algorithm 1 and the true distance",
        where="Appendix A.1, Algorithm 1",
        claim="normalised projected ascent finds dist(f, F) = inf_c sup |c f - F| over the sphere",
        scales={
            "smoke": Estimates(
                D=(8, 30), K=4, K1=2, p=(1.0, 3.0), N1=1000, N2=20, max_iter=200, budgets=(10, 50),
                plane=3, repeats=1,
            ),
            "laptop": Estimates(),
            "paper": Estimates(N2=10_000, repeats=5),
        },
    ),
)  # fmt: skip
