r"""Certified radii of the symmetric net with its noise smoothed in closed form (allenzhu2020, Section 4).

    f(x) = sum_i E[relu(<w_i, x> - b_i + rho) - relu(-<w_i, x> - b_i + rho)],    rho ~ N(0, sigma^2)

f is odd, so y f(x + delta) = f(y x + y delta), and a point is proved at radius r where f is positive over the
ball around y x. Each neuron relaxed by itself pays for all features at once, though a perturbation can move
few: here the neurons of one feature are one function of its coordinate t_j (`axes`, `cells`), and a sum of such
functions has an almost exact bound over sum_j t_j^2 <= r^2 (`spend`).

**What is left of the neurons** off their axes, rho_i = <rest_i, delta>, is bounded one by one first. Where this
does not prove the point, a price is put on all of them together: for any gamma_i >= 0, with mu the largest
eigenvalue of sum_i gamma_i rest_i rest_i',

    f(x + delta) >= sum_i ( phi_i + gamma_i rho_i^2 / 2 ) - mu ||delta||^2 / 2.

It is there where all neurons have one bias, as in the paper, and sigma > 0.

l2 and l1 have axes near the neurons. In linf the ball is a box, and the axes are its edges if none are given:
sum t_j^2 <= D r^2 and |t_j| <= r ||u_j||_1. The certificate is for the given weights in exact arithmetic;
SLACK allows for float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.attack.norms import LINF, Norm, known_norm
from tacit.base.checks import check_finite, check_signs
from tacit.base.shapes import Numbers, Rows
from tacit.certify.interval import Radii, at_least
from tacit.certify.symmetric.axes import Axes, axes_of, found_axes, orthonormal
from tacit.certify.symmetric.cells import pieces, straightness
from tacit.certify.symmetric.envelope import Envelope, envelope
from tacit.certify.symmetric.spend import least
from tacit.errors import CallError
from tacit.nets.smoothed import pair_slope, pair_value
from tacit.nets.symmetric import SymmetricNet

CELLS = 32  # of each coordinate
STIFF = (
    0.9  # gamma r (length of a typical rest): at 1 slopes that differ by 1 are worth just that rest
)
LIGHT = 0.05  # shorter rests, of the typical one, have the price of that one
ALIKE = 0.5  # radii within this factor 2^ALIKE have one price
ROWS = 256
SLACK = 1e-9  # of the size of the terms, off every bound, and of the budget
TOLERANCE = 0.01  # relative, of the search for a radius
ROUNDS = 30
GROWTH = 1.5


def symmetric_certified(
    net: SymmetricNet,
    x: Rows,
    y: Numbers,
    radii: Float[Tensor, " R"],
    *,
    norm: float | str | Norm = 2,
    axes: Float[Tensor, "q E"] | None = None,
) -> Bool[Tensor, "R n"]:
    """Whether each point is proved at each radius; what is proved at one is proved at all smaller ones.

    `axes`: directions of features (rows, such as M.T), made orthonormal; by default they are found.
    """
    prover, x = prepared(net, x, y, norm, axes)
    if not bool((radii.isfinite() & (radii >= 0)).all()):
        raise CallError(f"radii={radii.tolist()}: radii are finite and not negative")
    safe = torch.zeros(len(radii), len(x), dtype=torch.bool)
    done = torch.zeros(len(x), dtype=torch.bool)
    for i in radii.argsort(descending=True).tolist():
        left = (~done).nonzero().squeeze(1)
        r = torch.full((len(left),), float(radii[i]), dtype=x.dtype)
        done[left] = prover.bounds(x[left], r) > 0
        safe[i] = done
    return safe


def symmetric_radius(
    net: SymmetricNet,
    x: Rows,
    y: Numbers,
    *,
    norm: float | str | Norm = 2,
    axes: Float[Tensor, "q E"] | None = None,
) -> Radii:
    """No perturbation shorter than `lower` breaks the point; `upper` is inf, for nothing is attacked."""
    prover, x = prepared(net, x, y, norm, axes)
    return at_least(search(prover, x))


def prepared(
    net: SymmetricNet,
    x: Rows,
    y: Numbers,
    norm: float | str | Norm,
    axes: Float[Tensor, "q E"] | None,
) -> tuple[Prover, Rows]:
    """One finite net in float64 on the host, and y x."""
    if net.ensemble:
        raise CallError("an ensemble is certified member by member: pass one net at a time")
    check_finite("x or the net", x, net.w, net.b, remedy="no radius can be given")
    if x.shape[1] != net.w.shape[1] or len(x) != len(y):
        raise CallError(
            f"x has shape {tuple(x.shape)}, y {tuple(y.shape)}: the net takes {net.w.shape[1]} columns, with one "
            "label a row"
        )
    check_signs(y)
    if bool((net.b < 0).any()):
        raise CallError("the net has a negative bias: its certificate is for b >= 0")
    norm, net = known_norm(norm), net.to("cpu").double()
    w, D = net.w.detach(), net.w.shape[1]
    if axes is None:
        u = torch.eye(D, dtype=w.dtype) if norm is LINF else found_axes(w)
    else:
        if axes.dim() != 2 or axes.shape[1] != D or len(axes) > D:
            raise CallError(f"axes: at most {D} rows of {D} numbers, one a feature")
        u = orthonormal(axes.detach().to(w))
    x = y.to(w).unsqueeze(1) * x.detach().to(w)
    return Prover(replace(net, w=w, b=net.b.detach()), norm, axes_of(w, u, norm)), x


@dataclass(frozen=True)
class Price:
    """gamma of each neuron with its table, and the largest eigenvalue of sum_i gamma_i rest_i rest_i'."""

    soft: Envelope
    mu: float


