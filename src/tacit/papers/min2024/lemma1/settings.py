"""The settings and the entry of `min2024.lemma1` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_clusters,
    check_positive,
    check_unique,
)


@dataclass(frozen=True)
class EarlyPhase:
    """Gradient flow from w_j = eps w_j0, on the centres alone.

    `eps` is at most 1/(4 sqrt(h) M^2), M the largest ||w_j0||. `times` moments are recorded up to the paper's
    horizon T = log(1/(sqrt(h) eps))/(4 K), and as many from there to past the longer one that is true.
    `repeats` seeds draw the start anew; the figure shows the first. Gradient descent by each `step` goes from the
    largest eps to the time `until`.
    """

    D: int = 20
    K: int = 10
    K1: int = 6
    h: int = 50
    p: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    eps: tuple[float, ...] = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    times: int = 15
    repeats: int = 6
    step: tuple[float, ...] = (0.02, 0.01, 0.005)
    until: float = 20.0

    def __post_init__(self) -> None:
        check_clusters(self.K, self.K1, self.D)
        check_at_least("p", self.p, 1, "p = 1 is ReLU")
        check_positive("h", (self.h,))
        check_positive("eps", self.eps)
        # ||w_j0|| < 1 always, so this keeps Lemma 4's assumption whatever is drawn
        check_at_most("eps", self.eps, 1 / (4 * self.h**0.5), "Lemma 4: eps <= 1/(4 sqrt(h) M^2)")
        check_unique("p", self.p)
        check_unique("eps", self.eps)
        if len(self.eps) < 2:
            raise CallError(
                f"eps={self.eps[0]}: a slope needs two values, as in --set eps=1e-3,1e-4"
            )
        check_at_least("times", (self.times,), 2)
        check_positive("repeats", (self.repeats,))
        check_positive("step", self.step)
        check_unique("step", self.step)
        if len(self.step) < 2:
            raise CallError(
                f"step={self.step[0]}: a slope needs two values, as in --set step=.02,.01"
            )
        check_at_least("until", (self.until,), max(self.step), "one step")


EXHIBITS = (
    Exhibit(
        id="min2024.lemma1",
        title="While weights are small, neurons follow x^(p)(w)",
        where="Section 4.2, Lemma 1; Appendix D.2, D.3, D.5",
        claim="the direction moves along sign(v) P x^(p)(w) up to 4 eps sqrt(h) M^2 K p until T",
        scales={
            "smoke": EarlyPhase(
                D=8,
                K=4,
                K1=2,
                h=8,
                p=(1.0, 3.0),
                eps=(1e-2, 1e-4),
                times=5,
                repeats=1,
                step=(0.04, 0.02),
                until=16.0,
            ),
            "laptop": EarlyPhase(),
            "paper": EarlyPhase(D=1000, h=2000, eps=(1e-3, 1e-4, 1e-5, 1e-6, 1e-7), times=40),
        },
    ),
)
