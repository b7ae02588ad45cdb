r"""Short perturbations of any differentiable model, in any norm, in a box or not: start, then walk the boundary.

**Starts**: down the gradient, towards the mean of each other class and the nearest of some of its points,
and at random, each followed to the first change of sign; and steps down the gradient until something
breaks. **Walk**: at a broken perturbation the margin is linearised, margin + <g, d - delta> <= 0; the
shortest such d in the norm (and the box) says where to look, and a part of the way there, adapted point by
point, is scaled back to the boundary. It is kept only where it is shorter, so every perturbation on the way
breaks its point. (DeepFool, Moosavi-Dezfooli et al. 2016, and FAB, Croce & Hein 2020, linearise in the same way.)

Starts that point the same way are one start, or the walk would find one local minimum several times. Which minima
it finds is up to the starts: points of one class alone have no other class to run towards, and may be given a
radius that is too long (two ReLU neurons in 100 dimensions: by half, in one point of five).
"""

import torch
from torch import Tensor

from tacit.attack.losses import margin, targeted
from tacit.attack.norms import Norm, Room, positive
from tacit.attack.shortest.two_layer import root
from tacit.attack.target import Target, loss_and_gradient
from tacit.base.shapes import Column, Labels, Numbers, Rows

GRID = 10
ROOT_STEPS = 8
DESCENT_STEPS = 30
WALK_STEPS = 40
LEAST_GAIN = 1e-7
LEAST_SHARE = 1e-4
MOST_CLASSES = 10  # that are aimed at one by one
SHOWN = 64  # points of each class that serve as aims
BEST_STARTS = 3
ALIKE = 0.99  # starts whose cosine is above this are one
RESTARTS = (
    0.5,
    1.0,
    2.0,
    4.0,
)  # of the descent, this many reaches away, for what is still unbroken
KICKS = 2  # of the best perturbation, by KICK of its size, each followed by another walk
KICK = 0.5
EDGE_STEPS = 30  # halvings to the edge of a flat
MOST_PIECES = 60  # of the multiplier in a box; a handful is usual


def shortest_by_walk(
    target: Target,
    x: Rows,
    y: Labels,
    norm: Norm,
    room: Room | None,
    generator: torch.Generator,
    hints: list[Rows],
) -> Rows:
    """Broken perturbations of points that are not broken clean; 0 where none was found.

    `hints` are further directions to try, each as long as it is worth following.
    """
    reach = scale(x, y, norm, room)
    ways = aims(target, x, y, norm, reach, generator) + hints
    found = [first_broken(target, x, y, way, room) for way in ways]
    found.append(descend(target, x, y, norm, room, reach, torch.zeros_like(x)))
    for pull in RESTARTS:
        open_ = (norm.size(shortest(found, norm)) == 0).nonzero().squeeze(1)
        if not len(open_):
            break
        part = room_at(room, open_)
        start = pull * reach[open_] * norm.random(x[open_], generator)
        hit = descend(target, x[open_], y[open_], norm, part, pull * reach[open_], start)
        again = torch.zeros_like(x)
        again[open_] = first_broken(target, x[open_], y[open_], hit, part)
        found.append(again)
    best = shortest([walk(target, x, y, norm, room, start) for start in ranked(found, norm)], norm)
    for _ in range(KICKS):
        size = norm.size(best).unsqueeze(1)
        way = 1.5 * (best + KICK * size * norm.random(x, generator))
        kicked = first_broken(target, x, y, way, room)
        best = shortest([best, walk(target, x, y, norm, room, kicked)], norm)
    return best


def room_at(room: tuple[Tensor, Tensor] | None, rows: Tensor) -> tuple[Tensor, Tensor] | None:
    """The box of some of the rows."""
    return None if room is None else (room[0][rows], room[1][rows])


def scale(x: Rows, y: Labels, norm: Norm, room: Room | None) -> Column:
    """How far a perturbation may have to go: to the farthest other mean, or across the box; else twice ||x||."""
    if room is not None:
        size = norm.size(torch.maximum(-room[0], room[1]))
    else:
        size = 2 * norm.size(x)
        for mean in (x[y == label].mean(0) for label in y.unique()):
            size = torch.maximum(size, 1.5 * norm.size(mean - x))
    return torch.where(size > 0, size, 1.0).unsqueeze(1)


