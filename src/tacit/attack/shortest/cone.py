r"""Where all own neurons of a PolyReLU net are off (p > 1, l2): a part of the broken set that Newton cannot see.

With the label folded into the masses as in `two_layer`, the margin is at most 0 on the polyhedron

    C = {delta: z_i + <u_i, delta> <= 0 for every own i},

a cone with its apex at 0 where there are no shifts. Where no opposite neuron is on at the nearest point of C the
margin and its gradient both vanish there: no linearised step leads to it. Where one is on, the margin is below
0 there and the perturbation is shortened further.

The nearest point is delta = -U' mu with the mu >= 0 that makes z . mu - ||U' mu||^2 / 2 largest (duality),
and every mu >= 0 gives a bound, z . mu / ||U' mu||. Projected gradients (Nesterov's) come near for all points
at once, then active sets make it exact (Lawson & Hanson, Solving Least Squares Problems, chapter 23): solve
for the mu of the set; where one is negative, go as far as the first of them falls to 0 and leave it out, else
take in the neuron that is most on.

**Inwards** from the nearest point is again such a problem: the shortest d with <u_i, d> <= -1 for all i that
are at 0 there. There is none where C is thin, as where own neurons span the space positively: C is the point 0
then, which rounding misses unless the whole perturbation is -x.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.attack.shortest.convex import MOST_OWN, Shortest
from tacit.attack.shortest.two_layer import Moves, Products, Side, back_to_boundary, shorten

GRADIENT_STEPS = 100
SET_CHANGES = 3  # for each neuron, before a point is given up
RIDGE = 1e-13  # dependent directions: a large step, which some mu stops
OFF = 1e-11  # z below this part of the largest is off
AT_ZERO = 1e-7  # z above minus this part of the largest is at 0
UNBOUND = 1e5


def nearest_off(side: Side, z: Products, limit: Float[Tensor, " n"]) -> Shortest:
    """The shortest perturbation of each point that switches every own neuron off, where it beats `limit`.

    Directions are unit vectors, so it is no shorter than the largest own z: most points stop there.
    """
    own = (side.m > 0).nonzero().squeeze(1)
    found = Shortest(torch.full_like(limit, torch.inf), torch.zeros_like(z), torch.zeros_like(z))
    if not 0 < len(own) <= MOST_OWN:
        return found
    here = (z[:, own].amax(1) < limit).nonzero().squeeze(1)
    if not len(here):
        return found
    gram = side.u[own] @ side.u[own].T
    at = z[here][:, own]
    mu, solved = multipliers(gram, at, limit[here])
    here, at, mu = here[solved], at[solved], mu[solved]
    scale = at.abs().amax(1, keepdim=True)
    touched = at - mu @ gram > -AT_ZERO * scale
    depth = torch.where(touched, torch.ones_like(at), -UNBOUND)
    inward, thick = multipliers(gram, depth, torch.full_like(depth[:, 0], UNBOUND))
    found.length[here] = (mu * (mu @ gram)).sum(1).clamp_min(0).sqrt()
    found.nu[here.unsqueeze(1), own] = -mu
    found.inward[here.unsqueeze(1), own] = torch.where(thick.unsqueeze(1), -inward, 0.0)
    return found


def multipliers(
    gram: Float[Tensor, "k k"], z: Float[Tensor, "n k"], limit: Float[Tensor, " n"]
) -> tuple[Float[Tensor, "n k"], Bool[Tensor, " n"]]:
    """mu of the least distance of each row, and where it was reached below `limit`."""
    mu = near_multipliers(gram, z)
    inside = mu > 1e-6 * mu.amax(1, keepdim=True)
    mu = torch.where(inside, mu, 0.0)
    solved = torch.zeros_like(inside[:, 0])
    scale = z.amax(1).clamp_min(0)
    here = torch.arange(len(z), device=z.device)
    for _ in range(SET_CHANGES * len(gram)):
        here = here[~solved[here] & (lower_bound(gram, z[here], mu[here]) < limit[here])]
        if not len(here):
            break
        set_, old, at = inside[here], mu[here], z[here]
        system = torch.where(set_.unsqueeze(2) & set_.unsqueeze(1), gram, 0.0)
        system = system + torch.diag_embed(torch.where(set_, RIDGE, 1.0))
        new, _ = torch.linalg.solve_ex(system, torch.where(set_, at, 0.0))
        falls = set_ & (new < 0)
        part = torch.where(falls, old / (old - new), torch.inf).amin(1, keepdim=True)
        moved = torch.where(falls.any(1, keepdim=True), old + part * (new - old), new)
        left = falls & (old - part * (old - new) <= 1e-15 * old)
        moved = torch.where(left | ~set_, 0.0, moved)
        excess = torch.where(set_, -torch.inf, at - moved @ gram)
        worst, which = excess.max(1)
        whole = ~falls.any(1)
        solved[here] = whole & (worst <= OFF * scale[here])
        more = whole & ~solved[here]
        set_ = set_ & ~left
        set_[more.nonzero().squeeze(1), which[more]] = True
        mu[here], inside[here] = moved, set_
    return mu, solved & (lower_bound(gram, z, mu) < limit)


def near_multipliers(gram: Float[Tensor, "k k"], z: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
    """mu >= 0 after `GRADIENT_STEPS` of Nesterov's projected gradient from 0."""
    step = 1 / torch.linalg.matrix_norm(gram, 2)
    mu = torch.zeros_like(z)
    ahead = mu
    for k in range(GRADIENT_STEPS):
        new = (ahead + step * (z - ahead @ gram)).clamp_min(0)
        ahead = new + k / (k + 3) * (new - mu)
        mu = new
    return mu


def lower_bound(
    gram: Float[Tensor, "k k"], z: Float[Tensor, "n k"], mu: Float[Tensor, "n k"]
) -> Float[Tensor, " n"]:
    """z . mu / ||U' mu||: no point of C is closer."""
    return (z * mu).sum(1) / (mu * (mu @ gram)).sum(1).clamp_min(1e-300).sqrt()


def shorten_off(side: Side, z: Products, off: Shortest, delta: Moves) -> Moves:
    """`delta`, or what the points of `off` with an opposite neuron on are shortened to, where that is shorter."""
    start = off.nu @ side.u
    here = torch.isfinite(off.length) & (side.margin(z + start @ side.u.T) < 0)
    if not bool(here.any()):
        return delta
    start, z = start[here], z[here]
    shorter = shorten(side, z, back_to_boundary(side, z, start, start))
    old = delta[here]
    known = torch.where(old.any(1), old.norm(dim=1), torch.inf)
    delta = delta.clone()
    delta[here] = torch.where((shorter.norm(dim=1) < known).unsqueeze(1), shorter, old)
    return delta
