"""The settings and the entry of `allenzhu2020.thm5.3` (without torch)."""

from dataclasses import dataclass
from typing import get_args

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive, check_unique
from tacit.papers.allenzhu2020._shared.settings import (
    PAPER,
    SMOKE,
    SMOKE_LIGHT,
    AttackerName,
    WithLight,
    check_variants,
)

KNOWN = tuple(name for name in get_args(AttackerName) if name not in ("none", "fgm"))


@dataclass(frozen=True)
class Adversarial(WithLight):
    """Adversarial training by FGM from clean nets, in `repeats` trainings; `few` have a control of clean steps.

    `few` nets of the lighter setting are trained against each of the other `attackers`, from random weights, and
    in each of the `variants` of the setting. Each net is tried on `points` fresh points; `certified`
    of them are certified at parts of tau, in `few` trainings. `few` are made without a margin too, where half as
    many are certified.
    """

    repeats: int = 6
    few: int = 3
    points: int = 500
    certified: int = 100
    attackers: tuple[str, ...] = ("pgd", "universal", "random", "weak")
    variants: tuple[str, ...] = ("spikes", "incoherent", "fewer", "unequal", "quiet")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("repeats", "few", "points", "certified"):
            check_positive(name, (getattr(self, name),))
        check_at_least("repeats", (self.repeats,), self.few, "few of them are looked at closer")
        check_at_least("points", (self.points,), self.certified, "some of them are certified")
        unknown = [name for name in self.attackers if name not in KNOWN]
        if unknown:
            raise CallError(
                f"attackers={','.join(unknown)}: some of {', '.join(KNOWN)}; FGM is always there"
            )
        check_unique("attackers", self.attackers)
        check_variants(self.variants)


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.thm5.3",
        title="Adversarial training removes the mixture and restores robustness",
        where="Section 5.1, Theorem 5.3; Sections 1, 4.2 and 7; Appendix F",
        claim="after adversarial training no perturbation of length tau breaks the net; features moved little",
        scales={
            "smoke": Adversarial(
                **SMOKE,
                **SMOKE_LIGHT,
                repeats=2,
                few=2,
                points=100,
                certified=2,
                attackers=("universal", "random"),
                variants=("quiet",),
            ),
            "laptop": Adversarial(),
            "paper": Adversarial(
                **PAPER,
                repeats=3,
                few=1,
                light_m=5000,
                light_eta=15.0,
                certified=6,
                attackers=("universal",),
                variants=(),
            ),
        },
    ),
)
