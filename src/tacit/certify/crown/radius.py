r"""Certified margins of ReLU nets over a ball, by linear relaxation (CROWN).

Zhang, Weng, Chen, Hsieh & Daniel, "Efficient neural network robustness certification with general activation
functions" (NeurIPS 2018), Section 3: where l <= z <= u,

    alpha z  <=  relu(z)  <=  u (z - l) / (u - l)     (l < 0 < u, any alpha in [0, 1]),

and relu is 0 or z itself otherwise. A linear function <a, relu(z)> is bounded from below by taking the lower
line where a >= 0 and the upper line where a < 0; an affine step turns a into L'a. Going back to the input,

    margin(x + delta)  >=  <a, x + delta> + const  >=  <a, x> + const - radius ||a||_dual.

The bounds l, u of each layer come from the same backward pass, begun at that layer, in both signs. alpha is 1
where u > -l and 0 elsewhere (the smaller area; same paper, Section 3.4), or is improved by gradient ascent, since
every alpha is sound (Xu et al., "Fast and complete", ICLR 2021). On the way back <a, z> is also bounded by the
intervals of every layer passed, and the best is kept: never worse than interval arithmetic.

The certificate is for the net with the given weights in exact arithmetic: what rounding makes of it in a
float32 forward pass is not covered. The bounds are computed in float64, less SLACK times the size of their terms.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tacit.base.checks import check_finite, check_labels, check_one_each
from tacit.base.shapes import Inputs, Numbers, Rows
from tacit.certify.crown.chain import Chain, chain_of
from tacit.errors import CallError
from tacit.nets import TwoLayerNet

SLACK = 1e-9  # times the size of the terms of a bound; their rounding is near 1e-13
CELLS = 2**23  # numbers in the largest tensor of a backward pass
ON_A_GPU = 64  # times as many: small passes leave it idle
RATE = 0.2  # of Adam on the slopes, which live in [0, 1]
# a point whose whole neighbourhood of 2^40 first-order distances is safe stays there
DOUBLINGS = 40
ROUNDS = 60  # of the root search, which needs about ten

Bands = dict[int, tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Ball:
    """Where the points may go: the ball of `radius` in `norm` around x, inside [lo, hi] where a box is given."""

    x: Rows
    radius: Numbers
    norm: float
    box: tuple[float, float] | None

    def low(self, a: Float[Tensor, "b s D"]) -> tuple[Float[Tensor, "n s"], Float[Tensor, "n s"]]:
        """The least <a, x'>, and the size of its terms.

        With a box, of two bounds the larger: over the ball, and over the cube of half-width `radius` that is cut
        by the box (for linf that is the set itself).
        """
        dual = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[self.norm]
        length = torch.linalg.vector_norm(a, dual, dim=2)
        reach = length * self.radius.unsqueeze(1)
        low = dot(a, self.x) - reach
        size = length * torch.linalg.vector_norm(self.x, self.norm, dim=1).unsqueeze(1) + reach
        if self.box is not None:
            left, right = (
                (self.x + sign * self.radius.unsqueeze(1)).clamp(*self.box) for sign in (-1, 1)
            )
            cube = dot(a, (left + right) / 2) - dot(a.abs(), (right - left) / 2)
            low = torch.maximum(low, cube)
        return low, size

    def farthest(self) -> Numbers:
        """The radius from which on the ball holds the whole box; inf without a box."""
        if self.box is None:
            return torch.full_like(self.radius, torch.inf)
        corner = torch.maximum(self.x - self.box[0], self.box[1] - self.x)
        return torch.linalg.vector_norm(corner, self.norm, dim=1)


def crown_margin(
    model: TwoLayerNet | nn.Module,
    x: Inputs,
    y: Tensor,
    radius: float | Numbers,
    *,
    norm: float = 2,
    box: tuple[float, float] | None = None,
    steps: int = 0,
) -> Numbers:
    """A lower bound of the margin over the ball: y f for one output (y = +-1), min_k z_y - z_k for logits.

    `norm` is 1, 2 or inf. With a box the bound is for the part of the ball inside it. `steps` > 0 improves the
    slopes by that many gradient steps. Which models: `crown_obstacle`. Exact where no kink lies in the ball.
    """
    chain = chain_of(model, x)
    x, a = prepared(chain, x, y, norm, box)
    size = torch.as_tensor(radius, dtype=torch.float64, device=x.device).expand(len(x))
    if not bool((size.isfinite() & (size >= 0)).all()):
        raise CallError(f"radius={radius}: radii are finite and not negative")
    ball = Ball(x, size, float(norm), box)
    return torch.cat(
        [lower_margin(chain, part, seed, steps) for part, seed in chunks(chain, ball, a)]
    )


def crown_radius(
    model: TwoLayerNet | nn.Module,
    x: Inputs,
    y: Tensor,
    *,
    norm: float = 2,
    box: tuple[float, float] | None = None,
    steps: int = 0,
    tolerance: float = 1e-5,
) -> Numbers:
    """A radius in which nothing breaks the point: 0 where the clean margin is <= 0, inf if nothing in a box does.

    The largest radius found whose `crown_margin` is positive, by a root search to a relative `tolerance`. Every
    radius returned was itself certified, so that is sound although the bound need not fall with the radius: with
    several hidden layers a slope alpha may change with it (with one layer and no box it falls).
    """
    chain = chain_of(model, x)
    shape = x.shape[1:]
    x, a = prepared(chain, x, y, norm, box)
    found = []
    for ball, seed in chunks(chain, Ball(x, x.new_zeros(len(x)), float(norm), box), a):

        def margin(
            here: Int[Tensor, " m"], r: Float[Tensor, " m"], ball: Ball = ball, seed: Tensor = seed
        ) -> Float[Tensor, " m"]:
            return lower_margin(chain, replace(ball, x=ball.x[here], radius=r), seed[here], steps)

        first = first_order(chain, ball, seed, shape)
        found.append(largest_certified(margin, first, ball.farthest(), tolerance))
    return torch.cat(found) if found else x.new_zeros(0)


def prepared(
    chain: Chain, x: Tensor, y: Tensor, norm: float, box: tuple[float, float] | None
) -> tuple[Rows, Float[Tensor, "n s k"]]:
    """Points as rows of float64, and each point's margins as rows of coefficients of the outputs."""
    if norm not in (1, 2, math.inf):
        raise CallError(f"norm={norm}: CROWN bounds are for 1, 2 and inf")
    x = x.detach().double().flatten(1) if x.dim() > 1 else x.detach().double().unsqueeze(1)
    check_finite("x", x)
    if box is not None and not bool(((x >= box[0]) & (x <= box[1])).all()):
        raise CallError(f"box={box}: points lie in [{x.min():g}, {x.max():g}]; widen the box")
    check_one_each(y, x)
    return x, margin_rows(y.to(x.device), chain.outputs).double()


