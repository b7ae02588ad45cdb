r"""The Moreau envelope of a symmetric pair, as a table from below.

    E(y) = min_v phi(v) + gamma (v - y)^2 / 2,      phi = `pair_value`, one bias b >= 0, sigma > 0

**At the nodes** the minimum is taken over a grid of step h. The minimiser has gamma (y - v) = phi'(v), which lies
between 0 and 1 + Phi(-b/sigma). The second derivative is at most K = gamma + 1/(sigma sqrt(2 pi)), and some point
of the grid is within h/2 of the minimiser: its value is at most K h^2/8 too high.

**Between the nodes** E - gamma y^2/2 is a minimum of linear functions, so concave, and E is at most gamma h^2/8
below its chord. Both are taken off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.nets.smoothed import DENSITY, chance, pair_value

FINE = 20  # nodes in a standard deviation of the noise, or in 1/gamma
MOST = 2**16  # nodes
WORK = 2**23  # sums for one gamma: a small one reaches far
ROWS = 4096  # at once


@dataclass(frozen=True)
class Envelope:
    """E on [-far, far] for some gamma > 0, a row of the table each; of each neuron gamma (h, 1) and its row."""

    gamma: Float[Tensor, "h 1"]
    row: Int[Tensor, "h 1"]
    far: float
    step: float
    table: Float[Tensor, "C N"]

    def __call__(self, y: Float[Tensor, "h T"]) -> Float[Tensor, "h T"]:
        """A lower bound of E(y); -inf where the table ends."""
        count = self.table.shape[1]
        at = (y + self.far) / self.step
        k = at.long().clamp_(0, count - 2)
        flat, place = self.table.flatten(), k + count * self.row
        left, right = flat[place], flat[place + 1]
        return torch.where(y.abs() <= self.far, left + (at - k) * (right - left), -torch.inf)

    def at(self, here: Int[Tensor, " k"]) -> Envelope:
        """Some of the neurons."""
        return replace(self, gamma=self.gamma[here], row=self.row[here])


def envelope(b: float, sigma: float, gamma: Float[Tensor, " h"], far: float) -> Envelope:
    """The table for |y| <= far; gamma of each neuron, of few values."""
    values, row = gamma.unique(return_inverse=True)
    step = max(min(sigma, 1 / float(values.max())) / FINE, 2 * far / MOST)
    step = max(step, math.sqrt(4 * far / float(values.min()) / WORK))
    count = math.ceil(2 * far / step) + 2
    table = torch.stack([envelope_row(b, sigma, g, far, step, count) for g in values.tolist()])
    return Envelope(gamma.unsqueeze(1), row.unsqueeze(1), far, step, table)


def envelope_row(
    b: float, sigma: float, gamma: float, far: float, step: float, count: int
) -> Float[Tensor, " N"]:
    """E at the nodes -far + k step, less the errors."""
    steep = 1 + float(chance(torch.tensor(-b / sigma, dtype=torch.float64)))
    back = math.ceil(steep / gamma / step) + 1
    phi = pair_value(torch.arange(-back, count, dtype=torch.float64) * step - far, b, sigma)
    bend = gamma * (torch.arange(-back, 1, dtype=torch.float64) * step).square() / 2
    table = torch.cat([(part + bend).amin(1) for part in phi.unfold(0, back + 1, 1).split(ROWS)])
    return table - (2 * gamma + DENSITY / sigma) * step**2 / 8
