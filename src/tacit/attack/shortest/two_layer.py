r"""Short perturbations of two-layer nets in the coordinates of the reduced net (l2, no box).

For the points of one label fold it into the masses, m_j = y A_j: own neurons have m > 0, opposite ones m <
0, and

    margin(delta) = sum_j m_j relu(z_j + <u_j, delta>)^p,       z = U x + s.

**Rays** towards each opposite neuron (and several of them, p <= 2), to where the own neurons are off (least
norm), to 0, down the gradient and at random are followed to the first change of sign; on a ray z is linear
in t, so that nothing but (n, K) arrays move. **Newton** (p > 1): at a shortest perturbation delta + lam
grad = 0 and margin = 0 for some lam >= 0; Newton's step on that system, or the nearest point of the
linearised broken half-space where it does not help, is followed by a walk back to the boundary along the
ray, and is kept only where the perturbation gets shorter: every step is a broken point. **Majorising** (1 <
p < 2): own neurons that nearly stop have slopes like a root of z, where Newton's step overshoots. z^p <=
z0^p + (p/2) z0^(p-2) (z^2 - z0^2), and an opposite neuron is above its tangent: with that curvature the
system is positive definite and a part of its step always helps.
**Descent** of the margin from far points serves the points that no ray breaks.
p = 1 has kinks, where these steps stall: see `convex`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Moves = Float[Tensor, "n r"]  # in the coordinates of the neurons' span
Products = Float[Tensor, "n K"]  # with each neuron

GRID = 12
REACH = 1.5  # of each ray, in units of its direction
MOST_RAYS = 16  # towards this many of the heaviest opposite neurons
RANDOM_RAYS = 2
ROOT_STEPS = 14
STEPS_LINEAR = ("half-space",) * 40
STEPS_ABOVE = ("half-space", "newton", "newton") * 3 + ("half-space",)  # p >= 2
STEPS_BELOW = ("majorised", "majorised", "newton") * 7  # p < 2
LEAST_GAIN = 1e-9
LARGEST_SOLVED = 64  # coordinates: beyond, Newton's linear systems cost more than they bring
DESCENT_STEPS = 80
DESCENT_STARTS = 12
FAR = (1.0, 3.0, 10.0)  # how far from x the descent begins, in units of ||x||


@dataclass(frozen=True)
class Side:
    """What the points of one label see: unit directions u, shifts s, signed masses m and the power p."""

    u: Float[Tensor, "K r"]
    s: Float[Tensor, " K"]
    m: Float[Tensor, " K"]
    p: float

    def margin(self, z: Float[Tensor, "*rows K"]) -> Float[Tensor, "*rows"]:
        """sum_j m_j relu(z_j)^p."""
        on = z.clamp_min(0)
        return (on if self.p == 1 else on**self.p) @ self.m

    def gradient(self, z: Float[Tensor, "... K"]) -> Float[Tensor, "... r"]:
        """sum_j m_j p relu(z_j)^(p-1) u_j."""
        on = z.clamp_min(0)
        slope = (on > 0).to(z.dtype) if self.p == 1 else self.p * on ** (self.p - 1)
        return (slope * self.m) @ self.u

    def z(self, x: Float[Tensor, "... r"]) -> Float[Tensor, "... K"]:
        """Projections of points."""
        return x @ self.u.T + self.s


def ray_directions(side: Side, x: Moves, generator: torch.Generator) -> Float[Tensor, "n R r"]:
    """Where to look first; the module says where to."""
    z = side.z(x)
    size = scale_of(side, x)
    opp = (side.m < 0).nonzero().squeeze(1)
    opp = opp[side.m[opp].argsort()[:MOST_RAYS]]
    far = torch.maximum(size.unsqueeze(1), -2 * side.s[opp])  # on at the end of its ray
    towards = far.unsqueeze(2) * side.u[opp] - x.unsqueeze(1)
    own = side.m > 0
    # a hair too far: at the very end relu(z)^p may be a rounding error above 0
    off = -(1 + 1e-9) * z[:, own].clamp_min(0) @ torch.linalg.pinv(side.u[own]).T
    down = -side.gradient(z)
    down = down / down.norm(dim=1, keepdim=True).clamp_min(1e-300) * size.unsqueeze(1)
    chance = torch.randn(
        len(x), RANDOM_RAYS, x.shape[1], generator=generator, dtype=x.dtype, device=x.device
    )
    chance = chance / chance.norm(dim=2, keepdim=True).clamp_min(1e-300) * size[:, None, None]
    ways = [towards, torch.stack([off, -x, down], 1), chance]
    if side.p <= 2 and len(opp) > 1:
        # several rise together: those that are nearest to being on, two, three, ... of them
        nearest = z[:, opp].argsort(1, descending=True)
        several = side.u[opp][nearest].cumsum(1)[:, 1:]
        several = several / several.norm(dim=2, keepdim=True).clamp_min(1e-300)
        ways.append(size[:, None, None] * several - x.unsqueeze(1))
    return torch.cat(ways, 1)


def scale_of(side: Side, x: Moves) -> Float[Tensor, " n"]:
    """A length for each point: its norm, and no less than what the shifts say."""
    least = side.s.abs().amax() if len(side.s) else side.s.new_zeros(())
    size = torch.maximum(x.norm(dim=1), least)
    return torch.where(size > 0, size, 1.0)


def first_on_rays(
    side: Side, z: Products, directions: Float[Tensor, "n R r"]
) -> Float[Tensor, "n R"]:
    """The first t in (0, REACH] seen to break each point on each ray; inf where none is."""
    slope = directions @ side.u.T
    at = partial(along, side, z.unsqueeze(1), slope)
    good = torch.zeros(slope.shape[:2], dtype=z.dtype, device=z.device)
    bad = torch.full_like(good, torch.inf)
    for t in torch.linspace(0, REACH, GRID + 1)[1:].tolist():
        broken = at(torch.full_like(good, t)) <= 0
        open_ = torch.isinf(bad)
        bad = torch.where(open_ & broken, t, bad)
        good = torch.where(open_ & ~broken, t, good)
    found = torch.isfinite(bad)
    return torch.where(found, root(at, good, torch.where(found, bad, good)), torch.inf)


def along(side: Side, z: Tensor, slope: Tensor, t: Tensor) -> Tensor:
    """The margin at t of each ray, whose projections are z + t slope."""
    return side.margin(z + t.unsqueeze(-1) * slope)


def root(
    at: Callable[[Tensor], Tensor], good: Tensor, bad: Tensor, steps: int = ROOT_STEPS
) -> Tensor:
    """The broken end of a bracket good (margin > 0) < bad (margin <= 0), closed by the Illinois rule."""
    high, low = at(good), at(bad)
    for _ in range(steps):
        # f = 0 on a whole stretch (ties break): halve
        between = torch.where(low < 0, (good * low - bad * high) / (low - high), (good + bad) / 2)
        value = at(between)
        broken = value <= 0
        # an end that stays has its value halved
        good, high = torch.where(broken, good, between), torch.where(broken, high / 2, value)
        bad, low = torch.where(broken, between, bad), torch.where(broken, value, low / 2)
    return bad


def shorten(side: Side, z: Products, delta: Moves) -> Moves:
    """The steps of the module from broken perturbations: broken ones, never longer (p = 1: half-spaces alone)."""
    solve = side.p > 1 and side.u.shape[1] <= LARGEST_SOLVED
    outer = (side.u.unsqueeze(2) * side.u.unsqueeze(1)).flatten(1) if solve else side.u
    share = torch.ones_like(delta[:, :1])  # of the way there: less where a whole step fails
    for kind in STEPS_ABOVE if solve and side.p >= 2 else STEPS_BELOW if solve else STEPS_LINEAR:
        at = z + delta @ side.u.T
        if kind == "half-space":
            aim = half_space_step(side, at, delta)
        else:
            aim = newton_step(side, outer, at, delta, majorise=kind == "majorised")
        aim = aim if kind == "newton" else delta + share * (aim - delta)
        closer = back_to_boundary(side, z, delta, aim)
        if kind != "newton":
            left = closer.norm(dim=1, keepdim=True) / delta.norm(dim=1, keepdim=True)
            share = torch.where(left < 1 - LEAST_GAIN, (2 * share).clamp_max(1), share / 4)
        delta = closer
    return delta


def half_space_step(side: Side, at: Products, delta: Moves) -> Moves:
    """The shortest d with margin + <grad, d - delta> <= 0."""
    g = side.gradient(at)
    wanted = (g * delta).sum(1) - side.margin(at)
    return (wanted / g.square().sum(1).clamp_min(1e-300)).unsqueeze(1) * g


def newton_step(
    side: Side, outer: Float[Tensor, "K rr"], at: Products, delta: Moves, *, majorise: bool
) -> Moves:
    """delta + d from `[H g; g' 0] [d; lam] = -[delta; margin]`, H = I + lam0 Hess; `outer` holds u_j u_j'.

    `majorise` puts the curvature of the majorant, m_i p z_i^(p-2) of own neurons alone, for the Hessian's.
    """
    n, r = delta.shape
    g = side.gradient(at)
    square = g.square().sum(1).clamp_min(1e-300)
    lam = (-(delta * g).sum(1) / square).clamp_min(0)
    floor = 1e-9 * at.abs().amax(1, keepdim=True)
    on = torch.where(at > 0, at.clamp_min(floor), 0.0)
    factor = side.m.clamp_min(0) if majorise else side.m * (side.p - 1)
    bend = torch.where(on > 0, factor * side.p * on ** (side.p - 2), 0.0)
    system = torch.zeros(n, r + 1, r + 1, dtype=at.dtype, device=at.device)
    hess = (lam.unsqueeze(1) * bend) @ outer
    system[:, :r, :r] = hess.unflatten(1, (r, r)) + torch.eye(r, dtype=at.dtype, device=at.device)
    unit = g / square.sqrt().unsqueeze(1)  # the border scaled to 1
    system[:, :r, r] = system[:, r, :r] = unit
    right = torch.cat([-delta, -(side.margin(at) / square.sqrt()).unsqueeze(1)], 1)
    step, _ = torch.linalg.solve_ex(system, right)
    return delta + step[:, :r]


def back_to_boundary(side: Side, z: Products, delta: Moves, candidate: Moves) -> Moves:
    """`candidate` stretched or shrunk to the boundary where that is shorter than the broken `delta`."""
    length = delta.norm(dim=1)
    size = candidate.norm(dim=1)
    sound = torch.isfinite(size) & (size > 0)
    candidate = torch.where(sound.unsqueeze(1), candidate, delta)
    top = torch.where(sound, length / size, 1.0)
    slope = candidate @ side.u.T
    better = sound & (along(side, z, slope, top) <= 0)
    here = better.nonzero().squeeze(1)
    if not len(here):
        return delta
    top = top[here]
    t = root(partial(along, side, z[here], slope[here]), torch.zeros_like(top), top)
    shorter = t.unsqueeze(1) * candidate[here]
    keep = shorter.norm(dim=1) <= length[here]
    delta = delta.clone()
    delta[here[keep]] = shorter[keep]
    return delta


def descend(side: Side, x: Moves, generator: torch.Generator) -> tuple[Moves, Bool[Tensor, " n"]]:
    """Lower the margin from far random points until it breaks; broken perturbations, and where there is one."""
    r = x.shape[1]
    size = scale_of(side, x)
    best = torch.zeros_like(x)
    length = torch.full_like(size, torch.inf)
    for start in range(DESCENT_STARTS):
        open_ = torch.isinf(length)
        if not bool(open_.any()):
            break
        here = open_.nonzero().squeeze(1)
        far = FAR[start % len(FAR)] * size[here].unsqueeze(1)
        way = torch.randn(len(here), r, generator=generator, dtype=x.dtype, device=x.device)
        at = far * way / way.norm(dim=1, keepdim=True).clamp_min(1e-300)
        pace = torch.zeros_like(at)
        for k in range(DESCENT_STEPS):
            z = side.z(x[here] + at)
            broken = side.margin(z) <= 0
            hit = here[broken]
            best[hit], length[hit] = at[broken], at[broken].norm(dim=1)
            stay = ~broken
            here, at, pace, z, far = here[stay], at[stay], pace[stay], z[stay], far[stay]
            if not len(here):
                break
            g = side.gradient(z)
            g = g / g.norm(dim=1, keepdim=True).clamp_min(1e-300)
            pace = 0.7 * pace + g
            at = at - 0.2 * far * (1 - k / DESCENT_STEPS) * pace
    found = torch.isfinite(length)
    return best, found
