r"""The weights on their way, and which neurons can fire on a batch.

On a batch a neuron's slope is at most 2 Phi(u_i), u_i = (max_n |<w_i, x_n>| + reach_i - b_i) / sigma, where
reach_i = radius ||w_i||_dual bounds what a perturbation can add. Where Phi(u_i) is below `negligible` the neuron
sleeps through the step: it adds less than rounding to f, and its own weights would move by at most

    eta mean_n(l'_n ||x_n||) 2 Phi(u_i),                                                (what is left out)

which is summed up and reported. Once the points have moved, u_i is known without the bound, and more sleep.
What a sleeper does feel is the regulariser, and this only scales it: with s = 1 - eta decay (1 + ||w||), w <- s w
and ||w|| <- s ||w||. The factors of each neuron are gathered in one number and multiplied in when it wakes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.attack.norms import Norm
from tacit.base.shapes import Rows
from tacit.nets.smoothed import DENSITY, chance, quantile
from tacit.nets.symmetric import SymmetricNet

MOST_ASLEEP = (
    0.9  # share of awake neurons from which all are taken: copies cost more than they save
)

Neurons = Float[Tensor, " h"]


@dataclass
class Course:
    """w up to the scales that are pending, ||w||, the common bias, each neuron's own part of it, sigma."""

    w: Float[Tensor, "h D"]
    norm: Neurons
    pending: Neurons
    level: float
    own: Neurons
    sigma: float
    left_out: Neurons
    output_left_out: Float[Tensor, ""]

    @staticmethod
    def begun(net: SymmetricNet) -> Course:
        """A copy of the net, all awake."""
        w = net.w.detach().clone(memory_format=torch.contiguous_format)
        one, level = torch.ones_like(net.b), float(net.b.mean())
        own = net.b.detach() - level
        none = torch.zeros_like(one)
        return Course(w, w.norm(dim=1), one, level, own, net.sigma, none, none.new_zeros(()))

    @property
    def b(self) -> Neurons:
        """The bias of each neuron."""
        return self.own + self.level

    def net(self) -> SymmetricNet:
        """A copy of the net as it is now."""
        return SymmetricNet(self.w * self.pending.unsqueeze(1), self.b, self.sigma)

    def centre(self) -> None:
        """No bias below 0, and the common bias is their mean again, which the noise follows."""
        b = self.b.clamp_min_(0)
        self.level = float(b.mean())
        self.own = b - self.level

    def wake_all(self) -> None:
        """Every pending scale multiplied in."""
        self.w.mul_(self.pending.unsqueeze(1))
        self.pending.fill_(1.0)


@dataclass(frozen=True)
class Awake:
    """The neurons that can fire on this batch: which (None: all), their weights, biases and <w_i, x_n>.

    `u` is u_i of every neuron; `asleep` says who is left out; `at_point` which of the awake can fire without the
    attacker's help (None: take all).
    """

    index: Int[Tensor, " a"] | None
    w: Float[Tensor, "a D"]
    b: Float[Tensor, " a"]
    z: Float[Tensor, "a n"]
    u: Neurons
    asleep: Bool[Tensor, " h"] | None
    at_point: Int[Tensor, " p"] | None = None

    def count(self) -> int:
        """How many."""
        return len(self.w)

    def after(self, z: Float[Tensor, "a n"], sigma: float, negligible: float) -> Awake:
        """Who is left once the points have moved, and <w_i, x_n> is z."""
        if self.index is None or not sigma:
            return replace(self, z=z)
        u = (largest(z) - self.b) / sigma
        up = u > -quantile_of(negligible)
        keep = up.nonzero().squeeze(1)
        assert self.asleep is not None
        index = self.index[keep]
        return Awake(
            index,
            self.w.index_select(0, keep),
            self.b[keep],
            z.index_select(0, keep),
            self.u.index_copy(0, self.index, u),
            torch.ones_like(self.asleep).index_fill_(0, index, False),
        )


def awake(course: Course, x: Rows, norm: Norm | None, radius: float, negligible: float) -> Awake:
    """One product over all neurons tells who can fire; `negligible` = 0 takes all of them."""
    z, b = course.w @ x.T, course.b
    alone = largest(z).mul_(course.pending).sub_(b)
    away = alone
    if norm is not None and radius:
        size = course.norm if norm.order == 2 else norm.dual(course.w).mul_(course.pending)
        away = torch.add(alone, size, alpha=radius)
    u = in_noise(away, course.sigma)
    if negligible:
        up = u > -quantile_of(negligible)
        index = up.nonzero().squeeze(1)
        near = in_noise(alone[index], course.sigma) > -quantile_of(negligible)
        near = near.nonzero().squeeze(1)
        # where the attacker reaches all, those that fire without its help can still be few
        if len(near) < MOST_ASLEEP * len(u):
            scale = course.pending[index]
            w = course.w.index_select(0, index).mul_(scale.unsqueeze(1))
            z = z.index_select(0, index).mul_(scale.unsqueeze(1))
            return Awake(index, w, b[index], z, u, ~up, near)
    z.mul_(course.pending.unsqueeze(1))
    course.wake_all()
    return Awake(None, course.w, b, z, u, None)


def largest(z: Float[Tensor, "a n"]) -> Float[Tensor, " a"]:
    """max_n |z_in| of each row."""
    return torch.maximum(z.amax(1), z.amin(1).neg_())


def in_noise(away: Neurons, sigma: float) -> Neurons:
    """A distance from the bias in units of the noise; without noise, above or below."""
    return away / sigma if sigma else torch.where(away >= 0, torch.inf, -torch.inf)


def moved_on(
    course: Course,
    who: Awake,
    pulls: Float[Tensor, "a n"],
    x: Rows,
    eta: float,
    decay: float,
    weight: Float[Tensor, ""],
) -> None:
    """One step: w_i + eta sum_n pulls_in x_n, less the regulariser; sleepers are scaled later.

    `weight` is mean_n(l'_n ||x_n||), what each unit of slope that was left out could have moved.
    """
    factor = 1 - eta * decay * (1 + course.norm)
    if who.index is None:
        course.w.mul_(factor.unsqueeze(1)).addmm_(pulls, x, alpha=eta)
        course.norm = course.w.norm(dim=1)
        return
    w = who.w.mul_(factor[who.index].unsqueeze(1)).addmm_(pulls, x, alpha=eta)
    course.w.index_copy_(0, who.index, w)
    course.pending.mul_(factor).index_fill_(0, who.index, 1.0)
    course.norm.mul_(factor).index_copy_(0, who.index, w.norm(dim=1))
    assert who.asleep is not None
    share = chance(who.u)
    course.left_out.add_(torch.where(who.asleep, share, 0.0).mul_(2 * eta * weight))
    if course.sigma:  # E relu at u, in units of the noise
        output = share.mul_(who.u).add_(who.u.square().mul_(-0.5).exp_(), alpha=DENSITY)
        output = torch.where(who.asleep, output, 0.0).sum() * course.sigma
        course.output_left_out = torch.maximum(course.output_left_out, output)


def quantile_of(negligible: float) -> float:
    """c with Phi(-c) = negligible."""
    if negligible not in _QUANTILES:
        _QUANTILES[negligible] = quantile(negligible)
    return _QUANTILES[negligible]


_QUANTILES: dict[float, float] = {}
