"""The settings and the entry of `allenzhu2020.thm5.1` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive, check_unique
from tacit.papers.allenzhu2020._shared.settings import (
    PAPER,
    SMOKE,
    SMOKE_LIGHT,
    WithLight,
    check_variants,
)


@dataclass(frozen=True)
class CleanTraining(WithLight):
    """Clean training of the finite setting in `repeats` trainings, each tried on `points` fresh points.

    The universal perturbation has each of the `radii`. `few` nets of `long_m` neurons, on batches of
    `long_batch`, go on to `times` the steps, and as many are trained in each of the `variants` of the setting,
    with biases that are trained (footnote 8, `long_m` neurons), and on a linearly labelled Gaussian mixture
    (Section 7).
    """

    repeats: int = 6
    few: int = 3
    points: int = 500
    times: int = 10
    long_m: int = 400
    long_batch: int = 128
    radii: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7)
    variants: tuple[str, ...] = ("printed", "spikes", "incoherent", "fewer", "unequal")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("repeats", "few", "points", "times", "long_m", "long_batch"):
            check_positive(name, (getattr(self, name),))
        check_at_least("times", (self.times,), 2, "it goes on from the clean steps")
        check_at_least("repeats", (self.repeats,), self.few, "few of them are looked at closer")
        check_positive("radii", self.radii)
        check_unique("radii", self.radii)
        check_variants(self.variants)
        if not self.variants:
            raise CallError("variants: name at least one of the other settings")


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.thm5.1",
        title="Clean training is accurate, and one direction breaks it",
        where="Section 5.1, Theorem 5.1; Sections 2, 4 and 7; Appendix E",
        claim="accuracy is near 1, and -tau y M w*/||M w*|| leaves accuracy near 0, however long one trains",
        scales={
            "smoke": CleanTraining(
                **SMOKE,
                **SMOKE_LIGHT,
                repeats=2,
                few=2,
                points=100,
                times=2,
                long_m=150,
                long_batch=64,
                radii=(0.2, 0.35),
                variants=("printed", "spikes"),
            ),
            "laptop": CleanTraining(),
            "paper": CleanTraining(
                **PAPER,
                light_m=5000,
                long_m=5000,
                long_batch=2048,
                times=5,
                variants=("printed",),
            ),
        },
    ),
)
