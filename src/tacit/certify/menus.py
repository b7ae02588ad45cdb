r"""The shortest move of a point when every coordinate has a menu of pieces to end on.

    minimise  sum_i s_i^2   such that   sum_i (slope_ip s_i + gain_ip) >= need,   s_i in [low_ip, high_ip]

over the piece p of each coordinate and the distance s_i >= 0 that it moves. This is the l2 radius of a sum of
one-dimensional functions that are linear on pieces and may jump: `need` is the margin, and piece p says by how
much the margin falls. For a multiplier mu of the one constraint every coordinate chooses alone, which bounds the
minimum from below; where one choice switches at the best mu there is a gap, and branch and bound on that
coordinate closes it. Only one constraint couples the coordinates, so the gap is that of one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.base.shapes import Numbers

Table = Float[Tensor, "n c p"]

HALVINGS = 48  # of the multiplier's interval
MOST_MULTIPLIER = 2.0**40  # above it nothing on the menus is enough
CLOSE = 2e-3  # of the squared length: where branch and bound stops
ROUNDS = 40  # of branch and bound
HAIR = 1e-12  # of what must be taken off: sums of the same numbers in another order differ by less
NODES = 3000  # at once
MOST_OPEN = 12_000  # nodes of all points together: with more than that the search ends


@dataclass(frozen=True)
class Menus:
    """Pieces (n points, c coordinates, p pieces); low = inf where there is no such piece.

    The first `ordered` coordinates come in order: piece 0 is to stay, all have the same pieces otherwise, but
    that each starts no earlier than the one before. So those that leave are the first ones in some solution.
    """

    low: Table
    high: Table
    slope: Table
    gain: Table
    ordered: int = 0

    def rows(self, index: Int[Tensor, " k"]) -> Menus:
        """The menus of these points."""
        return replace(
            self,
            low=self.low[index],
            high=self.high[index],
            slope=self.slope[index],
            gain=self.gain[index],
        )

    def only(self, allowed: Bool[Tensor, "n c p"]) -> Menus:
        """Without the pieces that are not allowed."""
        return replace(self, low=torch.where(allowed, self.low, torch.inf))


@dataclass(frozen=True)
class Choice:
    """At a multiplier: the dual value (n,), each coordinate's piece (n, c), its move and what it takes off."""

    value: Numbers
    piece: Int[Tensor, "n c"]
    move: Float[Tensor, "n c"]
    fall: Float[Tensor, "n c"]


def choose(menus: Menus, mu: Numbers) -> Choice:
    """min over pieces and moves of s^2 - mu (slope s + gain), coordinate by coordinate."""
    m = mu[:, None, None]
    missing = torch.isinf(menus.low)
    s = torch.where(missing, 0.0, torch.clamp(m * menus.slope / 2, menus.low, menus.high))
    fall = menus.slope * s + menus.gain
    value = torch.where(missing, torch.inf, s.square() - m * fall)
    # on a tie the piece that takes off more: the feasible side
    least = value.amin(-1, keepdim=True)
    piece = torch.where(value <= least, fall, -torch.inf).argmax(-1)
    at = piece.unsqueeze(-1)
    move, taken = s.gather(-1, at).squeeze(-1), fall.gather(-1, at).squeeze(-1)
    return Choice(least.squeeze(-1).sum(-1), piece, move, taken)


def falls(menus: Menus) -> Callable[[Numbers], Numbers]:
    """mu -> what the choices take off together, the bits of `choose(menus, mu).fall.sum(1)`.

    For a search over mu, which asks a hundred times: pieces come first, as what is done over them is fast then.
    """
    tables = (menus.low, menus.high, menus.slope, menus.gain)
    low, high, slope, gain = (table.permute(2, 0, 1).contiguous() for table in tables)
    missing = torch.isinf(low)
    low, high = (torch.where(missing, 0.0, end) for end in (low, high))
    half, never = slope / 2, torch.where(missing, torch.inf, 0.0)

    def taken(mu: Numbers) -> Numbers:
        m = mu[:, None]
        s = torch.clamp(m * half, low, high)
        fall = (slope * s).add_(gain)
        value = s.square_().sub_(m * fall).add_(never)
        return torch.where(value <= value.amin(0), fall, -torch.inf).amax(0).sum(1)

    return taken


