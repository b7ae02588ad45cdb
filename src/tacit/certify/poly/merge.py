r"""What merging parallel neurons and pruning massless ones can change over a ball: bounds for certificates.

A net reduced by `attack.reduce` has f = sum_k A_k relu(<U_k, x> + S_k)^p in place of sum_j A_j relu(<u_j, x> +
s_j)^p, with A_k the sum over its group. For x' = x + delta, ||delta||_2 <= r, a member's projection differs
from its group's by at most

    d_j = eta_j (||x|| + r) + |s_j - S_k|,     eta_j = ||u_j - U_k||.

Two uses. **A bound of the change** (`merge_error`): |relu(a)^p - relu(b)^p| <= p rho^(p-1) |a - b| with rho the
largest of both over the ball. **A shift** (`merge_shift`), sharper and without a threshold: with d_k the
largest d_j of a group of one sign, A_k relu(Z_k - d_k)^p <= its members' sum <= A_k relu(Z_k + d_k)^p. Own groups
lowered and opposite groups raised by d_k give a net that is broken wherever the given one is. A pruned own
neuron may be left out (it is never negative); a pruned opposite one adds at most A_j (||x|| + r + s_j)_+^p
(`pruned_mass`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.attack.shortest.reduce import Reduced
from tacit.base.shapes import Numbers, Rows
from tacit.nets import TwoLayerNet


@dataclass(frozen=True)
class Shifted:
    """What a broken point of the given net must satisfy, for points of one class:

        sum_own A_k relu(t_k + <V_k, delta>)^p <= sum_opp A_k relu(t_k + <V_k, delta>)^p + tau

    wherever ||delta|| <= radius. `V` are unit directions, `own` marks the point's class.
    """

    V: Float[Tensor, "K D"]
    A: Float[Tensor, " K"]
    own: Bool[Tensor, " K"]
    p: float
    t: Float[Tensor, "n K"]
    tau: Numbers
    radius: Numbers

    def at(self, here: Int[Tensor, " m"]) -> Shifted:
        """The problem of some of the points."""
        return replace(self, t=self.t[here], tau=self.tau[here], radius=self.radius[here])


def shifted(
    net: TwoLayerNet,
    reduced: Reduced,
    x: Rows,
    sign: int,
    radius: Numbers,
    stretch: float,
    *,
    span: bool,
) -> Shifted:
    """The problem of points of class `sign` within `radius`, delta in coordinates of the span or of x.

    `stretch` bounds ||delta||_2 / ||delta|| in the norm of `radius`. No biases.
    """
    small = reduced.net
    own = small.v * sign > 0
    y = torch.full_like(radius, sign)
    far = radius * stretch
    apart = merge_shift(net, reduced, x, far)
    whole = small.w @ reduced.axes.T
    t = x @ whole.T + torch.where(own, -apart, apart)
    tau = pruned_mass(net, reduced, x, y, far)
    return Shifted(small.w if span else whole, small.v.abs(), own, net.p, t, tau, radius)


def masses(
    net: TwoLayerNet,
) -> tuple[Float[Tensor, " h"], Float[Tensor, "h D"], Float[Tensor, " h"]]:
    """A_j, u_j and s_j of f = sum_j A_j relu(<u_j, x> + s_j)^p, in float64.

    w_j = 0 passes on the constant v_j relu(b_j) where p = 1 (A = v relu(b), u = 0, s = 1), else nothing.
    """
    w, v = net.w.to(torch.float64), net.v.to(torch.float64)
    b = torch.zeros_like(v) if net.b is None else net.b.to(torch.float64)
    norm = w.norm(dim=1)
    still = norm == 0
    size = torch.where(still, 1.0, norm)
    mass = torch.where(still, v * b.clamp_min(0) if net.p == 1 else 0.0, v * norm)
    return mass, w / size.unsqueeze(1), torch.where(still, 1.0, b / size)


def distances(
    net: TwoLayerNet, reduced: Reduced
) -> tuple[Float[Tensor, " h"], Float[Tensor, " h"]]:
    """eta_j and |s_j - S_k| of every neuron from its group; 0 where it was pruned."""
    _, unit, shift = masses(net)
    kept = reduced.group >= 0
    group = reduced.group[kept]
    small = reduced.net
    eta, off = torch.zeros_like(shift), torch.zeros_like(shift)
    eta[kept] = (unit[kept] - (small.w @ reduced.axes.T)[group]).norm(dim=1)
    if small.b is not None:
        off[kept] = (shift[kept] - small.b[group]).abs()
    return eta, off


def merge_error(net: TwoLayerNet, reduced: Reduced, x: Rows, radius: Numbers) -> Numbers:
    """The largest |f - f_reduced| over the l2 ball of `radius` around each point, from above. Any p >= 1."""
    mass, unit, shift = masses(net)
    eta, off = distances(net, reduced)
    reach = (x.norm(dim=1) + radius).unsqueeze(1)
    kept = reduced.group >= 0
    small = reduced.net
    total = torch.zeros_like(small.v).index_add_(0, reduced.group[kept], mass[kept])
    apart = reach * eta[kept] + off[kept]
    # a projection is at most |<u, x> + s| + r ||u||, and the group's at most `apart` more
    here = (x @ unit[kept].T + shift[kept]).abs() + radius.unsqueeze(1)
    rho = here + apart
    moved = (mass[kept].abs() * net.p * rho ** (net.p - 1) * apart).sum(1)
    bias = 0.0 if small.b is None else small.b.abs()
    misweighed = ((total - small.v).abs() * (reach + bias) ** net.p).sum(1)
    lost = (mass[~kept].abs() * (reach + shift[~kept]).clamp_min(0) ** net.p).sum(1)
    # and the rounding of f itself
    return (moved + misweighed + lost) * (1 + 1e-9) + 1e-15 * (mass.abs() * reach**net.p).sum(1)


def merge_shift(
    net: TwoLayerNet, reduced: Reduced, x: Rows, radius: Numbers
) -> Float[Tensor, "n K"]:
    """d_k: how far the projections of a group's members may lie from their group's over the ball."""
    eta, off = distances(net, reduced)
    kept = reduced.group >= 0
    widest = [
        torch.zeros_like(reduced.net.v).scatter_reduce_(0, reduced.group[kept], part[kept], "amax")
        for part in (eta, off)
    ]
    reach = (x.norm(dim=1) + radius).unsqueeze(1)
    return reach * (widest[0] + 1e-15) + widest[1]


def pruned_mass(
    net: TwoLayerNet, reduced: Reduced, x: Rows, y: Numbers, radius: Numbers
) -> Numbers:
    """What the pruned neurons of the opposite sign can take off the margin over the ball, at most."""
    mass, _, shift = masses(net)
    lost = reduced.group < 0
    against = (-y.unsqueeze(1) * mass[lost]).clamp_min(0)
    reach = (x.norm(dim=1) + radius).unsqueeze(1) + shift[lost]
    return (against * reach.clamp_min(0) ** net.p).sum(1)