@dataclass(frozen=True)
class Prover:
    """A net with its axes."""

    net: SymmetricNet
    norm: Norm
    axes: Axes

    def bounds(self, x: Rows, r: Numbers) -> Numbers:
        """A lower bound of f over each ball; where it is positive without a price, none is tried."""
        found = torch.stack([self.bound(x[i], float(r[i])) for i in range(len(x))]) if len(x) else r
        left = (~(found > 0)).nonzero().squeeze(1)
        if self.net.sigma == 0 or float(self.net.b.max() - self.net.b.min()) > 0:
            return found
        # one price for radii that are alike
        kind = (r[left].clamp_min(SLACK).log2() / ALIKE).round()
        for each in kind.unique().tolist():
            here = left[kind == each]
            price = self.price(x[here], r[here])
            for i in here.tolist() if price is not None else ():
                found[i] = torch.fmax(found[i], self.bound(x[i], float(r[i]), price))
        return found

    def bound(
        self, x: Float[Tensor, " D"], r: float, price: Price | None = None
    ) -> Float[Tensor, ""]:
        """A lower bound of f over the ball of radius r around x."""
        net, z = self.net, self.net.w @ x
        longest = math.sqrt(len(x)) if self.norm is LINF else 1.0
        budget = (r * longest) ** 2 * (1 + SLACK)
        parts = pieces(
            net, self.axes, x, r, self.norm, CELLS, None if price is None else price.soft
        )
        if price is not None:
            parts = replace(parts, bend=torch.full_like(parts.slope, price.mu))
        steep = float((pair_slope(z, net.b, net.sigma) @ net.w).norm())
        guess = max(steep, SLACK) / math.sqrt(budget) if budget > 0 else 1.0
        size = pair_value(z.abs() + r * self.axes.w_dual, net.b, net.sigma).sum()
        return parts.constant + least(parts, budget, guess) - SLACK * size

    def price(self, x: Rows, r: Numbers) -> Price | None:
        """For all of these balls; only the neurons that bend in one of them have a rest to pay for."""
        straight, met = torch.ones_like(self.net.b, dtype=torch.bool), 0.0
        for some, far in zip(x.split(ROWS), r.unsqueeze(1).split(ROWS), strict=True):
            z, reach = some @ self.net.w.T, far * self.axes.w_dual
            straight &= straightness(self.net, z, reach)[1].all(0)
            met = max(met, float((z.abs() + reach).max()))
        size = self.axes.rest.norm(dim=1)
        rest, length = self.axes.rest[~straight], size[~straight].square().mean().sqrt()
        if not len(rest) or not float(length * r.max()) > 0:
            return None
        gamma = STIFF / (r.median() * (length * size.clamp_min(LIGHT * length)).sqrt())
        gamma = 2 ** ((2 * gamma.log2()).round() / 2)  # few values
        weighted = rest * gamma[~straight].sqrt().unsqueeze(1)
        gram = weighted.T @ weighted if len(rest) > rest.shape[1] else weighted @ weighted.T
        mu = float(torch.linalg.eigvalsh(gram)[-1]) * (1 + SLACK)
        far = met + 2 / float(gamma.min())
        return Price(envelope(float(self.net.b[0]), self.net.sigma, gamma, far), mu)


def search(prover: Prover, x: Rows) -> Numbers:
    """The largest radius found with a positive bound."""
    net = prover.net
    clean, gradient = net(x), net.slopes(x) @ net.w
    low, high = torch.zeros_like(clean), torch.full_like(clean, torch.inf)
    trial = clean / prover.norm.dual(gradient)
    trial = torch.where((trial > 0) & trial.isfinite(), trial, 1.0)
    here = (clean > 0).nonzero().squeeze(1)
    for _ in range(ROUNDS):
        if not len(here):
            break
        r = trial[here]
        safe = prover.bounds(x[here], r) > 0
        low[here[safe]], high[here[~safe]] = r[safe], r[~safe]
        here = here[(high - low > TOLERANCE * low)[here]]
        trial = torch.where(high.isfinite(), (low + high) / 2, low * GROWTH)
    return low * (1 - SLACK)