def margin_rows(y: Tensor, outputs: int) -> Float[Tensor, "n s k"]:
    """The margins as linear functions of the outputs: y f, or z_y - z_k for every k != y."""
    check_labels(y, outputs)
    if outputs == 1:
        return y.double().reshape(-1, 1, 1)
    y = y.long().unsqueeze(1)
    others = torch.arange(outputs - 1, device=y.device)
    others = others + (others >= y)
    unit = torch.eye(outputs, dtype=torch.float64, device=y.device)
    return unit[y] - unit[others]


def chunks(
    chain: Chain, ball: Ball, a: Float[Tensor, "n s k"]
) -> list[tuple[Ball, Float[Tensor, "m s k"]]]:
    """As many points at a time as leave a backward pass room for 16 rows, or for all margins."""
    most = max(1, cells(ball.x) // (chain.width * max(16, a.shape[1])))
    return [
        (replace(ball, x=x, radius=r), seed)
        for x, r, seed in zip(
            ball.x.split(most), ball.radius.split(most), a.split(most), strict=True
        )
    ]


def cells(x: Tensor) -> int:
    """CELLS for the device of x."""
    return CELLS * ON_A_GPU if x.is_cuda else CELLS


def lower_margin(chain: Chain, ball: Ball, a: Float[Tensor, "n s k"], steps: int) -> Numbers:
    """The smallest of the lower bounds of each point's margins."""
    n, s = a.shape[:2]
    a = a.reshape(n, s, *chain.shapes[-1])
    bands = all_bands(chain, ball)
    end = len(chain.steps)
    best = torch.maximum(*backward(chain, ball, a, end, bands))
    if not steps or not bands:
        return best.amin(1)
    slopes = {
        i: area_slope(low, high).unsqueeze(1).repeat(1, s, *[1] * (low.dim() - 1)).requires_grad_()
        for i, (low, high) in bands.items()
    }
    ascent = torch.optim.Adam(slopes.values(), lr=RATE, maximize=True)
    for _ in range(steps):
        ascent.zero_grad()
        with torch.enable_grad():
            over_ball, _ = backward(chain, ball, a, end, bands, slopes=slopes)
            over_ball.sum().backward()
        best = torch.maximum(best, over_ball.detach())
        ascent.step()
        for slope in slopes.values():
            slope.detach().clamp_(0, 1)
    with torch.no_grad():
        best = torch.maximum(best, backward(chain, ball, a, end, bands, slopes=slopes)[0])
    return best.amin(1)


def all_bands(chain: Chain, ball: Ball) -> Bands:
    """l and u of what enters each ReLU, (n, *shape), by a backward pass from it in both signs."""
    bands: Bands = {}
    n = len(ball.x)
    for i, step in enumerate(chain.steps):
        if not isinstance(step, nn.ReLU):
            continue
        shape = chain.shapes[i]
        # before the first ReLU the coefficients are the same for all points
        rows = max(1, cells(ball.x) // (chain.width * (max(1, n) if bands else 1)))
        low, high = [], []
        for part in torch.arange(shape.numel(), device=ball.x.device).split(rows):
            end, a, const = chain.rows(i, part)
            low.append(torch.maximum(*backward(chain, ball, a, end, bands, const=const)))
            high.append(-torch.maximum(*backward(chain, ball, -a, end, bands, const=-const)))
        bands[i] = (torch.cat(low, 1).reshape(n, *shape), torch.cat(high, 1).reshape(n, *shape))
    return bands


def backward(
    chain: Chain,
    ball: Ball,
    a: Tensor,
    end: int,
    bands: Bands,
    *,
    slopes: dict[int, Tensor] | None = None,
    const: Float[Tensor, "1 s"] | None = None,
) -> tuple[Float[Tensor, "n s"], Float[Tensor, "n s"]]:
    """Lower bounds of <a, z> + const for z that enters step `end`: over the ball, and by the bands passed.

    a has shape (n, s, *shape), or (1, s, *shape) where all points share it. `slopes` holds alpha for each ReLU.
    """
    const = ball.x.new_zeros(1, a.shape[1]) if const is None else const
    size = const.abs()
    by_bands = ball.x.new_full((1, 1), -torch.inf)
    for i in reversed(range(end)):
        if isinstance(chain.steps[i], nn.ReLU):
            low, high = (band.clamp_min(0).flatten(1) for band in bands[i])
            rising, falling = a.clamp_min(0).flatten(2), a.clamp_max(0).flatten(2)
            fallen = dot(falling, high)
            bound = dot(rising, low) + fallen + const
            slack = SLACK * (dot(rising, high) - fallen + size)
            by_bands = torch.maximum(by_bands, bound - slack)
            a, drop = relaxed(a, *bands[i], slopes[i] if slopes else None)
            const, size = const + drop, size - drop
        else:
            shift = chain.shift[i]
            if shift is not None:
                terms = (a * shift).flatten(2)
                const, size = const + terms.sum(2), size + terms.abs().sum(2)
            a = chain.pull(i, a)
    least, terms = ball.low(a.flatten(2))
    over_ball = least + const - SLACK * (terms + size)
    return over_ball, by_bands.expand_as(over_ball)


def relaxed(
    a: Tensor, low: Tensor, high: Tensor, slope: Tensor | None
) -> tuple[Tensor, Float[Tensor, "n s"]]:
    """Coefficients before the ReLU from those behind it, and the constant (<= 0) that this costs."""
    below, above = low.clamp_max(0).unsqueeze(1), high.clamp_min(0).unsqueeze(1)
    # 1 where the neuron is on, 0 where it is off, and no intercept in both cases
    chord = above / (above - below).clamp_min(1e-300)
    area = area_slope(low, high).unsqueeze(1)
    if slope is not None:
        area = torch.where((below < 0) & (above > 0), slope, area)
    falling = a.clamp_max(0)
    drop = -dot(falling.flatten(2), (chord * below).flatten(1))
    return a.clamp_min(0) * area + falling * chord, drop


def area_slope(low: Tensor, high: Tensor) -> Tensor:
    """alpha of the smaller area: 1 where the neuron is on or mostly on, 0 elsewhere."""
    return (high.clamp_min(0) > -low.clamp_max(0)).double()


def dot(a: Float[Tensor, "b s D"], v: Rows) -> Float[Tensor, "n s"]:
    """<a_ns, v_n>, where b is n or 1."""
    if len(a) == 1:
        return v @ a[0].T
    return torch.bmm(a, v.unsqueeze(2)).squeeze(2)


def first_order(chain: Chain, ball: Ball, a: Float[Tensor, "n s k"], shape: torch.Size) -> Numbers:
    """margin / ||gradient||_dual at x: where a search may start (1 where the gradient vanishes)."""
    dual = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[ball.norm]
    x = ball.x.reshape(-1, *shape).clone().requires_grad_()
    with torch.enable_grad():
        margin = torch.einsum("nsk,nk->ns", a, chain(x)).amin(1)
        (gradient,) = torch.autograd.grad(margin.sum(), x)
    length = torch.linalg.vector_norm(
        gradient.flatten(1) if shape else gradient[:, None], dual, dim=1
    )
    distance = margin.detach() / length
    return torch.where((distance > 0) & distance.isfinite(), distance, 1.0)


def largest_certified(
    margin: Callable[[Int[Tensor, " m"], Float[Tensor, " m"]], Float[Tensor, " m"]],
    start: Numbers,
    limit: Numbers,
    tolerance: float,
) -> Numbers:
    """The largest radius found with a positive margin bound: 0 where there is none, inf from `limit` on.

    Doubling from `start`, then the Illinois rule with a bisection every third round. `margin(here, r)` bounds the
    points `here` at radii r.
    """
    everyone = torch.arange(len(start), device=start.device)
    low, low_value = torch.zeros_like(start), margin(everyone, torch.zeros_like(start))
    high, high_value = start.clone(), torch.full_like(start, -torch.inf)
    here = everyone[low_value > 0]
    for _ in range(DOUBLINGS):
        value = margin(here, high[here])
        high_value[here] = value
        here = here[value > 0]
        low[here], low_value[here] = high[here], high_value[here]
        here = here[low[here] < limit[here]]
        if not len(here):
            break
        high[here] *= 2
    bracketed = (low_value > 0) & (high_value <= 0)
    for k in range(ROUNDS):
        here = everyone[bracketed & (high - low > tolerance * high)]
        if not len(here):
            break
        left, right = low[here], high[here]
        part = low_value[here] / (low_value[here] - high_value[here]) if k % 3 < 2 else 0.5
        edge = tolerance / 2 * right
        middle = (left + (right - left) * part).clamp(left + edge, right - edge)
        value = margin(here, middle)
        safe = value > 0
        # Illinois: the end that stays counts half
        low_value[here] = torch.where(safe, value, low_value[here] / 2)
        high_value[here] = torch.where(safe, high_value[here] / 2, value)
        low[here], high[here] = torch.where(safe, middle, left), torch.where(safe, right, middle)
    return torch.where(low >= limit, torch.inf, low)
