"""Figure 1: neurons on the sphere (torch is not needed here)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_at_most, check_positive


@dataclass(frozen=True)
class Spheres:
    """h neurons in three dimensions, two positive clusters and a negative one, n samples.

    `eps` is the scale of the balanced start (4). The flow is followed to `time` (of the mean loss), and kept at
    `frames` moments. `repeats` seeds draw samples and starts anew; the first one is drawn.
    """

    h: int = 50
    n: int = 60
    alpha: float = 0.1
    eps: float = 1e-5
    time: float = 500.0
    frames: int = 72
    repeats: int = 10

    def __post_init__(self) -> None:
        check_at_least("h", (self.h,), 4, "two neurons for each class")
        check_at_least("n", (self.n,), 3, "one sample for each cluster")
        check_at_least("alpha", (self.alpha,), 0, "noise is not negative")
        check_positive("eps", (self.eps,))
        check_at_most("eps", (self.eps,), 0.1, "the two phases are those of a small start")
        check_at_least("time", (self.time,), 1)
        check_at_least("frames", (self.frames,), 3)
        check_positive("repeats", (self.repeats,))


EXHIBITS = (
    Exhibit(
        id="min2024.fig1",
        title="Neurons turn first, then grow: to the averages, or to the centres",
        where="Section 4.1, Figure 1",
        claim="from one small start, p = 1 neurons learn the two class averages, p = 3 neurons the three centres",
        scales={
            "smoke": Spheres(h=16, n=12, time=100.0, frames=8, repeats=1),
            "laptop": Spheres(),
            "paper": Spheres(repeats=100),
        },
    ),
)
