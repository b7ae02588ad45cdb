r"""The distance to a node's convex set in l2, for many nodes at once: maximise c / ||g|| over the box.

c is affine in theta and q = ||g||^2 a convex quadratic, so c / sqrt(q) is quasi-concave where c > 0, and
smooth: ascent along coordinates ends at the maximum (see `relu_node.py` for the problem).

**One coordinate.** With c(t) = c + t z_i and q(t) = q + 2 t r_i + t^2 G_ii, r = W g, G the Gram matrix of the
own neurons, the derivative of c/sqrt(q) has the sign of (z_i q - c r_i) + t (z_i r_i - c G_ii): a line, whose
root is the step, clipped to the box.

**Active set.** Coordinates on the faces of the box are held there; for the others the maximum is linear: with
s = the sum over the faces, and w_i the free neurons, (lam, mu) solves the normal equations of
min ||lam s + sum mu_i w_i||^2 / 2 - lam c_s - sum mu_i z_i, and theta_i = mu_i / lam. It is taken where it
helps. A few rounds of sweeps and active-set steps reach machine precision.

**Cones.** Where all lines are 0 and nothing is constant, c and g are linear in theta: its length does not matter,
but rounding must not make it 0. A coordinate that alone is above 0 stays; the largest is put at 1 after sweeps.

**Stopping.** At delta = -(c/q) g the own neurons have values z + <w, delta> =: e, and

    gap = sum relu(e) - theta e >= 0

bounds what is missing: the maximum is at most the current value times 1 + gap / c (h(theta) = c - s ||g|| is
concave with gradient e where s is the current value). A node is left early when its bound exceeds its reach,
or when a round gains nothing that float64 could show.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.certify.relu.node import Nodes, Sides, Solved, halfspace
from tacit.certify.relu.shapes import Chosen, PerNode, Shares

SWEEPS = 3  # between active-set steps
ROUNDS = 60
GAP = 1e-13  # relative
STALL = 1e-14  # relative gain of a round below which nothing more is to be had in float64
NOISE = 1e-14  # relative: a slope below it is rounding
SNAP = 1e-14  # this close to a face of the box is on it
RIDGE = 1e-15  # relative: keeps the normal equations of dependent neurons solvable


@dataclass(frozen=True)
class Ascent:
    """Solves nodes in l2."""

    sides: Sides

    def __call__(self, nodes: Nodes, theta: Shares, reach: PerNode) -> Solved:
        """Bounds and nearest points, from a start theta; nodes farther than `reach` are left early."""
        # theta must start on the right side, c > 0; where even the largest c is not, 0 is in C
        wrong = nodes.base + (nodes.own * theta).sum(1) <= 0
        theta = torch.where(wrong.unsqueeze(1), (nodes.own > 0).to(theta.dtype), theta)
        here = (nodes.base + nodes.own.clamp_min(0).sum(1) > 0).nonzero().squeeze(1)
        before = torch.zeros_like(nodes.base)
        for _ in range(ROUNDS):
            if not len(here) or not theta.shape[1]:
                break
            some, trial = nodes.at(here), theta[here]
            for _ in range(SWEEPS):
                trial = sweep(self.sides, some, trial)
            cone = is_cone(some)
            if cone.any():
                trial[cone] /= trial[cone].amax(1, keepdim=True)
            bound = halfspace(self.sides, some, trial, 2.0)[0]
            for leap in active_set(self.sides, some, trial):
                reached = halfspace(self.sides, some, leap, 2.0)[0]
                trial = torch.where((reached > bound).unsqueeze(1), leap, trial)
                bound = torch.maximum(bound, reached)
            theta[here] = trial
            stalled = bound <= before[here] * (1 + STALL)
            before[here] = bound
            here = here[~(finished(self.sides, some, trial) | (bound >= reach[here]) | stalled)]
        bound, c, g = halfspace(self.sides, nodes, theta, 2.0)
        step = torch.where(c > 0, c / g.square().sum(1).clamp_min(1e-300), 0.0)
        return Solved(bound, theta, -step.unsqueeze(1) * g)


def sweep(sides: Sides, nodes: Nodes, theta: Shares) -> Shares:
    """One step along each coordinate in turn."""
    gram = sides.own @ sides.own.T
    g = theta @ sides.own - nodes.slope @ sides.opp
    q, r = g.square().sum(1), (g @ sides.own.T).T.contiguous()
    c = nodes.base + (nodes.own * theta).sum(1)
    # neurons as rows: each is contiguous over the nodes
    z, columns = nodes.own.T.contiguous(), theta.T.contiguous()
    cone = is_cone(nodes).nonzero().squeeze(1)
    for i in range(len(gram)):
        rise, at = z[i] * q, c * r[i]
        rise = torch.where((rise - at).abs() > NOISE * at.abs(), rise - at, 0.0)
        bend = c * gram[i, i] - z[i] * r[i]
        # a line that does not fall: the maximum is at the end of the box to which it rises
        step = torch.where(bend > 0, rise / bend, rise.sign() * 2)
        t = (columns[i] + step.nan_to_num(0.0)).clamp(0, 1) - columns[i]
        t = torch.where(c + t * z[i] > NOISE * c, t, 0.0)
        if len(cone):
            others = (columns[:, cone] > 0).sum(0) - (columns[i, cone] > 0).to(torch.long)
            t[cone] = torch.where(others > 0, t[cone], 0.0)
        columns[i] += t
        c = c + t * z[i]
        q = (q + t * (2 * r[i] + t * gram[i, i])).clamp_min(0)
        r += gram[i].unsqueeze(1) * t
    return columns.T


def is_cone(nodes: Nodes) -> Chosen:
    """Where all lines are 0 and nothing is constant."""
    return (nodes.base == 0) & (nodes.slope == 0).all(1)


def active_set(sides: Sides, nodes: Nodes, theta: Shares) -> tuple[Shares, Shares]:
    """Two candidates: the maximum over the coordinates that are inside the box, clipped to it; and the
    way from (lam, lam theta) to it, up to the first face."""
    inside = ((theta > 0) & (theta < 1)).to(theta.dtype)
    high = (theta >= 1).to(theta.dtype)
    s = high @ sides.own - nodes.slope @ sides.opp
    N, m = theta.shape
    normal = theta.new_zeros(N, m + 1, m + 1)
    normal[:, 0, 0] = s.square().sum(1)
    normal[:, 0, 1:] = normal[:, 1:, 0] = inside * (s @ sides.own.T)
    normal[:, 1:, 1:] = inside.unsqueeze(2) * (sides.own @ sides.own.T) * inside.unsqueeze(1)
    diagonal = normal.diagonal(dim1=1, dim2=2)
    diagonal += RIDGE * diagonal.sum(1, keepdim=True)
    diagonal[:, 1:] += 1 - inside
    c_s = nodes.base + (high * nodes.own).sum(1)
    best, _ = torch.linalg.solve_ex(normal, torch.cat([c_s[:, None], inside * nodes.own], 1))
    _, c, g = halfspace(sides, nodes, theta, 2.0)
    lam = c / g.square().sum(1).clamp_min(1e-300)
    start = torch.cat([lam[:, None], lam[:, None] * inside * theta], 1)
    # distances to the faces mu >= 0 and mu <= lam, and how fast they shrink
    room = torch.cat([start[:, 1:], start[:, :1] - start[:, 1:]], 1)
    left = torch.cat([best[:, 1:], best[:, :1] - best[:, 1:]], 1)
    blocks = (left < 0) & (inside.repeat(1, 2) > 0)
    t = torch.where(blocks, room / (room - left), 1.0).amin(1, keepdim=True)
    return (
        on_faces(theta, high, inside, best),
        on_faces(theta, high, inside, start + t * (best - start)),
    )


def on_faces(theta: Shares, high: Shares, inside: Shares, scaled: Float[Tensor, "N m1"]) -> Shares:
    """theta = mu / lam inside the box, snapped to faces it touches; unchanged where lam <= 0."""
    new = high + inside * (scaled[:, 1:] / scaled[:, :1]).clamp(0, 1)
    new = torch.where(new < SNAP, 0.0, torch.where(new > 1 - SNAP, 1.0, new))
    useful = torch.isfinite(new).all(1) & (scaled[:, 0] > 0)
    return torch.where(useful.unsqueeze(1), new, theta)


def finished(sides: Sides, nodes: Nodes, theta: Shares) -> Chosen:
    """At the maximum to GAP."""
    _, c, g = halfspace(sides, nodes, theta, 2.0)
    step = (c / g.square().sum(1).clamp_min(1e-300)).unsqueeze(1)
    e = nodes.own - step * (g @ sides.own.T)
    return (e.clamp_min(0) - theta * e).sum(1) <= GAP * c
