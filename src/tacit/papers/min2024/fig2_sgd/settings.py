"""The settings and the entry of `min2024.fig2_sgd` (without torch)."""

from dataclasses import dataclass

from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_most, check_positive
from tacit.papers.min2024.fig2.settings import ALPHAS, SMOKE, Experiment

RELEASED = {"D": 1000, "h": 2000, "n": 20_000, "epochs": 401, "batch": 100, "step": 0.2}


@dataclass(frozen=True)
class Released(Experiment):
    """Trained by SGD on the mean exponential loss: `epochs`, batches of `batch`, steps of `step`.

    Flows are followed from the same weights on the same data to the loss at which SGD ended. The released attack
    starts at the point itself and takes `attack_steps` steps of length `attack_step` along the gradient.
    """

    epochs: int = 401
    batch: int = 100
    step: float = 0.2
    attack_steps: int = 200
    attack_step: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epochs", "batch", "step", "attack_steps", "attack_step"):
            check_positive(name, (getattr(self, name),))
        check_at_most("batch", (self.batch,), self.n, "n")

    @property
    def steps(self) -> int:
        """Of the whole training."""
        return self.epochs * -(-self.n // self.batch)

    @property
    def regime(self) -> str:
        """The released config, or what it was cut to."""
        cut = [f"{k} = {getattr(self, k):g}" for k, v in RELEASED.items() if getattr(self, k) != v]
        if not cut:
            return "inside: the released config, 80,200 steps"
        return f"shortened: {', '.join(cut)}; {self.steps:,} steps of {self.step:g}, released are 80,200 of 0.2"


EXHIBITS = (
    Exhibit(
        id="min2024.fig2_sgd",
        title="Figure 2 by its own loop and its own attack",
        where="Section 5.1, Figure 2; released code",
        claim="SGD ends where the flow does; the released attack does not see where the net at p = 3 breaks",
        scales={
            "smoke": Released(**SMOKE, K=4, K1=2, epochs=200, attack_steps=10),
            "laptop": Released(D=100, h=200, n=2000, epochs=200, points=200),
            "paper": Released(alpha=ALPHAS, points=1000, repeats=1),
        },
    ),
)
