"""The settings and the entry of `allenzhu2020.thm5.6` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive
from tacit.papers.allenzhu2020._shared.settings import PAPER, SMOKE, Dictionary, Finite


@dataclass(frozen=True)
class Learners(Finite):
    """Linear, polynomial and tangent-kernel learners against the purified net, linf, M = I, sigma_x = 0 in tests.

    Learners are trained on `samples` points by `steps` steps of Adam of length `step`, clean and on points that
    FGM moved by k^-1.75. The polynomial has the odd degrees up to `degree` of the features and of `forms` random
    directions; the tangent learner has `width` neurons w_i ~ N(0, I) with bias `tangent_bias` and noise
    `tangent_noise` (Definition 5.5). All are tried on `points` fresh points at `count` radii from 1/d to 1/k,
    and at k^-1.75. The nets are those of `thm5.4` with M = I.
    """

    dictionary: Dictionary = "identity"
    block: int = 2
    repeats: int = 3
    points: int = 200
    count: int = 6
    samples: int = 20_000
    steps: int = 600
    step: float = 0.01
    degree: int = 5
    forms: int = 200
    width: int = 600
    tangent_bias: float = 1.0
    tangent_noise: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in (
            "repeats",
            "points",
            "samples",
            "steps",
            "step",
            "degree",
            "width",
            "tangent_noise",
        ):
            check_positive(name, (getattr(self, name),))
        check_at_least("count", (self.count,), 2)
        check_at_least("forms", (self.forms,), 0)
        check_at_least("tangent_bias", (self.tangent_bias,), 0)

    @property
    def unit(self) -> float:
        """k^-1.75, the radius of Theorem 5.4."""
        return float(self.k**-1.75)

    @property
    def radii(self) -> tuple[float, ...]:
        """From 1/d to 1/k, and k^-1.75."""
        ratio = (self.d / self.k) ** (1 / (self.count - 1))
        return tuple(sorted({self.unit, *(ratio**i / self.d for i in range(self.count))}))


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.thm5.6",
        title="What learners of low complexity cannot do",
        where="Section 5.2, Definition 5.5, Theorem 5.6, Corollary 5.7; Appendix G",
        claim="linear, polynomial and tangent-kernel learners are not robust where the purified net is",
        scales={
            "smoke": Learners(
                **SMOKE,
                repeats=1,
                points=40,
                count=2,
                samples=400,
                steps=20,
                degree=3,
                forms=10,
                width=30,
            ),
            "laptop": Learners(),
            "paper": Learners(
                **PAPER,
                pure_steps=2000,
                repeats=6,
                points=1000,
                samples=50_000,
                steps=2000,
                forms=2000,
                width=4000,
            ),
        },
    ),
)
