r"""The Moreau envelope of a symmetric pair, as a table from below.

    E(y) = min_v phi(v) + gamma (v - y)^2 / 2,      phi = `pair_value`, with one bias b >= 0 and sigma > 0

**At the nodes** the minimum is taken over a grid of step h. The minimiser has gamma (y - v) = phi'(v), which lies
between 0 and 1 + Phi(-b/sigma). The second derivative is at most K = gamma + 1/(sigma sqrt(2 pi)), and some point
of the grid is within h/2 of the minimiser: its value is at most K h^2/8 too high.

**Between the nodes** E - gamma y^2/2 is a minimum of linear functions, so concave, and E is at most gamma h^2/8
below its chord. Both are taken off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.nets.smoothed import DENSITY, chance, pair_value

FINE = 40  # nodes in a standard deviation of the noise, or in 1/gamma
MOST = 2**17  # nodes
ROWS = 4096  # at once


@dataclass(frozen=True)
class Envelope:
    """E on [-far, far] for one gamma > 0."""

    gamma: float
    far: float
    step: float
    table: Float[Tensor, " N"]

    def __call__(self, y: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """A lower bound of E(y); -inf where the table ends."""
        at = (y + self.far) / self.step
        k = at.long().clamp(0, len(self.table) - 2)
        left, right = self.table[k], self.table[k + 1]
        return torch.where(y.abs() <= self.far, left + (at - k) * (right - left), -torch.inf)


def envelope(b: float, sigma: float, gamma: float, far: float) -> Envelope:
    """The table for |y| <= far."""
    step = max(min(sigma, 1 / gamma) / FINE, 2 * far / MOST)
    count = math.ceil(2 * far / step) + 2
    steep = 1 + float(chance(torch.tensor(-b / sigma, dtype=torch.float64)))
    back = math.ceil(steep / gamma / step) + 1
    phi = pair_value(torch.arange(-back, count, dtype=torch.float64) * step - far, b, sigma)
    bend = gamma * (torch.arange(-back, 1, dtype=torch.float64) * step).square() / 2
    table = torch.cat([(part + bend).amin(1) for part in phi.unfold(0, back + 1, 1).split(ROWS)])
    error = (2 * gamma + DENSITY / sigma) * step**2 / 8
    return Envelope(gamma, far, step, table - error)
