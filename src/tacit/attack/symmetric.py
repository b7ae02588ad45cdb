"""The symmetric smoothed net as a target: its gradient in closed form, and the directions attacks start in."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from tacit.attack.ball.starts import heaviest_neurons
from tacit.attack.losses import Scores
from tacit.base.shapes import Numbers, Rows
from tacit.nets.fired import fired, second_half_counts
from tacit.nets.symmetric import SymmetricNet


@dataclass(frozen=True)
class SymmetricTarget:
    """df/dx = sum_i slope_i(x) w_i (allenzhu2020, footnote 9: of the expectation over the noise)."""

    net: SymmetricNet
    shape: tuple[int, ...] = ()

    def scores(self, x: Rows) -> Scores:
        """E f."""
        return self.net(x)

    def with_pullback(self, x: Rows) -> tuple[Scores, Callable[[Scores], Rows]]:
        """E f, and v -> v_n sum_i slope_ni w_i.

        Slopes are right to the rounding of 1. Where they all round to 0, they are right to their own: even far
        from every threshold a gradient points somewhere.
        """
        net = self.net
        seen = fired(net.w @ x.T, net.b, net.sigma, second_half_counts(net.b, net.sigma))

        def pullback(cotangent: Scores) -> Rows:
            gradient = (seen.slope * cotangent).T @ net.w
            flat = ((gradient == 0).all(1) & (cotangent != 0)).nonzero().squeeze(1)
            if len(flat):
                gradient[flat] = (net.slopes(x[flat]) * cotangent[flat].unsqueeze(1)) @ net.w
            return gradient

        return seen.f, pullback


def both_signs(net: SymmetricNet) -> tuple[Float[Tensor, "k D"], Numbers]:
    """The heaviest neurons as directions of both labels: w_i raises f, -w_i lowers it."""
    return heaviest_neurons(net.two_layer())
