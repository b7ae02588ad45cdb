r"""The exact l2 radius of a ReLU net whose neurons are orthogonal: f_dec, and Frei's robust net.

    f = sum_k y_k a relu(u_k),   u_k = c_k,  the signed distance of x to the k-th kink (unit normal),

with one weight a per class (`own` a, `opp` b). A point of the own class is broken where
a sum_own relu(u) <= b sum_opp relu(u). Since relu(u) = max(0, u), the broken set is the union over
subsets T of the opposite neurons of the convex sets

    {a sum_own relu(u) - b sum_T u <= 0}.

On one of them the shortest move has a multiplier lam >= 0: own u = relu(c - lam a) where c > 0, and
u = c + lam b on T. g(lam) = a sum_own relu(c - lam a) - b sum_T (c + lam b) is a maximum over subsets S
of own of decreasing lines, so its root is the largest of the lines' roots,

    lam = max_S (a sum_S c - b sum_T c) / (|S| a^2 + |T| b^2),

attained at a prefix S of own sorted by c. By rearrangement T is a prefix too. T empty means all own
neurons off: length^2 = sum_own relu(c)^2; there f = 0, which counts as broken here but not where ties
go to the point (`ties_break=False`: li2025 and frei2023 set sign(0) = -1, so a negative point needs
f > 0 strictly, and then some opposite neuron must be on).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.certify.poly.power import Shortest


def decoupled_radius(
    own: Float[Tensor, "n K1"],
    opp: Float[Tensor, "n K2"],
    a: float,
    b: float,
    *,
    ties_break: bool = True,
) -> Shortest:
    """The shortest breaking move of each point; length inf where none exists."""
    off = -own.clamp_min(0)
    best = Shortest(off.square().sum(1), off, torch.zeros_like(opp))
    if not ties_break:
        best = Shortest(torch.full_like(best.square, torch.inf), best.own, best.opp)
    down, up = (c.sort(dim=1, descending=True) for c in (own, opp))
    ahead = torch.nn.functional.pad(down.values.cumsum(1), (1, 0))
    behind = up.values.cumsum(1)
    place = up.indices.argsort(dim=1)
    sizes = torch.arange(own.shape[1] + 1, dtype=own.dtype, device=own.device)
    for m in range(1, opp.shape[1] + 1):
        lines = (a * ahead - b * behind[:, m - 1 : m]) / (sizes * a**2 + m * b**2)
        lam = lines.amax(1, keepdim=True).clamp_min(0)
        fall = -torch.minimum(lam * a, own.clamp_min(0))
        rise = torch.where(place < m, lam * b, 0.0)
        square = fall.square().sum(1) + rise.square().sum(1)
        best = best.better(Shortest(square, fall, rise))
    return best