def aims(
    target: Target, x: Rows, y: Labels, norm: Norm, reach: Column, generator: torch.Generator
) -> list[Rows]:
    """Directions, each as long as it is worth following; zero where there is none."""
    scores, _, g = loss_and_gradient(target, x, y, margin)
    ways = [-reach * norm.steepest(g)]
    for k in range(min(scores.shape[1], MOST_CLASSES) if scores.dim() == 2 else 0):
        towards = loss_and_gradient(target, x, y, targeted(torch.full_like(y, k)))[2]
        ways.append(-reach * norm.steepest(towards))
    if norm.order == 1:  # one coordinate is a poor ray: also all of them
        ways.append(-reach * g / positive(norm.size(g)).unsqueeze(1))
    for label in y.unique()[:MOST_CLASSES]:
        points = x[y == label]
        other = (y != label).unsqueeze(1)
        ways.append(1.5 * (points.mean(0) - x) * other)
        pick = torch.randperm(len(points), generator=generator, device=x.device)[:SHOWN]
        nearest = torch.cdist(x, points[pick]).argmin(1)
        ways.append((points[pick][nearest] - x) * other)
    ways.append(reach * norm.random(x, generator))
    return ways


def inside(delta: Rows, room: Room | None) -> Rows:
    """Clipped to the box."""
    return delta if room is None else delta.clamp(*room)


def margin_at(target: Target, x: Rows, y: Labels) -> Numbers:
    """The margin of each row."""
    return margin(target.scores(x), y)


def first_broken(target: Target, x: Rows, y: Labels, way: Rows, room: Room | None) -> Rows:
    """The first point of t * way, clipped to the box, 0 < t <= 1, seen to break; 0 where none is."""
    good, bad = x.new_zeros(len(x)), x.new_full((len(x),), torch.inf)
    for t in torch.linspace(0, 1, GRID + 1)[1:].tolist():
        broken = margin_at(target, x + inside(t * way, room), y) <= 0
        open_ = torch.isinf(bad)
        bad = torch.where(open_ & broken, t, bad)
        good = torch.where(open_ & ~broken, t, good)
    return between(target, x, y, way, room, good, torch.where(torch.isinf(bad), 0.0, bad))


def between(
    target: Target, x: Rows, y: Labels, way: Rows, room: Room | None, good: Numbers, bad: Numbers
) -> Rows:
    """The broken end of good < bad along `way`, closed by `root`; rows with bad = 0 stay at 0."""
    here = (bad > 0).nonzero().squeeze(1)
    out = torch.zeros_like(x)
    if not len(here):
        return out
    x, y, way, part = x[here], y[here], way[here], room_at(room, here)
    t = root(
        lambda t: margin_at(target, x + inside(t.unsqueeze(1) * way, part), y),
        good[here],
        bad[here],
        ROOT_STEPS,
    )
    out[here] = inside(t.unsqueeze(1) * way, part)
    return out


def descend(
    target: Target, x: Rows, y: Labels, norm: Norm, room: Room | None, reach: Column, start: Rows
) -> Rows:
    """Steps down the gradient of the margin, kept within `reach`, until it breaks; 0 where it does not."""
    delta, out = inside(start, room), torch.zeros_like(x)
    for k in range(DESCENT_STEPS):
        _, value, g = loss_and_gradient(target, x + delta, y, margin)
        broken = (value <= 0) & (norm.size(out) == 0)
        out[broken] = delta[broken]
        if bool((norm.size(out) > 0).all()):
            break
        step = reach * (2.5 / DESCENT_STEPS) * (1 - 0.9 * k / DESCENT_STEPS)
        # an l1 step moves one coordinate, which is slow: spread it as the gradient is
        way = g / positive(norm.size(g)).unsqueeze(1) if norm.order == 1 else norm.steepest(g)
        delta = norm.project(delta - step * way, reach, room)
    return out


def shortest(found: list[Rows], norm: Norm) -> Rows:
    """Row by row the shortest that is not 0."""
    stack = torch.stack(found)
    size = torch.stack([norm.size(f) for f in found])
    best = torch.where(size > 0, size, torch.inf).argmin(0)
    return stack[best, torch.arange(stack.shape[1], device=stack.device)]


def ranked(found: list[Rows], norm: Norm) -> list[Rows]:
    """The shortest few of each row that point different ways, shortest first; 0 where a row has no more.

    Several ways down end at one place: walks from there would find one and the same minimum.
    """
    stack = torch.stack(found)
    size = torch.stack([norm.size(f) for f in found])
    size = torch.where(size > 0, size, torch.inf)
    ways = stack / positive(stack.norm(dim=2, keepdim=True))
    rows = torch.arange(size.shape[1], device=size.device)
    kept = []
    for _ in range(min(BEST_STARTS, len(found))):
        best = size.argmin(0)
        open_ = torch.isfinite(size[best, rows]).unsqueeze(1)
        kept.append(torch.where(open_, stack[best, rows], 0.0))
        alike = (ways * ways[best, rows]).sum(2) > ALIKE
        size = torch.where(alike, torch.inf, size)
    return kept


