"""A third party's paper with one exhibit that works."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tacit.errors import CallError
from tacit.lab.exhibit import Exhibit, Paper


@dataclass(frozen=True)
class Toy:
    """Fields of every kind that `--set` knows."""

    K: int = 4
    K1: int = 2
    alpha: tuple[float, ...] = (0.1, 0.2, 0.3)
    sizes: tuple[int, ...] = (1, 2)
    rate: float = 0.5
    bias: bool = False
    loss: Literal["exp", "logistic"] = "exp"
    name: str = "mean"
    cap: int | None = None
    radius: float = field(default=1.0, metadata={"finite": False})

    def __post_init__(self) -> None:
        if not 1 <= self.K1 <= self.K:
            raise CallError(f"K1={self.K1} must be between 1 and K={self.K}")


PAPER = Paper(
    key="toy2020",
    title="Toys & <other> means",
    authors="Ada Toy and Bo Block",
    year=2020,
    bibtex="@article{toy2020,\n  title = {Toys and other means}\n}\n",
)
EXHIBITS = [
    Exhibit(
        id="toy2020.mean",
        title="The mean of noise",
        where="Theorem 1.2",
        claim="The mean of n draws is within 3 alpha / sqrt(n) of zero.",
        scales={
            "smoke": Toy(),
            "laptop": Toy(alpha=(0.1, 0.2)),
            "paper": Toy(K=10, alpha=(0.1, 0.2)),
        },
        code="fakes.toy_mean",
    )
]
