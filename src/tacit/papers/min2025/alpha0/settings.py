"""The poster's illustrative example: two positive clusters without noise (torch is not needed here)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_at_most, check_positive, check_unique


@dataclass(frozen=True)
class Circle:
    """h neurons in the plane of mu_1 and mu_2, both positive, one sample each.

    `eps` is the scale of the balanced start. The flow is followed to `time` and kept at `frames` moments.
    `repeats` seeds draw the start anew; the first one is drawn.
    """

    h: int = 40
    p: tuple[float, ...] = (1.0, 2.0, 3.0)
    eps: float = 1e-5
    time: float = 20.0
    frames: int = 80
    repeats: int = 10

    def __post_init__(self) -> None:
        check_at_least("h", (self.h,), 2, "a neuron for each sign")
        check_at_least("p", self.p, 1, "p = 1 is ReLU")
        check_unique("p", self.p)
        check_positive("eps", (self.eps,))
        check_at_most("eps", (self.eps,), 1e-2, "the alignment phase is that of a small start")
        check_at_least("time", (self.time,), 1)
        check_at_least("frames", (self.frames,), 3)
        check_positive("repeats", (self.repeats,))


EXHIBITS = (
    Exhibit(
        id="min2025.alpha0",
        title="Two positive clusters without noise: where each neuron turns",
        where="Poster, Crucial role of implicit bias, illustrative example",
        claim="neurons turn to the average for p = 1, keep still for p = 2, turn to the closer centre for p > 2",
        scales={
            "smoke": Circle(h=12, eps=1e-3, time=10.0, frames=20, repeats=1),
            "laptop": Circle(),
            "paper": Circle(repeats=100),
        },
    ),
)
