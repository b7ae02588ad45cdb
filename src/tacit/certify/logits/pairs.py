r"""The margin of a PolyReLU net between two logits, as one sum: what is bounded over a ball.

With c = x - centre, u_j = w_j / ||w_j||, a_j = (v_yj - v_kj) ||w_j|| and beta = b_y - b_k - tau,

    F(c) = sum_j a_j phi(<u_j, c>) + beta ||c||^e,    phi(z) = relu(z)^p

has the sign of z_y - z_k - tau: logits are a power of ||c|| times a sum of phi, plus biases, and e = p-1 as
released, p as written, 0 raw (`nets.poly_relu`). Lengths are measured in units of ||c||, so that no power
overflows: c has length 1 (or 0).

**The radial term.** With S = ||c + delta||^2 = ||c||^2 + 2 <c, delta> + ||delta||^2 it is beta S^q, q =
e/2: convex or concave in S >= 0, so its tangent, or its chord over the values that S takes in the ball,
lies below: beta S^q >= const + slant S, a quadratic function of delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.attack.norms import Norm
from tacit.certify.logits.parabola import lines, phi, slope
from tacit.nets import PolyReLUNet

SLACK = 1e-10  # times the size of the terms of a bound; their rounding is near 1e-13
ALONG = 1e-2  # of SLACK: projections are off by rounding next to ||c||
EDGE = 1e-12  # balls are this much larger


@dataclass(frozen=True)
class Pairs:
    """Margins of pairs (point, rival): F at c and in the ball of radius r around it, lengths in units of `unit`.

    u (h, D) has rows of length 1 (or 0); `dual` are their dual norms, t = <u_j, c>; `longest` is the largest l2
    norm in the unit ball of the norm; `power` is e.
    """

    u: Float[Tensor, "h D"]
    dual: Float[Tensor, " h"]
    longest: float
    p: float
    power: float
    a: Float[Tensor, "m h"]
    beta: Float[Tensor, " m"]
    c: Float[Tensor, "m D"]
    t: Float[Tensor, "m h"]
    unit: Float[Tensor, " m"]

    def at(self, here: Int[Tensor, " k"] | Bool[Tensor, " m"] | slice) -> Pairs:
        """Some of the pairs."""
        return replace(
            self,
            a=self.a[here],
            beta=self.beta[here],
            c=self.c[here],
            t=self.t[here],
            unit=self.unit[here],
        )

    def margin(self) -> Float[Tensor, " m"]:
        """F at the points, less rounding."""
        nothing = torch.zeros_like(self.beta)
        R = self.c.norm(dim=1) ** self.power
        return (self.a * phi(self.t, self.p)).sum(1) + self.beta * R - self.slack(nothing)

    def gradient(self) -> Float[Tensor, "m D"]:
        """Of F at the points, where |c| = 1."""
        g = (self.a * slope(self.t, self.p)) @ self.u
        return g + self.power * self.beta.unsqueeze(1) * self.c

    def slack(self, r: Float[Tensor, " m"]) -> Float[Tensor, " m"]:
        """What is taken off a bound over the ball for rounding."""
        far = self.t.abs() + r.unsqueeze(1) * self.dual
        terms = phi(far, self.p) + ALONG * slope(far, self.p)
        bias = self.beta.abs() * (1 + r * self.longest) ** self.power
        return SLACK * ((self.a.abs() * terms).sum(1) + bias)

    def radial_below(
        self, r: Float[Tensor, " m"]
    ) -> tuple[Float[Tensor, " m"], Float[Tensor, " m"]]:
        """(const, slant) with beta ||c + delta||^e >= const + slant (2 <c, delta> + ||delta||^2) in the ball."""
        if self.power == 0:
            return self.beta, torch.zeros_like(self.beta)
        q, far = self.power / 2, r * self.longest
        here = self.c.norm(dim=1)
        low, high = (here - far).clamp_min(0).square(), (here + far).square()
        touch = here.square() + far.square()  # any: S is about that large
        convex = self.beta >= 0 if q >= 1 else self.beta <= 0
        tangent = q * touch ** (q - 1)
        width = torch.where(high > low, high - low, 1.0)
        chord = torch.where(high > low, (high**q - low**q) / width, 0.0)
        rise = torch.where(convex, tangent, chord)
        base = torch.where(convex, touch**q - tangent * touch, low**q - chord * low)
        return self.beta * (base + rise * here.square()), self.beta * rise


def pairs_of(
    net: PolyReLUNet,
    x: Float[Tensor, "n D"],
    own: Int[Tensor, " n"],
    rival: Int[Tensor, " n"],
    tau: Float[Tensor, " n"],
    norm: Norm,
) -> Pairs:
    """Of each point the margin z_own - z_rival - tau of one float64 net."""
    c = x if net.centre is None else x - net.centre
    size = c.norm(dim=1)
    unit = torch.where(size > 0, size, 1.0)
    length = net.w.norm(dim=1)
    u = net.w / torch.where(length > 0, length, 1.0).unsqueeze(1)
    beta = -tau if net.b is None else net.b[own] - net.b[rival] - tau
    power = net.p if net.unit else net.p - 1 if net.normalize_input else 0.0
    beta = beta * unit ** (power - net.p)
    a = (net.v[own] - net.v[rival]) * length
    longest = math.sqrt(x.shape[1]) if norm.order == math.inf else 1.0
    c = c / unit.unsqueeze(1)
    return Pairs(u, norm.dual(u), longest, net.p, power, a, beta, c, c @ u.T, unit)


def turned(pairs: Pairs, basis: Float[Tensor, "D h"]) -> Pairs:
    """The same margins in h + 1 coordinates (l2): `basis` spans the rows of u, the last one is the rest of c."""
    along = pairs.c @ basis
    rest = (pairs.c - along @ basis.T).norm(dim=1, keepdim=True)
    u = torch.nn.functional.pad(pairs.u @ basis, (0, 1))
    return replace(pairs, u=u, c=torch.cat([along, rest], 1))


def linear_bound(pairs: Pairs, norm: Norm, r: Float[Tensor, " m"]) -> Float[Tensor, " m"]:
    """A lower bound of F over the ball, r > 0, by a line below each neuron: CROWN (Zhang et al. 2018)."""
    reach = r.unsqueeze(1) * pairs.dual.clamp_min(EDGE)
    alpha, beta = lines(pairs.a, pairs.t, reach, torch.zeros_like(pairs.t), pairs.p)
    const, slant = pairs.radial_below(r)
    g = beta @ pairs.u + 2 * slant.unsqueeze(1) * pairs.c
    square = slant.clamp_max(0) * (r * pairs.longest).square()
    return alpha.sum(1) + const + square - r * norm.dual(g) - pairs.slack(r)
