r"""Shortest perturbations of ReLU nets (p = 1) as distances to convex pieces of the broken set.

With own neurons a_i relu(z_i) and opposite ones -a_j relu(z_j) (folded as in `two_layer`), relu(z) >= z and
relu >= 0 make every piece

    C_T = {delta: sum_own a_i relu(z_i) - sum_T a_j z_j <= 0},       T a set of opposite neurons,

a convex part of the broken set, and the broken set is their union (T = the neurons that are on). For theta
in [0, 1]^own the piece lies in the half-space where kappa . z(delta) <= 0, kappa = (a theta, -a on T, 0
elsewhere), whose distance is

    d(theta) = (kappa . z) / ||U' kappa||,         the most of it over theta is the distance of C_T  (duality),

so it is raised one theta_i at a time, each in closed form, all pieces of all points as one array; a piece
whose bound passes the shortest perturbation known is dropped. At the top, theta_i in (0, 1) says that z_i =
0 there, a kink, and theta_i = 1 that i is on: the point itself is the least-norm solution of these linear
equations, which is exact. All T are tried for few opposite neurons; else those that broken points show, and
then those that the solutions show (a convex-concave procedure: C_T of the neurons on at a broken point
holds that point, so it never gets longer).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.attack.shortest.two_layer import Products, Side
from tacit.base.shapes import Numbers

MOST_ENUMERATED = 10  # opposite neurons: up to 2^10 pieces a point
MOST_PAIRED = 24
MOST_OWN = 256
ROUNDS = 14
MOST_SWEEPS = 8
INSIDE = 1e-7  # theta in (INSIDE, 1 - INSIDE) is a kink
HAIR = 1e-12
ROUNDING = 1e-13
FAR = 1e5  # a piece farther than this many ||x|| is empty


@dataclass(frozen=True)
class Shortest:
    """Perturbations U' nu with their lengths (inf: none), and the way d(nu) into the piece, a unit of z deep."""

    length: Numbers
    nu: Products
    inward: Products

    def take(self, here: Int[Tensor, " m"], other: Shortest) -> None:
        """Put in what `other` has for the points `here` where it is shorter."""
        wins = other.length < self.length[here]
        mine = here[wins]
        self.length[mine] = other.length[wins]
        self.nu[mine], self.inward[mine] = other.nu[wins], other.inward[wins]


@dataclass(frozen=True)
class Pieces:
    """Rows of the search: the point of each, which opposite neurons are in T, and kappa of all neurons."""

    point: Int[Tensor, " B"]
    kappa: Float[Tensor, "B K"]

    def at(self, rows: Tensor) -> Pieces:
        """Some of the rows."""
        return Pieces(self.point[rows], self.kappa[rows])


def nearest_pieces(
    side: Side, z: Products, limit: Numbers, seen: Bool[Tensor, "n P K"]
) -> Shortest:
    """The shortest perturbation of each point among the pieces; only what beats `limit` is looked for.

    `seen`: sets of neurons that are on at broken points (their opposite part is T). `limit` is inf where
    nothing is known.
    """
    n, K = z.shape
    gram = side.u @ side.u.T
    best = Shortest(
        torch.full((n,), torch.inf, dtype=z.dtype, device=z.device),
        torch.zeros_like(z),
        torch.zeros_like(z),
    )
    opp = side.m < 0
    m = int(opp.sum())
    if K - m > MOST_OWN:
        return best
    sets = subsets(opp)
    sets = (
        sets.expand(n, -1, -1)
        if m <= MOST_ENUMERATED
        else torch.cat([sets.expand(n, -1, -1), seen & opp], 1)
    )
    for _ in range(1 if m <= MOST_ENUMERATED else ROUNDS):
        point = torch.arange(n, device=z.device).repeat_interleave(sets.shape[1])
        pieces = first_bounds(side, z, point, sets.flatten(0, 1))
        before = best.length.clone()
        search(side, gram, z, limit, pieces, best)
        improved = best.length < before * (1 - 1e-9)
        if not bool(improved.any()):
            break
        on = z + best.nu @ gram > 0
        sets = (on & opp).unsqueeze(1)
    return best


