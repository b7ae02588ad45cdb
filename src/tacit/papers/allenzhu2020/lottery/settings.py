"""The settings and the entry of `allenzhu2020.lottery` (without torch)."""

import math
from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive, check_unique
from tacit.papers.allenzhu2020._shared.settings import PAPER, SMOKE, Finite


@dataclass(frozen=True)
class Lottery(Finite):
    """Clean training step by step in `repeats` trainings, looked at after each of the `moments`.

    `gamma` is Lemma B.2's. The film follows `shown` neurons of the first training in `frames` pictures of clean
    and half as many of adversarial training; `points` fresh points give accuracies and gradients.
    """

    repeats: int = 6
    gamma: float = 0.1
    moments: tuple[int, ...] = (0, 30, 60, 100, 150, 200, 300, 340, 375, 450, 600, 800, 1000)
    points: int = 500
    shown: int = 6
    frames: int = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("repeats", "points", "shown", "gamma"):
            check_positive(name, (getattr(self, name),))
        check_at_least("frames", (self.frames,), 4)
        if self.gamma > 0.1:
            raise CallError(f"gamma={self.gamma}: it is at most 0.1 (Lemma B.2)")
        if self.m <= self.d:
            raise CallError(
                f"m={self.m} with d={self.d}: Lemma B.2 needs more neurons than features"
            )
        check_unique("moments", self.moments)
        last = sum(self.clean_steps)
        if not (min(self.moments) == 0 and max(self.moments) == last):
            raise CallError(f"moments: they begin with 0 and end with {last}, the last clean step")
        if len(self.moments) < 3 or last <= self.phase:
            raise CallError(
                f"moments: some of them lie before T_b = {self.phase:.0f} steps and some after; give more, or "
                "train longer"
            )

    @property
    def excess(self) -> float:
        """c0 of m = d^(1 + c0)."""
        return math.log(self.m) / math.log(self.d) - 1

    @property
    def phase(self) -> float:
        """T_b = d^2 sigma_0 / (k eta), with constant 1 and the first step length (Theorem C.1)."""
        return self.d**2 * self.init / (self.k * self.clean_eta[0])

    @property
    def early(self) -> float:
        """T_a = d sigma_0 log^2.5 d/eta, with constant 1 and the first step length (Theorem C.1)."""
        return self.d * self.init * math.log(self.d) ** 2.5 / self.clean_eta[0]

    @property
    def settled(self) -> int:
        """The steps after which the bias has reached its ceiling (all of them, if it does not)."""
        bias, top, done = (
            self.start_bias * self.init * math.sqrt(math.log(self.d)),
            self.ceiling / math.sqrt(self.k),
            0,
        )
        for steps, eta in zip(self.clean_steps, self.clean_eta, strict=True):
            rise = eta * self.growth / self.d
            needed = math.ceil((top - bias) / rise) if rise else steps + 1
            if needed <= steps:
                return done + max(needed, 0)
            bias, done = bias + steps * rise, done + steps
        return done


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.lottery",
        title="Neurons win the features that they lean to at the start",
        where="Section 6.1; Appendix B, Lemma B.2; Appendix C, Theorems C.1 and C.2; Theorem D.1; Claim E.3",
        claim="lucky neurons win their feature and keep it; minus the gradient along M w* is positive throughout",
        scales={
            "smoke": Lottery(
                **SMOKE,
                repeats=2,
                moments=(0, 20, 60, 120),
                points=100,
                shown=2,
                frames=6,
            ),
            "laptop": Lottery(),
            "paper": Lottery(**PAPER),
        },
    ),
)
