"""The settings and the entries of `min2024.fig2_sgd` and `min2024.fig5_sgd` (without torch)."""

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
        """The released config, or what it was cut to; a shade over one net of an alpha would be empty."""
        cut = [f"{k} = {getattr(self, k):g}" for k, v in RELEASED.items() if getattr(self, k) != v]
        shade = f"{self.repeats} of the captions' 10 repeats of an alpha"
        if not cut:
            return f"inside: the released config, 80,200 steps; {shade}"
        own = f"{self.steps:,} steps of {self.step:g}, released are 80,200 of 0.2"
        return f"shortened: {', '.join(cut)}; {own}; {shade}"


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
    Exhibit(
        id="min2024.fig5_sgd",
        title="Figure 5 by its own loop and its own attack",
        where="Appendix A.2, Figure 5; released code",
        claim="with twice the subclasses SGD's ReLU net breaks earlier, at 1/sqrt(20); at p = 3 nothing changes",
        scales={
            "smoke": Released(**SMOKE, K=12, K1=5, epochs=600, attack_steps=10),
            # a centre has half as many points, and half the pull: twice the epochs of Figure 2's
            "laptop": Released(
                K=20, K1=8, alpha=(0.01, 0.1), D=100, h=200, n=2000, epochs=400, points=200
            ),
            "paper": Released(K=20, K1=8, alpha=ALPHAS, points=1000, repeats=1),
        },
        code="tacit.papers.min2024.fig2_sgd.exhibit",
    ),
)