def walk(target: Target, x: Rows, y: Labels, norm: Norm, room: Room | None, delta: Rows) -> Rows:
    """Shorten broken perturbations (rows of 0 are left alone)."""
    here = (norm.size(delta) > 0).nonzero().squeeze(1)
    out = delta.clone()
    if not len(here):
        return out
    x, y, delta = x[here], y[here], delta[here]
    part = room_at(room, here)
    share = torch.ones_like(delta[:, 0])
    for _ in range(WALK_STEPS):
        delta, at, value, g = boundary_at(target, x, y, delta)
        wanted = (g * at).sum(1) - value
        aim = nearest_of_half_space(g, wanted, norm, part)
        way = delta + share.unsqueeze(1) * (aim - delta)
        size, now = norm.size(way), norm.size(delta)
        top = torch.where(size > 0, now / size, 0.0)
        broken = margin_at(target, x + inside(top.unsqueeze(1) * way, part), y) <= 0
        broken &= torch.isfinite(size) & (size > 0)
        closer = between(target, x, y, way, part, torch.zeros_like(top), top * broken)
        better = (norm.size(closer) < now) & broken
        gain = torch.where(better, 1 - norm.size(closer) / now, 0.0)
        delta = torch.where(better.unsqueeze(1), closer, delta)
        share = torch.where(gain > LEAST_GAIN, (2 * share).clamp_max(1), share / 4)
        if bool((share < LEAST_SHARE).all()):
            break
    out[here] = delta
    return out


def boundary_at(
    target: Target, x: Rows, y: Labels, delta: Rows
) -> tuple[Rows, Rows, Numbers, Rows]:
    """Broken perturbations, and where the margin is linearised: the place, its margin and its gradient.

    Mostly the perturbation itself. Where a tie breaks on a whole stretch (all neurons off, say) the gradient is 0
    there and knows no way on: such rows are shortened to the near edge of the stretch, and linearised at the last
    unbroken place before it.
    """
    _, value, g = loss_and_gradient(target, x + delta, y, margin)
    flat = (g == 0).all(1).nonzero().squeeze(1)
    if not len(flat):
        return delta, delta, value, g
    x, y, way = x[flat], y[flat], delta[flat]
    good, bad = torch.zeros_like(way[:, :1]), torch.ones_like(way[:, :1])
    for _ in range(EDGE_STEPS):
        middle = (good + bad) / 2
        broken = (margin_at(target, x + middle * way, y) <= 0).unsqueeze(1)
        good, bad = torch.where(broken, good, middle), torch.where(broken, middle, bad)
    edge, before = delta.clone(), delta.clone()
    edge[flat], before[flat] = bad * way, good * way
    _, value[flat], g[flat] = loss_and_gradient(target, x + good * way, y, margin)
    return edge, before, value, g


def nearest_of_half_space(g: Rows, wanted: Numbers, norm: Norm, room: Room | None) -> Rows:
    """The shortest d (in the box) with <g, d> <= wanted; the farthest towards it where there is none.

    Without a box d = wanted / dual(g) steepest(g). In it, d = clip(-lam g) (l2), clip(-lam sign g) (linf)
    with the least lam that fits, and in l1 the coordinates are filled in the order of |g|.
    """
    if room is None:
        return (wanted / positive(norm.dual(g))).unsqueeze(1) * norm.steepest(g)
    need = -wanted.clamp_max(0).unsqueeze(1)  # <-g, d> must reach this
    cap = torch.where(g > 0, -room[0], room[1])
    if norm.order == 1:
        order = g.abs().argsort(1, descending=True)
        gain = (g.abs() * cap).gather(1, order)
        left = need - (gain.cumsum(1) - gain)
        part = (left / positive(gain)).clamp(0, 1)
        return -g.sign() * cap * torch.zeros_like(g).scatter(1, order, part)
    # <-g, clip(lam way)> = sum |g_i| min(lam |way_i|, cap_i) is concave, piecewise linear and rises: Newton's
    # steps from 0 rise to the answer and meet it on the piece that holds it
    size = g.abs()
    pace = size if norm.order == 2 else (g != 0).to(g.dtype)
    lam = torch.zeros_like(need)
    for _ in range(MOST_PIECES):
        move = (lam * pace).minimum(cap)
        slope = (size * pace * (lam * pace < cap)).sum(1, keepdim=True)
        missing = need - (size * move).sum(1, keepdim=True)
        going = (missing > 4 * torch.finfo(g.dtype).eps * need) & (slope > 0)
        if not bool(going.any()):
            break
        lam = torch.where(going, lam + missing / positive(slope), lam)
    return -g.sign() * (lam * pace).minimum(cap)
