"""The settings and the entry of `allenzhu2020.table1` (without torch)."""

from dataclasses import dataclass
from typing import Literal

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_most, check_positive, check_unique
from tacit.papers.allenzhu2020.deep.settings import (
    ATTACKERS,
    LAPTOP,
    SMOKE,
    AttackerName,
    Deep,
)

Start = Literal["random", "clean"]
EVERY: tuple[AttackerName, ...] = ("linf4", "linf8", "l2half", "l2one")


@dataclass(frozen=True)
class Table(Deep):
    """Table 1: the clean net, and nets trained against each of `attackers` from each of `starts`.

    A ResNet-16 is trained against `sixteen` besides, from random weights, and the deeper net that it is compared
    with. All are tried on `points` test images with the attacker of
    their training (the clean net with all four); what it leaves of the first `strong` images, with
    `strong_steps` steps from each of `strong_starts` random starts; and in linf `strict` images with the strict
    attack: `strict_steps` steps of APGD each, `restarts` random starts of the margin, and `queries` queries.
    """

    attackers: tuple[AttackerName, ...] = EVERY
    starts: tuple[Start, ...] = ("random", "clean")
    sixteen: Literal["none", "linf4", "linf8", "l2half", "l2one"] = "none"
    points: int = 10_000
    strong: int = 4000
    strong_steps: int = 50
    strong_starts: int = 5
    strict: int = 1000
    strict_steps: int = 50
    restarts: int = 3
    queries: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unique("attackers", self.attackers)
        check_unique("starts", self.starts)
        counts = ("points", "strong", "strict", "strong_steps", "strong_starts")
        for name in (*counts, "strict_steps", "restarts", "queries"):
            check_positive(name, (getattr(self, name),))
        for name in ("strong", "strict"):
            check_at_most(name, (getattr(self, name),), self.points, "points")

    @property
    def nets(self) -> tuple[str, ...]:
        """The names of all nets (`deep.nets`), the clean one first."""
        ways = {"random": "", "clean": ".clean"}
        robust = [f"{a}{ways[start]}" for start in self.starts for a in self.attackers]
        if self.sixteen != "none":
            robust += [self.sixteen, f"{self.sixteen}.sixteen"]
        return ("clean", *dict.fromkeys(robust))

    def tried_by(self, net: str) -> tuple[str, ...]:
        """The attackers of a net's rows: all four for the clean one, its own for others."""
        return tuple(ATTACKERS) if net == "clean" else (net.partition(".")[0],)


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.table1",
        title="Clean nets break, adversarially trained nets hold, whatever they start from",
        where="Section 8, Table 1 and Remark 8.1",
        claim="clean training leaves no robust accuracy; adversarial training has 42% to 62%, from any start",
        scales={
            "smoke": Table(
                **SMOKE,
                attackers=("linf8",),
                points=40,
                strong=20,
                strong_steps=4,
                strong_starts=2,
                strict=8,
                strict_steps=3,
                restarts=1,
                queries=5,
            ),
            "laptop": Table(
                **LAPTOP,
                attackers=("linf8", "l2half"),
                starts=("random",),
                points=1000,
                strong=1000,
                strong_steps=20,
                strong_starts=2,
                strict=300,
                strict_steps=20,
                restarts=1,
            ),
            "paper": Table(sixteen="l2one"),
        },
    ),
)
