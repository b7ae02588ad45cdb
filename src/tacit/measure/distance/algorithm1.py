r"""Algorithm 1 of min2024 (Appendix A.1) as printed: the paper's own estimate of dist(f, F).

1. c = argmin_{c > 0} sum_i |c f(x_i) - F(x_i)|^2 over N1 points, uniform on the sphere.
2. From N2 new points, `max_iter` times: x <- x + step * grad l / |grad l|, x <- x / |x|, with
   l = |c f - F|^2. The answer is the largest |c f - F| among the last points.

The gradient lies in the joint span of both nets' neurons, and so does all that moves a point but its
shrinking: each point is kept as its coordinates in the span and the length of the rest, which gives the same
iterates at a cost without D.

The released code (hanchmin/pReLU_ICML24, torch_adv_atk.py) divides by |grad| + 1e-7, with l averaged over
batches of 1,000 points: that is grad l / (|grad l| + 1e-4) here, `offset`. Where |grad l| is far below it,
points hardly move. A point where no neuron is active has no gradient (0/0 as printed): it stays.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.errors import CallError
from tacit.measure.distance.pieces import merge_pieces, net_pieces, to_span
from tacit.nets import TwoLayerNet

RELEASED_OFFSET = 1e-4
CHUNK = 1000


@dataclass(frozen=True)
class Estimated:
    """What Algorithm 1 returns: max |c f - F| over its last points, at its least-squares c.

    A lower bound of the supremum at that c, not of dist (c is not the best one), nor an upper bound.
    """

    value: float
    c: float


def algorithm1(
    f: TwoLayerNet,
    F: TwoLayerNet,
    *,
    step: float = 0.01,
    N1: int = 10_000,
    N2: int = 10_000,
    max_iter: int = 2000,
    generator: torch.Generator,
    offset: float = 0.0,
) -> Estimated:
    """Algorithm 1; the default sizes are those of the released configuration.

    f and F have no bias and one p. `offset` is 0 as printed, `RELEASED_OFFSET` as released.
    """
    for name, value in (("step", step), ("N1", N1), ("N2", N2)):
        if not value > 0:
            raise CallError(f"{name}={value}: it is a positive number")
    if max_iter < 0 or offset < 0:
        raise CallError(f"max_iter={max_iter}, offset={offset}: neither is negative")
    full, unit = net_pieces(f, F)
    pieces, axes = to_span(merge_pieces(full, coarse=False)[0])
    x, _ = _uniform(N1, axes, generator)
    mine, theirs = pieces.values(x)
    square = float(mine @ mine)
    c = max(float(mine @ theirs) / square, 0.0) if square > 0 else 0.0

    a, p = pieces.weights(c), pieces.p
    x, rest = _uniform(N2, axes, generator)
    for _ in range(max_iter):
        z = (x @ pieces.u.T).clamp_min(0)
        slope = (z > 0).to(z.dtype) if p == 1 else z ** (p - 1)
        slope = slope * a
        gradient = 2 * (slope * z).sum(1, keepdim=True) * p * (slope @ pieces.u)
        length = gradient.norm(dim=1, keepdim=True)
        move = gradient / torch.where(length > 0, length + offset, 1.0)
        x = x + step * move
        size = (x.square().sum(1) + rest.square()).sqrt()
        x, rest = x / size.unsqueeze(1), rest / size
    mine, theirs = pieces.values(x)
    return Estimated(float((c * mine - theirs).abs().max()), c / unit)


def _uniform(
    n: int, axes: Float[Tensor, "D r"], generator: torch.Generator
) -> tuple[Float[Tensor, "n r"], Float[Tensor, " n"]]:
    """n points uniform on the sphere of R^D: coordinates along the axes, and the length of what is left."""
    parts = []
    for first in range(0, n, CHUNK):
        count = min(CHUNK, n - first)
        drawn = torch.randn(count, len(axes), generator=generator, dtype=axes.dtype).to(axes.device)
        parts.append((drawn / drawn.norm(dim=1, keepdim=True)) @ axes)
    x = torch.cat(parts)
    return x, (1 - x.square().sum(1)).clamp_min(0).sqrt()
