r"""Two nets as one list of unit directions with two masses each, merged where neurons agree.

    f(x) = sum_j f_j relu(<u_j, x>)^p,     F(x) = sum_j F_j relu(<u_j, x>)^p

with f_j = v_j ||w_j|| for the neurons of f (F_j = 0 there) and the reverse for those of F.

**What merging changes.** Neurons of one sign with masses A_j > 0 become one of mass A = sum A_j at the mean
ubar = sum A_j u_j / A; with d_j = u_j - ubar, sum A_j d_j = 0, and relu(.)^p convex, the net loses at each x
with |x| <= 1 between 0 and

    p >= 2:      p (p-1) / 2 * lam                lam the largest eigenvalue of sum_j A_j d_j d_j'
    p = 1:       sqrt(A lam) / 2
    1 < p < 2:   A^(1 - p/2) lam^(p/2)

from relu(t+s)^p - relu(t)^p - p relu(t)^(p-1) s, which is at most p (p-1) s^2 / 2 (p >= 2; t, t + s <= 1),
|s|^p (1 < p < 2), and relu(s) - s [t > 0] at t = 0 (p = 1, where sum A relu(t + s_j) - A relu(t) is largest:
sum A_j |s_j| / 2), and then sum A_j s_j^2 <= lam, sum A_j |s_j|^q <= A^(1 - q/2) lam^(q/2). It is of second
order for p >= 2, so that thousands of neurons in a few bundles are measured as few.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.attack.shortest.reduce import LARGEST_SVD, parallel_groups
from tacit.base.checks import check_finite
from tacit.base.linalg import span_axes
from tacit.errors import CallError
from tacit.nets import TwoLayerNet

BUNDLE = 0.2  # radians: neurons of one sign this close to a heavier one are one group
FAINT, COARSE_FAINT = 1e-12, 1e-5  # masses that together make up less of the net are left out


@dataclass(frozen=True)
class Pieces:
    """u (m, r) of unit length, the masses f (m,) and F (m,) on them, and p."""

    u: Float[Tensor, "m r"]
    f: Float[Tensor, " m"]
    F: Float[Tensor, " m"]
    p: float

    def weights(self, c: float) -> Float[Tensor, " m"]:
        """a_j of c f - F = sum_j a_j relu(<u_j, x>)^p."""
        return c * self.f - self.F

    def values(self, x: Float[Tensor, "n r"]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """f and F at the points."""
        hidden = (x @ self.u.T).clamp_min(0) ** self.p
        return hidden @ self.f, hidden @ self.F


def net_pieces(f: TwoLayerNet, F: TwoLayerNet) -> tuple[Pieces, float]:
    """The pieces of c f - F in float64, f divided by its total mass, and that total.

    Divided, because a long flow leaves masses of any size: the scale c belongs to what is measured.
    """
    if f.w.dim() != 2 or F.w.dim() != 2:
        raise CallError("an ensemble is measured member by member: pass one net at a time")
    if f.w.shape[1] != F.w.shape[1]:
        raise CallError(
            f"f takes points of {f.w.shape[1]} coordinates and F of {F.w.shape[1]}: "
            "the distance is between functions on one sphere"
        )
    if f.p != F.p:
        raise CallError(
            f"f has p={f.p:g} and F has p={F.p:g}: the distance is between nets of one p"
        )
    for name, net in (("f", f), ("F", F)):
        if net.b is not None and bool((net.b != 0).any()):
            raise CallError(f"{name} has biases: the distance is between nets without (b = None)")
        check_finite(name, net.w, net.v, remedy="no distance can be given")
    (u, mass), (U, Mass) = _rays(f), _rays(F)
    total = float(mass.abs().sum()) or 1.0
    pieces = Pieces(
        torch.cat([u, U]),
        torch.cat([mass / total, torch.zeros_like(Mass)]),
        torch.cat([torch.zeros_like(mass), Mass]),
        float(f.p),
    )
    return pieces, total


def _rays(net: TwoLayerNet) -> tuple[Float[Tensor, "h D"], Float[Tensor, " h"]]:
    """Unit directions and masses v ||w|| (a neuron with w = 0 has none, and any direction)."""
    w, v = net.w.to(torch.float64), net.v.to(torch.float64)
    norm = w.norm(dim=1)
    return w / torch.where(norm > 0, norm, 1.0).unsqueeze(1), v * norm


def merge_pieces(pieces: Pieces, *, coarse: bool) -> tuple[Pieces, float]:
    """Pieces with the neurons of f merged, and a bound of what that changes in f on the unit ball.

    Merged are neurons of one sign that are parallel (to 1e-5), or, `coarse`, those in one bundle. The neurons
    of F stay as they are.
    """
    mass = pieces.f
    faint = mass.abs().sort()
    share = COARSE_FAINT if coarse else FAINT
    drop = faint.indices[faint.values.cumsum(0) <= share * mass.abs().sum()]
    heard = torch.ones_like(mass, dtype=torch.bool)
    heard[drop] = False
    error = float(mass[drop].abs().sum())
    u, f = [pieces.u[pieces.F != 0]], [mass[pieces.F != 0]]
    for sign in (1, -1):
        here = (heard & (mass * sign > 0)).nonzero().squeeze(1)
        if not len(here):
            continue
        rays, A = pieces.u[here], mass[here].abs()
        group = _bundles(rays, A) if coarse else parallel_groups(rays, A)
        direction, merged, lost = _merge(rays, A, group, pieces.p)
        u.append(direction)
        f.append(sign * merged)
        error += lost
    masses = torch.cat(f)
    F = torch.zeros_like(masses)
    F[: len(u[0])] = pieces.F[pieces.F != 0]
    return Pieces(torch.cat(u), masses, F, pieces.p), error


def _merge(
    u: Float[Tensor, "h D"], A: Float[Tensor, " h"], group: Int[Tensor, " h"], p: float
) -> tuple[Float[Tensor, "m D"], Float[Tensor, " m"], float]:
    """One neuron a group: unit direction, mass, and what all groups together lose at most."""
    count = int(group.max()) + 1
    total = A.new_zeros(count).index_add_(0, group, A)
    mean = u.new_zeros(count, u.shape[1]).index_add_(0, group, A.unsqueeze(1) * u)
    mean = mean / total.unsqueeze(1)
    lost = 0.0
    for g in (torch.bincount(group, minlength=count) > 1).nonzero().squeeze(1).tolist():
        member = group == g
        d = A[member].sqrt().unsqueeze(1) * (u[member] - mean[g])
        gram = d @ d.T if d.shape[0] <= d.shape[1] else d.T @ d
        lam = float(torch.linalg.eigvalsh(gram)[-1]) + 1e-14 * float(gram.diagonal().sum())
        lost += _loss_of_merging(float(total[g]), max(lam, 0.0), p)
    length = mean.norm(dim=1)
    return mean / length.unsqueeze(1), total * length**p, lost


def _loss_of_merging(A: float, lam: float, p: float) -> float:
    """The bound at the head of this file."""
    if p >= 2:
        return float(p * (p - 1) / 2 * lam)
    return float(A ** (1 - p / 2) * lam ** (p / 2) / (2 if p == 1 else 1))


def _bundles(u: Float[Tensor, "h D"], A: Float[Tensor, " h"]) -> Int[Tensor, " h"]:
    """Groups of neurons within `BUNDLE` of a leader, the heaviest that has no group yet."""
    near = u @ u.T >= torch.cos(torch.tensor(BUNDLE))
    group = torch.full(A.shape, -1, dtype=torch.long, device=A.device)
    count = 0
    for leader in A.argsort(descending=True, stable=True).tolist():
        if group[leader] < 0:
            group[near[leader] & (group < 0)] = count
            group[leader] = count
            count += 1
    return group


def to_span(pieces: Pieces) -> tuple[Pieces, Float[Tensor, "D r"]]:
    """The same pieces in coordinates of their joint span, and its axes: x = axes @ coordinates."""
    u = pieces.u
    D = u.shape[1]
    axes = (
        torch.eye(D, dtype=u.dtype, device=u.device)
        if len(u) >= D > LARGEST_SVD or not len(u)
        else span_axes(u)
    )
    return Pieces(u @ axes, pieces.f, pieces.F, pieces.p), axes
