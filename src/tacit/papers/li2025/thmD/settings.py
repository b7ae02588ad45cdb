"""The settings and the entry of `li2025.thmD` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_clusters, check_positive


@dataclass(frozen=True)
class Biases:
    """Appendix D's nets on orthogonal centres of norm sqrt(D), noise `sigma`: `n` samples, biases
    of f_avg on a grid of `steps` x `steps` from `low` to `high`, in units of D."""

    D: int = 3072
    K: int = 10
    K1: int = 5
    sigma: float = 1.0
    low: float = -0.95
    high: float = 1.5
    steps: int = 15
    n: int = 100_000

    def __post_init__(self) -> None:
        check_clusters(self.K, self.K1, self.D)
        check_at_least("sigma", (self.sigma,), 0, "noise is not negative")
        check_at_least("low", (self.low,), -1, "a bias below -D switches its neuron off for good")
        check_at_least(
            "high", (self.high,), self.low, "it is the end of the grid that starts at low"
        )
        check_at_least("steps", (self.steps,), 2)
        check_positive("n", (self.n,))


EXHIBITS = (
    Exhibit(
        id="li2025.thmD",
        title="No bias makes averaging robust; decoupling is",
        where="Appendix D, Theorems D.1 to D.3; Remark A.5",
        claim="f_avg breaks at the order sqrt(d/k) for all accurate biases, f_dec survives sqrt(d)/3",
        scales={
            "smoke": Biases(steps=4, n=2000),
            "laptop": Biases(),
            "paper": Biases(steps=50, n=200_000),
        },
    ),
)
