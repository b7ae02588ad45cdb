"""The settings and the entry of `allenzhu2020.scaling` (without torch)."""

import math
from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive, check_unique
from tacit.papers.allenzhu2020._shared.settings import Finite

AT = 200  # the dimension at which the rule gives the finite setting itself


@dataclass(frozen=True)
class Rule:
    """The finite setting for each dimension in `d` by one rule, for each `margin` (0: as in the paper).

        k = 6 (d/200)^`power`,  m = 10 d,  decay = .02/d,  clean steps 1.5 d and 3.5 d,
        adversarial steps `pure` (k/6)^2 of `pure_eta`,  tau = .35 sqrt(6/k),  all else as at d = 200

    Theorem 5.1 trains for d^1.01/eta and Theorem 5.3 for k^(2+c)/eta steps; tau is of order 1/sqrt(k). `repeats`
    trainings each, tried on `points` fresh points. Quantities that may be 0 count as half a point at least.
    """

    d: tuple[int, ...] = (50, 100, 200)
    margin: tuple[float, ...] = (1.0, 0.0)
    power: float = 0.36
    pure: int = 1000
    pure_eta: float = 1.4
    repeats: int = 3
    points: int = 500
    batch: int = 256

    def __post_init__(self) -> None:
        check_at_least("d", self.d, 16)
        check_unique("d", self.d)
        if len(self.d) < 2:
            raise CallError(f"d={self.d[0]}: an exponent needs two, as in --set d=100,200")
        check_at_least("margin", self.margin, 0)
        check_unique("margin", self.margin)
        for name in ("power", "pure", "pure_eta", "repeats", "points", "batch"):
            check_positive(name, (getattr(self, name),))

    def k(self, d: int) -> float:
        """The sparsity in dimension d."""
        return float(6 * (d / AT) ** self.power)

    def at(self, d: int, margin: float) -> Finite:
        """The setting in dimension d."""
        k = self.k(d)
        return Finite(
            d=d, k=k, m=10 * d, margin=margin, decay=0.02 / d, batch=self.batch,
            clean_steps=(round(1.5 * d), round(3.5 * d)), pure_steps=round(self.pure * (k / 6) ** 2),
            pure_eta=self.pure_eta, tau=0.35 * math.sqrt(6 / k),
        )  # fmt: skip


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.scaling",
        title="Each o(1) as a curve in d",
        where="Section 5.1, Theorems 5.1 to 5.3",
        claim="what the theorems call o(1) falls with d, and the mixture is of order k/d",
        scales={
            "smoke": Rule(d=(24, 32), repeats=1, points=40, pure=100, batch=32),
            "laptop": Rule(),
            "paper": Rule(d=(100, 200, 400, 800, 2000), pure=2000, pure_eta=0.7, points=2000),
        },
    ),
)
