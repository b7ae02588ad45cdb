r"""The robust models of allenzhu2020, Section 3: features below a threshold are zeroed out.

    hard    f(x) = sum_i v_i t_i 1[|t_i| >= b],                    t_i = <w_i, x>
    soft    f(x) = sum_i v_i (relu(t_i - b) - relu(-t_i - b))

with w_i = M_i, v = w* and b = 1/(2 sqrt(k)) in the paper. Both are odd, and rise in every v_i t_i.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.errors import CallError
from tacit.nets.kinds import register
from tacit.nets.smoothed import pair_value
from tacit.nets.tensors import TensorNet


@dataclass(frozen=True)
class ThresholdedNet(TensorNet):
    """Features w (h, D), weights v (h,), a threshold b >= 0; `hard` jumps there, else it is continuous."""

    w: Float[Tensor, "h D"]
    v: Float[Tensor, " h"]
    b: float
    hard: bool = True

    def __post_init__(self) -> None:
        if not self.b >= 0:
            raise CallError(f"b={self.b:g}: a threshold is a number >= 0")

    def __call__(self, x: Float[Tensor, "n D"]) -> Float[Tensor, " n"]:
        """f(x)."""
        return kept(x @ self.w.T, self.b, self.hard) @ self.v


def kept(t: Float[Tensor, "*any"], b: float, hard: bool) -> Float[Tensor, "*any"]:
    """What is left of t."""
    return torch.where(t.abs() >= b, t, 0.0) if hard else pair_value(t, b, 0.0)


register(
    ThresholdedNet,
    name="thresholded",
    certificate="tacit.certify.thresholded:thresholded_radius",
)
