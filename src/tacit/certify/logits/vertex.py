r"""The margin of a pair over an l1 ball, bounded from below at the vertices.

Neurons with a_j < 0 make a concave function of delta, and of those with a_j > 0 tangents are taken; the
radial term is affine in S = ||c + delta||^2, with ||delta||^2 kept where its weight is negative. The sum is
concave: over the ball it is least at one of the 2 D vertices +-r e_i, where it is known exactly. Any tangent
is sound. Good ones touch at the mean of the vertices with weights exp(-value / mu), mu falling.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.certify.logits.pairs import Pairs
from tacit.certify.logits.parabola import lines, phi

STEPS = 30
HOT, COLD = 0.1, 0.002  # mu at the first and at the last step, of the clean margin
PART = 0.4  # of the way to the new mean


def vertex_bound(
    pairs: Pairs, r: Float[Tensor, " m"], clean: Float[Tensor, " m"]
) -> Float[Tensor, " m"]:
    """A lower bound of F over the l1 ball of radius r > 0; `clean` is F at the points."""
    opposed = pairs.a.clamp_max(0)
    own = pairs.a.clamp_min(0)
    side = r.reshape(-1, 1, 1) * pairs.u.T
    ends = torch.stack([pairs.t.unsqueeze(1) + side, pairs.t.unsqueeze(1) - side], 1)
    bent = (phi(ends, pairs.p) @ opposed[:, None, :, None]).squeeze(3)
    const, slant = pairs.radial_below(r)
    fixed = const + slant.clamp_max(0) * r.square()
    tilt = 2 * slant.unsqueeze(1) * pairs.c
    reach = r.unsqueeze(1) * pairs.dual
    still = torch.zeros_like(pairs.c)
    best = torch.full_like(r, -torch.inf)
    mean = still
    for i in range(STEPS):
        alpha, beta = lines(own, pairs.t, reach.clamp_min(1e-300), mean @ pairs.u.T, pairs.p)
        g = r.unsqueeze(1) * (beta @ pairs.u + tilt)
        value = bent + torch.stack([g, -g], 1) + (alpha.sum(1) + fixed)[:, None, None]
        best = torch.maximum(best, value.amin((1, 2)))
        mu = clean.abs().clamp_min(1e-300) * HOT * (COLD / HOT) ** (i / (STEPS - 1))
        weight = torch.softmax((-value / mu[:, None, None]).flatten(1), 1).unflatten(1, (2, -1))
        middle = r.unsqueeze(1) * (weight[:, 0] - weight[:, 1])
        mean = mean + PART * (middle - mean)
    return best - pairs.slack(r)
