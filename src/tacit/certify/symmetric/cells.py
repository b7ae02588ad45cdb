r"""The net near a point, bounded from below by functions of one coordinate each, piecewise linear.

With t_j = <u_j, delta> and rho_i = <rest_i, delta> a neuron adds phi(z_i + a_i t_j + rho_i), phi = `pair_value`.
Its rest is paid for by a line of slope s_i, which all neurons share as one linear form, and by the worst of
what the line misses,

    m_i(t) = min_{|rho| <= R} phi(z_i + a_i t + rho) - s_i rho + gamma rho^2 / 2,     R >= |rho_i|, gamma >= 0.

**Without gamma.** phi' is even and grows with |z| (b >= 0). So with s = phi'(v), v >= 0, phi(z) - s z rises up to
-v, falls up to v and rises again: over an interval it is least at the left end, or at the point nearest to v.

**With gamma**, m_i is at least this, and at least E(z + s/gamma) - s^2/(2 gamma), E the Moreau envelope.
Where phi' - s + gamma rho > 0 on (c, R], no rho beyond c is needed: R shrinks to (s - min phi')/gamma above 0 and
to (max phi' - s)/gamma below, over what R reaches.

**Cells.** On a piece [t0, t1] a function with slopes between p and q is at least its chord, of slope c, less
(c - p)(q - c)/(q - p) (t1 - t0): it lies above two lines, of slope p from the left end and q from the right. The
slopes of m_i are among those of phi on what the piece and R reach. Where phi is concave there, so is m_i, and
nothing is taken off. Lower bounds at the ends are as good as the values.

**Straight neurons** have one slope up to HAIR in the whole ball, and belong to the linear form.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.attack.norms import L2, Norm
from tacit.certify.symmetric.axes import Axes
from tacit.certify.symmetric.envelope import Envelope
from tacit.nets.smoothed import pair_slope, pair_value
from tacit.nets.symmetric import SymmetricNet

HAIR = 1e-9  # what the slopes of a straight neuron may do to f
SHRINK = 3  # times that R shrinks
LEAST, MOST = 1e-12, 1 - 1e-9  # slopes that lines are looked for in

Any = Float[Tensor, "*any"]
Bias = Float[Tensor, "*b"]
Table = Float[Tensor, "k T"]


@dataclass(frozen=True)
class Pieces:
    """f(x + delta) >= constant + sum_j (h_j(t_j) + slope_j t_j - bend_j t_j^2 / 2).

    `axis` are the coordinates with an h: on each of its cells, between neighbours in `ends` (k, T + 1), it is the
    chord from `left` to `right` (k, T). `reach` is how far each coordinate can go.
    """

    constant: float
    slope: Float[Tensor, " D"]
    reach: Float[Tensor, " D"]
    axis: Int[Tensor, " k"]
    ends: Float[Tensor, "k N"]
    left: Table
    right: Table
    bend: Float[Tensor, " D"]


def pieces(
    net: SymmetricNet,
    axes: Axes,
    x: Float[Tensor, " D"],
    r: float,
    norm: Norm,
    cells: int,
    soft: Envelope | None = None,
) -> Pieces:
    """The bound in the ball of radius r around x, with bend = 0: gamma is paid for by the caller."""
    z, b, sigma = net.w @ x, net.b, net.sigma
    loose, straight = straightness(net, z, r * axes.w_dual)
    bent = (~straight).nonzero().squeeze(1)
    constant = float((pair_value(z, b, sigma) - loose)[straight].sum())
    form = (slope(z, b, sigma) * straight) @ net.w

    z, b, R = (of[bent].unsqueeze(1) for of in (z, b, r * axes.rest_dual))
    line = Lined.near(z, R, b, sigma, None if soft is None else soft.at(bent))
    form = form + line.s.squeeze(1) @ axes.rest[bent]

    axis, which = axes.group[bent].unique(return_inverse=True)
    far = r * axes.reach
    ends = far[axis].unsqueeze(1) * torch.linspace(-1, 1, cells + 1, dtype=x.dtype)
    t = ends[which]
    if norm is L2:
        R = (
            axes.rest_dual[bent].unsqueeze(1)
            * (r * r - nearby(t[:, :-1], t[:, 1:]).square()).clamp_min(0).sqrt()
        )
    chords = line.below(z + axes.along[bent].unsqueeze(1) * t, R.expand(-1, cells))
    left, right = (torch.zeros_like(ends[:, 1:]).index_add_(0, which, end) for end in chords)
    return Pieces(constant, axes.u @ form, far, axis, ends, left, right, torch.zeros_like(far))


def straightness(net: SymmetricNet, z: Any, reach: Any) -> tuple[Any, Bool[Tensor, "*any"]]:
    """By how much phi leaves its tangent at most when z moves by `reach`; whether that is nothing."""
    flat, steep = slopes_between(z - reach, z + reach, net.b, net.sigma)
    loose = (steep - flat) * reach
    return loose, loose <= HAIR


@dataclass(frozen=True)
class Lined:
    """Neurons with their lines: slopes s = phi'(v), v >= 0, and biases; the envelope where gamma > 0."""

    s: Float[Tensor, "k 1"]
    v: Float[Tensor, "k 1"]
    b: Float[Tensor, "k 1"]
    sigma: float
    soft: Envelope | None = None

    @staticmethod
    def near(z: Any, R: Any, b: Any, sigma: float, soft: Envelope | None) -> Lined:
        """The slope at z where phi is convex; where it is concave about that of the chord over z - R to z + R."""
        v = z.abs()
        if sigma:
            rise = pair_value(z + R, b, sigma) - pair_value(z - R, b, sigma)
            chord = (rise / torch.where(R > 0, 2 * R, 1.0)).clamp(LEAST, MOST)
            about = (b + sigma * torch.special.ndtri(chord)).clamp_min(0)
            v = torch.where((z < 0) & (R > 0), about, v)
        return Lined(slope(v, b, sigma), v, b, sigma, soft)

    def below(self, z: Float[Tensor, "k N"], R: Table) -> tuple[Table, Table]:
        """Both ends of the chord of m_i on each cell, less what is taken off."""
        first, last = z[:, :-1], z[:, 1:]
        low, high = torch.minimum(first, last), torch.maximum(first, last)
        down, up = self.windows(low, high, R)
        m0, m1 = (self.lowest(at, down, up) for at in (first, last))
        if self.soft is not None:
            gamma = self.soft.gamma
            E = self.soft(z + self.s / gamma) - self.s.square() / (2 * gamma)
            m0, m1 = torch.maximum(m0, E[:, :-1]), torch.maximum(m1, E[:, 1:])
        p, q = slopes_between(low - down, high + up, self.b, self.sigma)
        width = last - first
        c = ((m1 - m0) / torch.where(width == 0, 1.0, width)).maximum(p).minimum(q)
        gap = (c - p) * (q - c) / torch.where(q > p, q - p, 1.0) * width.abs()
        gap = torch.where(high + up <= 0, 0.0, gap)
        return m0 - gap, m1 - gap

    def windows(self, low: Table, high: Table, R: Table) -> tuple[Table, Table]:
        """How far down and up rho goes at most in m_i, for every z in [low, high]."""
        down = up = R
        if self.soft is not None:
            for _ in range(SHRINK):
                most = slope(farthest(low - down, high), self.b, self.sigma)
                least = slope(nearby(low, high + up), self.b, self.sigma)
                down = ((most - self.s).clamp_min(0) / self.soft.gamma).minimum(down)
                up = ((self.s - least).clamp_min(0) / self.soft.gamma).minimum(up)
        return down, up

    def lowest(self, z: Table, down: Table, up: Table) -> Table:
        """min over rho in [-down, up] of phi(z + rho) - s rho."""
        left = z - down
        turn = torch.maximum(self.v, left).minimum(z + up)
        one, two = (pair_value(at, self.b, self.sigma) - self.s * (at - z) for at in (left, turn))
        return torch.minimum(one, two)


def slope(z: Any, b: Bias, sigma: float) -> Any:
    """phi'(z), at most 1 for b >= 0: at the kink of b = 0 without noise both halves would count."""
    return pair_slope(z, b, sigma).clamp_max(1.0)


def slopes_between(low: Any, high: Any, b: Bias, sigma: float) -> tuple[Any, Any]:
    """The least and the largest slope on [low, high]: at the least and the largest |z|."""
    return slope(nearby(low, high), b, sigma), slope(farthest(low, high), b, sigma)


def nearby(low: Any, high: Any) -> Any:
    """The least |z| on [low, high]."""
    return torch.maximum(low, -high).clamp_min(0)


def farthest(low: Any, high: Any) -> Any:
    """The largest |z| on [low, high]."""
    return torch.maximum(low.abs(), high.abs())