def crossing(menus: Menus, need: Numbers) -> tuple[Numbers, Numbers]:
    """Multipliers just below and just above the one from which the choices take off enough; (.., inf): none."""
    fall, low, high = falls(menus), torch.zeros_like(need), torch.ones_like(need)
    while True:
        short = fall(high) < need
        short &= high < MOST_MULTIPLIER
        if not bool(short.any()):
            break
        low, high = torch.where(short, high, low), torch.where(short, 2 * high, high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = fall(middle) >= need
        low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
    return low, high


def shortest_squares(menus: Menus, need: Numbers, rounds: int = ROUNDS) -> tuple[Numbers, Numbers]:
    """Bounds on the least squared length, equal up to `CLOSE` where the rounds sufficed; inf: never."""
    n = len(need)
    need = need * (1 - HAIR)
    best = torch.full_like(need, torch.inf)
    owner = torch.arange(n, device=need.device)
    allowed = ~torch.isinf(menus.low)
    left_low, left_of = [], []
    parent = torch.zeros_like(need)  # what is proved of the nodes that are open
    for _ in range(rounds):
        if not 0 < len(owner) <= MOST_OPEN:
            break
        found = [
            looked_at(menus.rows(who).only(what), need[who])
            for who, what in zip(owner.split(NODES), allowed.split(NODES), strict=True)
        ]
        lower, upper, split, high_piece, cut = (torch.cat(t) for t in zip(*found, strict=True))
        best = best.scatter_reduce(0, owner, upper, "amin")
        open_ = (lower < best[owner] * (1 - CLOSE)) & (split >= 0)
        closed = ~open_ & (lower < best[owner])
        left_low.append(lower[closed])
        left_of.append(owner[closed])
        owner, allowed = branched(
            menus.ordered, owner[open_], allowed[open_], split[open_], high_piece[open_], cut[open_]
        )
        parent = lower[open_].repeat(2)
    left_low.append(parent)
    left_of.append(owner)
    proved = best.scatter_reduce(0, torch.cat(left_of), torch.cat(left_low), "amin")
    return torch.minimum(proved.clamp_min(0), best), best


def looked_at(
    menus: Menus, need: Numbers
) -> tuple[Numbers, Numbers, Int[Tensor, " n"], Int[Tensor, " n"], Int[Tensor, " n"]]:
    """Of each node: lower and upper bound, the coordinate to branch on (-1: none), its piece, and where to cut.

    Where the coordinate is an ordered one, the cut is how many of those leave in the mixture of both choices.
    """
    low, high = crossing(menus, need)
    below, above = choose(menus, low), choose(menus, high)
    never = above.fall.sum(1) < need
    lower = torch.maximum(below.value + low * need, above.value + high * need)
    # the best moves on the pieces that are chosen above
    kept = menus.only(torch.nn.functional.one_hot(above.piece, menus.low.shape[-1]).bool())
    settled = choose(kept, crossing(kept, need)[1])
    upper = torch.where(never, torch.inf, settled.move.square().sum(1))
    lower = torch.where(never, torch.inf, lower)
    change = torch.where(below.piece != above.piece, (above.fall - below.fall).abs(), -1.0)
    size, split = change.max(1)
    split = torch.where((size < 0) | never, -1, split)
    piece = above.piece.gather(1, split.clamp_min(0).unsqueeze(1)).squeeze(1)
    first = slice(0, menus.ordered)
    few, many = ((c.piece[:, first] > 0).sum(1) for c in (below, above))
    taken = below.fall.sum(1), above.fall.sum(1)
    share = ((need - taken[0]) / (taken[1] - taken[0]).clamp_min(1e-300)).clamp(0, 1)
    cut = torch.minimum(few + (share * (many - few)).floor().long(), (many - 1).clamp_min(0))
    return lower, upper, split, piece, cut


def branched(
    ordered: int,
    owner: Int[Tensor, " n"],
    allowed: Bool[Tensor, "n c p"],
    split: Int[Tensor, " n"],
    piece: Int[Tensor, " n"],
    cut: Int[Tensor, " n"],
) -> tuple[Int[Tensor, " m"], Bool[Tensor, "m c p"]]:
    """Two children of each node: the coordinate takes the piece or not; of ordered ones, `cut` leave or more."""
    row = torch.arange(len(owner), device=owner.device)
    with_it, without = allowed.clone(), allowed.clone()
    without[row, split, piece] = False
    with_it[row, split] = False
    with_it[row, split, piece] = True
    if ordered:
        mine = (split < ordered).nonzero().squeeze(1)
        place = torch.arange(ordered, device=owner.device)
        few, many = allowed[mine], allowed[mine].clone()
        few = few.clone()
        few[:, :ordered, 1:] &= (place < cut[mine, None])[:, :, None]
        many[:, :ordered, 0] &= place > cut[mine, None]
        without[mine], with_it[mine] = few, many
    return owner.repeat(2), torch.cat([without, with_it])
