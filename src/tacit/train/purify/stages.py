r"""A stretch of training: steps, step length, growth of the bias, noise, regulariser (allenzhu2020, Section 4).

    w_i <- w_i - eta (grad_i Loss + decay (||w_i|| + 1) w_i)      Reg(w) = ||w||^2/2 + ||w||^3/3
    b   <- min(b + eta growth, ceiling),     growth = c_b / d,  ceiling = k^-0.5001 in the paper
    sigma_rho = noise b                      noise = (log log log d)^3 / sqrt(log d), later / log d

The paper prints ||w||_3^3 in Reg; the gradient (||w||_2 + 1) w of Fact A.1 is that of the cube of the 2-norm.
"""

import math
from dataclasses import dataclass

from tacit.errors import CallError


@dataclass(frozen=True)
class Stage:
    """`steps` updates with one setting.

    The bias of all neurons grows together by hand, as in the paper. `bias_step` > 0 trains each neuron's own bias
    by gradient descent with that multiple of eta besides (footnote 8).
    """

    steps: int
    eta: float
    decay: float = 0.0
    noise: float = 0.15
    growth: float = 0.0
    ceiling: float = math.inf
    bias_step: float = 0.0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise CallError(f"steps={self.steps}: a stage has at least one")
        if not (self.eta > 0 and math.isfinite(self.eta)):
            raise CallError(f"eta={self.eta:g}: it is a finite positive number")
        for name in ("decay", "noise", "growth", "bias_step"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise CallError(f"{name}={value:g}: it is a finite number >= 0")
        if self.eta * self.decay >= 1:
            raise CallError(
                f"eta={self.eta:g} with decay={self.decay:g}: one step of the regulariser would turn the weights "
                "round; lower one of them"
            )
        if not self.ceiling > 0:
            raise CallError(f"ceiling={self.ceiling:g}: the bias grows up to a positive number")

    def grown(self, bias: float) -> float:
        """The bias after one step; above the ceiling it stays."""
        return bias if bias >= self.ceiling else min(bias + self.eta * self.growth, self.ceiling)