def complete(side: Side) -> bool:
    """Whether all pieces are tried: then no start matters."""
    m = int((side.m < 0).sum())
    return m <= MOST_ENUMERATED and len(side.m) - m <= MOST_OWN


def subsets(opp: Bool[Tensor, " K"]) -> Bool[Tensor, "P K"]:
    """All sets of opposite neurons where they are few; else those of at most two (or one), and all of them."""
    where = opp.nonzero().squeeze(1)
    m = len(where)
    index = torch.arange(m, device=opp.device)
    if m <= MOST_ENUMERATED:
        chosen = (torch.arange(2**m, device=opp.device).unsqueeze(1) >> index) % 2 == 1
    else:
        one = torch.eye(m, dtype=torch.bool, device=opp.device)
        parts = [one.new_zeros(1, m), one.new_ones(1, m), one[:MOST_PAIRED]]
        if m <= MOST_PAIRED:
            pairs = torch.combinations(index)
            parts.append(one[pairs[:, 0]] | one[pairs[:, 1]])
        chosen = torch.cat(parts)
    sets = torch.zeros(len(chosen), len(opp), dtype=torch.bool, device=opp.device)
    sets[:, where] = chosen
    return sets


def first_bounds(
    side: Side, z: Products, point: Int[Tensor, " B"], sets: Bool[Tensor, "B K"]
) -> Pieces:
    """kappa with theta = 1 for the own neurons that are on at x: kappa . z >= margin > 0."""
    kappa = torch.where(side.m > 0, side.m * (z[point] > 0), 0.0) + torch.where(sets, side.m, 0.0)
    return Pieces(point, kappa)


def search(
    side: Side,
    gram: Float[Tensor, "K K"],
    z: Products,
    limit: Numbers,
    pieces: Pieces,
    best: Shortest,
) -> None:
    """Raise the bounds, solve the most promising piece of each point, drop what cannot win; repeat."""
    far = FAR * (1 + z.abs().amax(1))
    for k in range(ROUNDS):
        pieces, bound = raise_bounds(side, gram, z, pieces, min(2**k, MOST_SWEEPS))
        known = torch.minimum(torch.minimum(limit, best.length), far)
        alive = bound < known[pieces.point] * (1 - 1e-8)
        pieces, bound = pieces.at(alive), bound[alive]
        if not len(bound):
            return
        order = bound.argsort(stable=True)
        order = order[pieces.point[order].argsort(stable=True)]
        first = torch.ones_like(order, dtype=torch.bool)
        first[1:] = pieces.point[order[1:]] != pieces.point[order[:-1]]
        lowest = pieces.at(order[first])
        best.take(lowest.point, corner(side, gram, z, lowest))


