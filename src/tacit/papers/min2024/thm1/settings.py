"""The settings and the entry of `min2024.thm1` (without torch)."""

import math
from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_at_most
from tacit.papers.min2024.bounds.settings import WIDE_K, WIDE_K1, Bounds


@dataclass(frozen=True)
class TwoRadii(Bounds):
    """As `Bounds`, for Theorem 1: p >= 2, delta <= sqrt(2)."""

    delta: tuple[float, ...] = (0.2, 0.5, 1.0, 1.2)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("p", self.p, 2, "the theorem's radius sqrt(2)/2 is for p >= 2")
        check_at_most("delta", self.delta, math.sqrt(2), "the radius is (sqrt(2) - delta)/2")


EXHIBITS = (
    Exhibit(
        id="min2024.thm1",
        title="F breaks at 1/sqrt(K), F^(p) survives to sqrt(2)/2",
        where="Section 3, Theorem 1",
        claim="one direction breaks F at radius 1/sqrt(K); nothing breaks F^(p), p >= 2, below sqrt(2)/2",
        scales={
            "smoke": TwoRadii(K=(2,), K1=(1,), ratio=(1.0, 20.0), p=(3.0,), n=1000),
            "laptop": TwoRadii(),
            "paper": TwoRadii(
                WIDE_K, WIDE_K1, (1.0, 2.0, 3.0, 5.0, 10.0, 30.0), (2.0, 3.0, 4.0), n=200_000
            ),
        },
    ),
)
