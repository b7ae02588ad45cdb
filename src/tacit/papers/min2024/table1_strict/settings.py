"""The settings and the entry of `table1_strict`: Table 1 under stronger attacks (torch is not needed here)."""

from dataclasses import dataclass
from typing import Literal

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive, check_unique
from tacit.papers.min2024.images.settings import ImageNets

Kind = Literal["linf", "l2", "l1"]


@dataclass(frozen=True)
class Strict(ImageNets):
    """Nets and radii of Table 1; `points` test points under every attack by gradients.

    `restarts` random starts, besides one down the gradient and one towards the mean of each other class.
    `more_steps` is what the paper's attack is given in place of `steps`. `few` of the points are searched
    for their shortest perturbation, and given `queries` queries by the Square attack; the first `certified` of
    them are certified in the norms `proofs`, which costs the most (seconds a point, net and radius). `far_linf`,
    `far_l2` and `far_l1` are radii at which nothing should be left.

    Laptop: the nets of `min2024.fig6`, three of each p after 12 epochs, on 20 points; no steps beyond 200.
    Paper: 51 epochs, 5 seeds, 1,000 points.
    """

    linf: tuple[float, ...] = (0.05, 0.1)
    l2: tuple[float, ...] = (1.0, 2.0)
    l1: tuple[float, ...] = (5.0, 10.0)
    far_linf: float = 0.5
    far_l2: float = 8.0
    far_l1: float = 80.0
    epochs: int = 12
    points: int = 20
    repeats: int = 3
    restarts: int = 2
    more_steps: int = 200
    few: int = 8
    certified: int = 2
    proofs: tuple[Kind, ...] = ("l2",)
    queries: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.p) < 2:
            given = ",".join(f"{p:g}" for p in self.p)
            raise CallError(
                f"p={given}: give at least two values, as in --set p=1,4 (one alone shows no gain)"
            )
        for name in ("linf", "l2", "l1"):
            radii = getattr(self, name)
            check_at_least(name, (len(radii),), 1, "radii")
            check_positive(name, radii)
            check_unique(name, radii)
            check_at_least(f"far_{name}", (getattr(self, f"far_{name}"),), max(radii), name)
        check_unique("proofs", self.proofs)
        for name in ("restarts", "certified", "queries"):
            check_positive(name, (getattr(self, name),))
        check_at_least("more_steps", (self.more_steps,), self.steps, "steps")
        check_at_least("few", (self.few,), self.certified, "certified")
        check_at_least("points", (self.points,), self.few, "few")


EXHIBITS = (
    Exhibit(
        id="min2024.table1_strict",
        title="Is it real? Table 1 under attacks that small gradients cannot fool",
        where="Appendix B, Table 1, re-examined",
        claim="the gain in robustness from p = 1 to p = 4 is not an artefact of small gradients",
        scales={
            "smoke": Strict(
                dataset="digits",
                classes=2,
                p=(1.0, 4.0),
                width=20,
                epochs=8,
                batch=200,
                points=8,
                steps=5,
                restarts=1,
                more_steps=8,
                few=3,
                certified=1,
                queries=10,
                repeats=1,
            ),
            "laptop": Strict(),
            "paper": Strict(
                epochs=51,
                points=1000,
                restarts=5,
                more_steps=400,
                few=100,
                certified=50,
                proofs=("linf", "l2"),
                queries=2000,
                repeats=5,
            ),
        },
    ),
)