def raise_bounds(
    side: Side, gram: Float[Tensor, "K K"], z: Products, pieces: Pieces, sweeps: int
) -> tuple[Pieces, Float[Tensor, " B"]]:
    """Rounds of coordinate ascent on d(theta), each with a move along all that it changed; the bounds reached.

    With c = kappa . z, q = kappa' G kappa and t = G kappa, going s along e gives (c + s e.z)^2 over
    q + 2 s e.t + s^2 e'Ge: see `best_step`. The moves along the change of a whole sweep cross long valleys.
    """
    own = (side.m > 0).nonzero().squeeze(1).tolist()
    top = torch.where(side.m > 0, side.m, 0.0).unsqueeze(1)
    point = pieces.point
    kappa = pieces.kappa.T.clone(memory_format=torch.contiguous_format)  # neurons as rows
    zt = z[point].T.contiguous()
    t = gram @ kappa
    c = (kappa * zt).sum(0)
    q = (kappa * t).sum(0).clamp_min(0)
    for _ in range(sweeps):
        before, t_before = kappa.clone(), t.clone()
        for i in own:
            s = best_step(c, q, zt[i], t[i], gram[i, i])
            new = (kappa[i] + s).clamp(0, float(top[i]))
            s = new - kappa[i]
            kappa[i] = new
            q = (q + s * (2 * t[i] + s * gram[i, i])).clamp_min(0)
            c = c + s * zt[i]
            t.addr_(gram[i], s)
        e, et = kappa - before, t - t_before
        s = best_step(c, q, (e * zt).sum(0), (e * t).sum(0), (e * et).sum(0).clamp_min(0))
        room = torch.where(e > 0, (top - kappa) / e, torch.where(e < 0, -kappa / e, torch.inf))
        s = torch.minimum(s.clamp_min(0), room.amin(0))
        s = torch.where(torch.isfinite(s), s, 0.0)
        kappa.addcmul_(s, e)
        t.addcmul_(s, et)
        c = (kappa * zt).sum(0)
        q = (kappa * t).sum(0).clamp_min(0)
    q = (kappa * (gram @ kappa)).sum(0)
    bound = c / q.clamp_min(1e-300).sqrt()
    return Pieces(point, kappa.T.contiguous()), bound


def best_step(c: Tensor, q: Tensor, ez: Tensor, et: Tensor, ee: Tensor) -> Tensor:
    """The s that makes (c + s ez)^2 / (q + 2 s et + s^2 ee) largest, c > 0; +-inf where it rises for ever.

    s = (ez q - c et) / (c ee - et ez) where the divisor is positive; else the sign of the numerator says
    which way. All (B,). (Plain annotations: it is called once a coordinate.)
    """
    up, down = ez * q, c * et
    rise, brake = up - down, c * ee - et * ez
    s = torch.where(brake > 0, rise / brake, rise.sign() * torch.inf)
    # e along kappa itself is a mere scale: nothing to gain
    return torch.where(rise.abs() <= ROUNDING * (up.abs() + down.abs()), 0.0, s)


def corner(side: Side, gram: Float[Tensor, "K K"], z: Products, pieces: Pieces) -> Shortest:
    """The least-norm point of each row's linear equations, kept where the net breaks there.

    Unknown multipliers mu of the kinks (z_i = 0) and of the sum of what is on (kappa_S . z = 0): nu = E' mu
    with E the coefficients, E G E' mu = -E z.
    """
    z = z[pieces.point]
    own = side.m > 0
    theta = torch.where(own, pieces.kappa / side.m, 0.0)
    kink = own & (theta > INSIDE) & (theta < 1 - INSIDE)
    whole = torch.where(kink, 0.0, pieces.kappa)
    # kinks as rows of the identity, masked; the last row is the sum
    E = torch.cat([torch.diag_embed(kink.to(z.dtype)), whole.unsqueeze(1)], 1)
    E = E[:, torch.cat([kink.any(0), kink.new_ones(1)])]
    system = E @ gram @ E.mT
    depth = torch.cat([kink.to(z.dtype), whole.abs().sum(1, keepdim=True)], 1)
    depth = depth[:, torch.cat([kink.any(0), kink.new_ones(1)])]
    right = torch.stack([-(E @ z.unsqueeze(2)).squeeze(2), -depth], 2)
    mu = torch.linalg.pinv(system, rtol=1e-13, hermitian=True) @ right
    nu = (E.mT @ mu).unbind(2)
    near, inward = nu[0].contiguous(), nu[1].contiguous()
    length = (near * (near @ gram)).sum(1).clamp_min(0).sqrt()
    moved = z + (near + HAIR * (1 + z.abs().amax(1, keepdim=True)) * inward) @ gram
    breaks = torch.isfinite(length) & (side.margin(moved) <= 0)
    return Shortest(torch.where(breaks, length, torch.inf), near, inward)
