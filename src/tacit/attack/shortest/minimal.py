r"""The shortest perturbation found that breaks each point: an upper bound of its robust radius.

Kinds that register `shortest` have a search of their own in l2 without a box: two-layer nets are searched as
few neurons in few dimensions (`reduce`, `two_layer`, `convex`, `cone`). Everything else is searched in the whole
space (`walk`). What is returned was verified on the model that was given, in its own type: where merging or
rounding left the margin a hair above 0, the perturbation was moved on by the least of a ladder of hairs that
breaks.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack.losses import margin
from tacit.attack.norms import Norm, Room, known_norm
from tacit.attack.shortest.cone import nearest_off, shorten_off
from tacit.attack.shortest.convex import MOST_ENUMERATED, complete, nearest_pieces
from tacit.attack.shortest.reduce import Reduced, reduce_net
from tacit.attack.shortest.two_layer import (
    MOST_RAYS,
    Side,
    along,
    descend,
    first_on_rays,
    ray_directions,
    root,
    shorten,
)
from tacit.attack.shortest.walk import shortest_by_walk
from tacit.attack.target import Target, target_of
from tacit.base.checks import check_finite
from tacit.base.shapes import Labels, Numbers, Rows
from tacit.errors import CallError, RunError
from tacit.nets import TwoLayerNet
from tacit.nets.kinds import kind_of

MOST_HAIR = 0.01
KEPT_RAYS = 2  # of each point, that Newton's steps start from
KEPT_BELOW = 6  # where p <= 2: several neurons may rise together
ELEMENTS = 2**22  # of the largest array: chunks of points are as many as fit
ROWS = 2048  # verified at once

Points = Float[Tensor, "n *shape"]


@dataclass(frozen=True)
class Found:
    """`radius` (*e, n): 0 broken clean, inf nothing found; `delta` (*e, n, *shape): it breaks (0 where inf)."""

    radius: Float[Tensor, "*e n"]
    delta: Float[Tensor, " ..."]


@dataclass(frozen=True)
class Candidate:
    """Perturbations in reduced coordinates, whether there is one, and the way further into the broken set."""

    delta: Float[Tensor, "n r"]
    length: Numbers
    inward: Float[Tensor, "n r"]


def minimal(
    model: Any,
    x: Points,
    y: Labels,
    *,
    norm: float | str | Norm = 2,
    box: tuple[float, float] | None = None,
    seed: int = 0,
) -> Found:
    """The shortest perturbation found of each point, in `norm`, with x + delta inside `box`.

    `model` is a net (an ensemble is attacked member by member) or any torch callable on (n, *shape). The result
    is a function of the seed. A point is broken where its margin is <= 0: y f, or z_y - max of the others.
    """
    norm = known_norm(norm)
    check_finite("x", x)
    if getattr(model, "ensemble", ()):
        members = [
            minimal(member, x, y, norm=norm, box=box, seed=seed) for member in model.members()
        ]
        return Found(*(torch.stack([getattr(m, f) for m in members]) for f in ("radius", "delta")))
    if box is not None and bool(((x < box[0]) | (x > box[1])).any()):
        raise CallError(
            f"box {box}: points lie outside it ({x.min():g} to {x.max():g}); widen the box or clip them"
        )
    rows, target = x.flatten(1), target_of(model, tuple(x.shape[1:]))
    generator = torch.Generator(x.device).manual_seed(seed)
    kind = kind_of(model)
    known = None if kind is None else kind.shortest
    # where a net is broken in l2 is worth a look in any norm
    nearest = None if known is None else known(model, rows, y, generator)
    if nearest is not None and norm.order == 2 and box is None:
        found = nearest
    else:
        hints = [] if nearest is None else [1.5 * nearest.delta]
        found = by_walk(target, rows, y, norm, box, generator, hints)
    return Found(found.radius, found.delta.unflatten(1, x.shape[1:]))


def by_walk(
    target: Target,
    x: Rows,
    y: Labels,
    norm: Norm,
    box: tuple[float, float] | None,
    generator: torch.Generator,
    hints: list[Rows],
) -> Found:
    """In the whole space."""
    here = (margins(target, x, y) > 0).nonzero().squeeze(1)
    radius, delta = torch.zeros_like(x[:, 0]), torch.zeros_like(x)
    if len(here):
        at, label = x[here], y[here]
        room = None if box is None else (box[0] - at, box[1] - at)
        ways = [hint[here] for hint in hints]
        move = shortest_by_walk(target, at, label, norm, room, generator, ways)
        move = moved_on(target, at, label, norm, room, move)
        size = norm.size(move)
        if room is not None and bool(((move < room[0]) | (move > room[1])).any()):
            raise RunError("a perturbation left the box")
        radius[here] = torch.where(size > 0, size, torch.inf)
        delta[here] = move
    return Found(radius, delta)


def moved_on(
    target: Target, x: Rows, y: Labels, norm: Norm, room: Room | None, delta: Rows
) -> Rows:
    """`delta` stretched by the least hair that breaks; 0 where none does (scores may depend on the batch)."""
    out = torch.zeros_like(delta)
    here = (norm.size(delta) > 0).nonzero().squeeze(1)
    for hair in hairs(x.dtype):
        if not len(here):
            break
        move = (1 + hair) * delta[here]
        move = move if room is None else move.clamp(room[0][here], room[1][here])
        broken = margins(target, x[here] + move, y[here]) <= 0
        out[here[broken]] = move[broken]
        here = here[~broken]
    return out


def hairs(dtype: torch.dtype, spread: float = 0.0) -> list[float]:
    """The ladder, from what rounding and merging need at least."""
    least = max(8 * torch.finfo(dtype).eps, spread / 10)
    return [least * 10**k for k in range(16) if least * 10**k <= MOST_HAIR]


def by_structure(net: TwoLayerNet, x: Rows, y: Labels, generator: torch.Generator) -> Found:
    """In the span of the merged neurons, in float64; verified on the given net."""
    if not ((y == 1) | (y == -1)).all():
        raise CallError("y: the labels of a one-output net are -1 or +1")
    reduced = reduce_net(net)
    low = project(x, reduced.axes)
    candidates = [
        Candidate(
            torch.zeros_like(low), low.new_full((len(low),), torch.inf), torch.zeros_like(low)
        )
        for _ in range(2)
    ]
    for sign in (1, -1):
        side = side_of(reduced.net, sign)
        mine = (y * sign > 0).nonzero().squeeze(1)
        mine = mine[side.margin(side.z(low[mine])) > 0]
        if not len(mine):
            continue
        rays = 5 + 2 * min(int((side.m < 0).sum()), MOST_RAYS)
        pieces = 2 ** min(int((side.m < 0).sum()), MOST_ENUMERATED) if net.p == 1 else 0
        width = max(len(side.m), 1) * max(rays, pieces)
        for chunk in mine.split(max(ELEMENTS // width, 1)):
            for whole, part in zip(candidates, search(side, low[chunk], generator), strict=True):
                for name in ("delta", "length", "inward"):
                    getattr(whole, name)[chunk] = getattr(part, name)
    return verified(net, reduced, x, y, candidates)


def project(x: Rows, axes: Float[Tensor, "D r"]) -> Float[Tensor, "n r"]:
    """Coordinates in the span, in float64, a chunk at a time."""
    return torch.cat([part.to(axes.dtype) @ axes for part in x.split(ROWS)])


def side_of(net: TwoLayerNet, sign: int) -> Side:
    """What the points of one label see of the reduced net."""
    shift = torch.zeros_like(net.v) if net.b is None else net.b
    return Side(net.w, shift, sign * net.v, net.p)


def search(side: Side, x: Float[Tensor, "n r"], generator: torch.Generator) -> list[Candidate]:
    """Two candidates a point: from the convex pieces (p > 1: all own neurons off), and from the rays."""
    z = side.z(x)
    directions = ray_directions(side, x, generator)
    t = first_on_rays(side, z, directions)
    lengths = t * directions.norm(dim=2)
    lengths = torch.where(torch.isnan(lengths), torch.inf, lengths)
    kept = KEPT_RAYS if side.p > 2 else KEPT_BELOW
    order = lengths.argsort(1)[:, :kept]
    rows = torch.arange(len(x), device=x.device).unsqueeze(1)
    starts = t[rows, order].unsqueeze(2) * directions[rows, order]
    sizes = lengths[rows, order]
    lost = torch.isinf(sizes[:, 0]).nonzero().squeeze(1)
    if len(lost):
        far, hit = descend(side, x[lost], generator)
        here = lost[hit]
        slope = far[hit] @ side.u.T
        one = torch.ones_like(sizes[here, 0])
        part = root(partial(along, side, z[here], slope), torch.zeros_like(one), one)
        starts[here, 0] = part.unsqueeze(1) * far[hit]
        sizes[here, 0] = starts[here, 0].norm(dim=1)
    starts = torch.where(torch.isfinite(sizes).unsqueeze(2), starts, 0.0)
    best = torch.full_like(sizes[:, 0], torch.inf)
    delta = torch.zeros_like(x)
    every = side.p == 1 and complete(side)
    for k in range(1 if every else sizes.shape[1]):
        here = torch.isfinite(sizes[:, k]).nonzero().squeeze(1)
        if not len(here):
            continue
        shorter = starts[here, k] if every else shorten(side, z[here], starts[here, k])
        starts[here, k], size = shorter, shorter.norm(dim=1)
        wins = size < best[here]
        delta[here[wins]], best[here[wins]] = shorter[wins], size[wins]
    if side.p > 1:
        pieces = nearest_off(side, z, best)
        delta = shorten_off(side, z, pieces, delta)
        best = torch.where(delta.any(1), delta.norm(dim=1), torch.inf)
    else:
        pieces = nearest_pieces(side, z, best, z.unsqueeze(1) + starts @ side.u.T > 0)
    depth = (1 + z.abs().amax(1, keepdim=True)) * (pieces.inward @ side.u)
    return [Candidate(pieces.nu @ side.u, pieces.length, depth), Candidate(delta, best, delta)]


def verified(
    net: TwoLayerNet, reduced: Reduced, x: Rows, y: Labels, candidates: list[Candidate]
) -> Found:
    """The shortest candidate of each point that breaks the given net, moved on by a hair where it must."""
    target = target_of(net, tuple(x.shape[1:]))
    radius = torch.full((len(x),), torch.inf, dtype=torch.float64, device=x.device)
    out = torch.zeros_like(x)
    ladder = hairs(x.dtype, reduced.spread)
    for chunk in torch.arange(len(x), device=x.device).split(ROWS):
        if (
            net.b is None
        ):  # f(0) = 0 breaks: all that own neurons leave which span the space positively
            radius[chunk], out[chunk] = x[chunk].to(torch.float64).norm(dim=1), -x[chunk]
        clean = margins(target, x[chunk], y[chunk]) <= 0
        radius[chunk[clean]], out[chunk[clean]] = 0.0, 0.0
        for candidate in candidates:
            here = chunk[~clean & torch.isfinite(candidate.length[chunk])]
            for hair in ladder:
                if not len(here):
                    break
                move = (candidate.delta[here] + hair * candidate.inward[here]) @ reduced.axes.T
                move = move.to(x.dtype)
                size = move.to(torch.float64).norm(dim=1)
                useful = size < radius[here]
                here, move, size = here[useful], move[useful], size[useful]
                broken = margins(target, x[here] + move, y[here]) <= 0
                hit = here[broken]
                radius[hit], out[hit] = size[broken], move[broken]
                here = here[~broken]
    return Found(radius.to(x.dtype), out)


def margins(target: Target, x: Rows, y: Labels) -> Numbers:
    """The margin of each row by the model itself, a chunk at a time."""
    parts = zip(x.split(ROWS), y.split(ROWS), strict=True)
    return torch.cat([margin(target.scores(at), label) for at, label in parts])
