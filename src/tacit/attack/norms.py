r"""A norm is its hooks: size, steepest direction, projection, extreme point, random point of the unit ball.

All of them work on rows, (n, D). `room` holds the ends of each coordinate of delta that a box on x + delta
leaves, (n, D) each, with low <= 0 <= high; without it there is no box. Every projection is the exact
Euclidean one on the intersection of ball and box:

    l2    clip(t z) with the largest t <= 1 that fits the ball (the multiplier of the ball scales z)
    linf  clip
    l1    clip(sign(z) max(|z| - lam, 0)) with the least lam >= 0 that fits (Croce & Hein 2021, "Mind the box")

The extreme point is the exact argmax of <g, delta> on that intersection: one step of it breaks a linear model.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base.shapes import Column, Numbers, Rows
from tacit.errors import CallError

Room = tuple[Rows, Rows]

MOST_ROUNDS = 40  # of a projection; a handful is usual


@dataclass(frozen=True)
class Norm:
    """`order` is 1, 2 or inf; the dual norm bounds |<g, delta>| <= dual(g) size(delta)."""

    order: float
    size: Callable[[Rows], Numbers]
    dual: Callable[[Rows], Numbers]
    steepest: Callable[[Rows], Rows]
    project: Callable[[Rows, Column, Room | None], Rows]
    extreme: Callable[[Rows, Column, Room | None], Rows]
    random: Callable[[Rows, torch.Generator], Rows]

    @property
    def name(self) -> str:
        """As the command line spells it."""
        return "inf" if self.order == math.inf else f"{self.order:g}"


def l1_size(delta: Rows) -> Numbers:
    """sum |delta|."""
    return delta.abs().sum(1)


def l2_size(delta: Rows) -> Numbers:
    """(sum delta^2)^(1/2)."""
    return delta.norm(dim=1)


def linf_size(delta: Rows) -> Numbers:
    """max |delta|."""
    return delta.abs().amax(1)


def l1_steepest(g: Rows) -> Rows:
    """All on the largest coordinate."""
    most = g.abs().argmax(1, keepdim=True)
    return torch.zeros_like(g).scatter(1, most, g.gather(1, most).sign())


def l2_steepest(g: Rows) -> Rows:
    """g / ||g||; 0 where g = 0. A g too small to be squared is scaled first."""
    scaled = g / positive(g.abs().amax(1, keepdim=True))
    return scaled / scaled.norm(dim=1, keepdim=True).clamp_min(0.5)


def linf_steepest(g: Rows) -> Rows:
    """sign(g)."""
    return g.sign()


def l2_project(z: Rows, radius: Column, room: Room | None = None) -> Rows:
    """The nearest point of the l2 ball (and the box)."""
    if room is None:
        return torch.where(l2_size(z).unsqueeze(1) <= radius, z, radius * l2_steepest(z))
    inside = z.clamp(*room)
    least = l2_scale(z, inside, radius)
    if least is None:
        return inside
    moved = least.sqrt().mul(z).clamp_(*room)
    size, slack = l2_size(moved).unsqueeze(1), 8 * torch.finfo(z.dtype).eps
    if bool((size <= radius * (1 + slack)).all()):
        return moved
    # numbers whose squares are no numbers, or rounds that did not do
    fits = l2_size(inside).unsqueeze(1) <= radius
    return torch.where(fits, inside, l2_extreme(z, radius, room))


def l2_scale(z: Rows, inside: Rows, radius: Column) -> Column | None:
    """s = t^2 <= 1 of the l2 projection, from z and its clip; None where the clip of every row fits the ball.

    phi(s) = ||clip(t z)||^2 = sum_i min(s z_i^2, inside_i^2) for s <= 1 (what 1 z_i does not clip, t z_i does
    not) rises, is concave and piecewise linear. Newton's method for phi(s) = radius^2, begun at 1, is left of
    the answer after a step and rises to it, which it meets exactly on the piece that holds it: no sorting.
    """
    squares, limit, goal = z.square(), inside.square(), radius.square()
    total = limit.sum(1, keepdim=True)
    if bool((total <= goal).all()):
        return None
    s, scaled = torch.ones_like(radius), squares.clone()
    slack = 4 * torch.finfo(z.dtype).eps * goal
    for _ in range(MOST_ROUNDS):
        free = torch.linalg.vecdot(scaled.le_(limit), squares).unsqueeze(1)
        s = (s + (goal - total) / free).clamp_(0, 1)
        torch.mul(squares, s, out=scaled)
        total = torch.minimum(scaled, limit).sum(1, keepdim=True)
        if bool(((total >= goal - slack) | (s == 1)).all()):
            return s
    return torch.full_like(s, torch.nan)


def l2_extreme(g: Rows, radius: Column, room: Room | None = None) -> Rows:
    """clip(t g) with the largest t that fits the ball.

    In units of the radius, with caps c_i <= 1 on |delta_i| and a = |g| / max |g|: if the coordinates M meet the
    box, t^2 = (1 - sum_M c_i^2) / sum_{others} a_i^2. Begun with M empty, t grows and M with it, the size never
    exceeds 1, and when M stays the same t is the answer.
    """
    if room is None:
        return radius * l2_steepest(g)
    unit = g / positive(g.abs().amax(1, keepdim=True))
    kind = torch.finfo(g.dtype)
    # entries whose squares lose digits to underflow count as 0
    unit = torch.where(unit.square() > kind.tiny / kind.eps, unit, 0.0)
    a = unit.abs()
    cap = caps(g, room).minimum(radius) / positive(radius)
    squares, cap_squares = a.square(), cap.square()
    t = torch.zeros_like(radius)
    for _ in range(g.shape[1] + 1):
        met = t * a >= cap
        spent = torch.where(met, cap_squares, 0.0).sum(1, keepdim=True)
        free = torch.where(met, 0.0, squares).sum(1, keepdim=True)
        grown = torch.where(free > 0, ((1 - spent).clamp_min(0) / positive(free)).sqrt(), torch.inf)
        grown = torch.maximum(grown, t)
        if bool((grown <= t * (1 + 4 * kind.eps)).all()):
            break
        t = grown
    moved = torch.where(a > 0, (t * a).minimum(cap), 0.0)
    # rounding may leave a hair too much, of the ball and of the box
    moved = moved * (radius / l2_size(moved).unsqueeze(1).clamp_min(1))
    return (unit.sign() * moved).clamp(*room)


def linf_project(z: Rows, radius: Column, room: Room | None = None) -> Rows:
    """The nearest point of the cube (and the box)."""
    inside = torch.minimum(torch.maximum(z, -radius), radius)
    return inside if room is None else inside.clamp(*room)


def l1_project(z: Rows, radius: Column, room: Room | None = None) -> Rows:
    """The nearest point of the l1 ball (and the box)."""
    inside = z.clone() if room is None else z.clamp(*room)
    a, cap = z.abs(), inside.abs()
    total = cap.sum(1, keepdim=True)
    if bool((total <= radius).all()):
        return inside
    lam = l1_threshold(a, cap, total, radius)
    if bool(lam.isnan().any()):
        lam = l1_threshold_sorted(a, cap, radius)
    shrunk = torch.sub(a, lam, out=a).clamp_min_(0)
    shrunk = torch.minimum(shrunk, cap, out=cap)
    # rounding of the sums may leave a hair too much
    size = shrunk.sum(1, keepdim=True)
    if bool((size > radius).any()):
        shrunk.mul_(torch.where(size > radius, radius / size, 1.0))
    return shrunk.copysign_(z)


def l1_threshold(a: Rows, cap: Rows, total: Column, radius: Column) -> Column:
    """lam of the l1 projection by Newton's method in a bracket, without sorting; NaN where it gave up.

    S(lam) = sum_i min(max(a_i - lam, 0), cap_i), with cap_i <= a_i and total = S(0), is piecewise linear and
    falls; a step on the piece that holds S(lam) = radius meets it. Steps that leave the bracket halve it.
    """
    low, high = torch.zeros_like(radius), a.amax(1, keepdim=True)
    lam, S, done, eps = low, total, total <= radius, torch.finfo(a.dtype).eps
    left, over = a.clone(), torch.empty_like(a)
    for _ in range(MOST_ROUNDS):
        # S falls with each i that is neither at 0 nor at its cap
        torch.sub(left, cap, out=over).gt_(0)
        free = left.sign_().sum(1, keepdim=True) - over.sum(1, keepdim=True)
        # S and lam are known to their last digits and no further
        done |= (S - radius).abs() <= eps * torch.maximum(8 * radius, 2 * lam * free)
        if bool(done.all()):
            return lam
        low, high = torch.where(radius < S, lam, low), torch.where(radius < S, high, lam)
        step = lam + (S - radius) / free
        step = torch.where((step > low) & (step < high), step, (low + high) / 2)
        lam = torch.where(done, lam, step)
        torch.sub(a, lam, out=left).clamp_min_(0)
        S = torch.minimum(left, cap, out=over).sum(1, keepdim=True)
    return torch.where(done, lam, torch.nan)


def l1_threshold_sorted(a: Rows, cap: Rows, radius: Column) -> Column:
    """The same by sorting the ends of its pieces: slower, and sure.

    S has slope -1 for each i between a_i - cap_i and a_i; S(lam) = radius is solved on its piece.
    """
    ends, order = torch.cat([a - cap, a], 1).sort(dim=1)
    turns = torch.cat([-torch.ones_like(a), torch.ones_like(a)], 1).gather(1, order)
    slope = turns.cumsum(1)  # on the piece that begins at each end
    ahead = torch.nn.functional.pad(ends.diff(dim=1) * slope[:, :-1], (1, 0))
    S = cap.sum(1, keepdim=True) + ahead.cumsum(1)
    piece = ((radius <= S).sum(1, keepdim=True) - 1).clamp_min(0)
    steep = slope.gather(1, piece)
    lam = ends.gather(1, piece) + torch.where(
        steep < 0, (S.gather(1, piece) - radius) / -steep.clamp_max(-1), 0.0
    )
    return torch.where(cap.sum(1, keepdim=True) <= radius, 0.0, lam.clamp_min(0))


def l1_extreme(g: Rows, radius: Column, room: Room | None = None) -> Rows:
    """The largest |g_i| first, each as far as the box lets it, until the radius is spent."""
    if room is None:
        return radius * l1_steepest(g)
    order = g.abs().argsort(dim=1, descending=True, stable=True)
    cap = caps(g, room).minimum(radius).gather(1, order)
    left = (radius - (cap.cumsum(1) - cap)).clamp_min(0)
    return torch.zeros_like(g).scatter(1, order, cap.minimum(left)) * g.sign()


def linf_extreme(g: Rows, radius: Column, room: Room | None = None) -> Rows:
    """The corner that sign(g) points at."""
    return linf_project(radius * g.sign(), radius, room)


def caps(z: Rows, room: Room) -> Rows:
    """How far each coordinate can go to the side that z points to."""
    return torch.where(z > 0, room[1], -room[0]).clamp_min(0)


def positive(t: Float[Tensor, " *any"]) -> Float[Tensor, " *any"]:
    """t where t > 0, else 1: a divisor."""
    return torch.where(t > 0, t, 1.0)


def l1_random(like: Rows, generator: torch.Generator) -> Rows:
    """Uniform in the l1 ball: exponential spacings with random signs."""
    n, D = like.shape
    gaps = torch.empty(n, D + 1, dtype=like.dtype, device=like.device).exponential_(
        generator=generator
    )
    signs = torch.where(uniform(like, generator) < 0.5, -1.0, 1.0)
    return signs * gaps[:, :D] / gaps.sum(1, keepdim=True)


def l2_random(like: Rows, generator: torch.Generator) -> Rows:
    """Uniform in the l2 ball."""
    g = torch.empty_like(like).normal_(generator=generator)
    far = uniform(like[:, :1], generator) ** (1 / like.shape[1])
    return l2_steepest(g) * far


def linf_random(like: Rows, generator: torch.Generator) -> Rows:
    """Uniform in the cube."""
    return 2 * uniform(like, generator) - 1


def uniform(like: Rows, generator: torch.Generator) -> Rows:
    """Uniform on [0, 1), of the shape, type and device of `like`."""
    return torch.empty_like(like).uniform_(generator=generator)


L1 = Norm(1.0, l1_size, linf_size, l1_steepest, l1_project, l1_extreme, l1_random)
L2 = Norm(2.0, l2_size, l2_size, l2_steepest, l2_project, l2_extreme, l2_random)
LINF = Norm(math.inf, linf_size, l1_size, linf_steepest, linf_project, linf_extreme, linf_random)
NORMS = {norm.name: norm for norm in (L1, L2, LINF)}


def known_norm(norm: float | str | Norm) -> Norm:
    """1, 2 or inf, as a number, as text ("inf" or "linf"), or the norm itself."""
    if isinstance(norm, Norm):
        return norm
    try:
        name = norm.removeprefix("l") if isinstance(norm, str) else f"{norm:g}"
    except (TypeError, ValueError):
        name = ""
    if name not in NORMS:
        raise CallError(f"norm {norm}: choose {', '.join(NORMS)}")
    return NORMS[name]
