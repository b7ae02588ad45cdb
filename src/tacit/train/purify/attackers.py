r"""Perturbation algorithms for training (allenzhu2020, Definition 4.2): any delta(f, x, y) in a ball.

    `fgm_attacker`        argmin over the ball of <y grad f(x), delta>, 0 where the gradient is 0
    `pgd_attacker`        projected steps against y f, from the point or from a random one
    `universal_attacker`  -radius y u for one direction u (Theorem 5.1(c))
    `random_attacker`     uniform in the ball
    `attacker_of`         any function of `tacit.attack` that takes (model, x, y, radii)

Unlike an attack that measures, these move every point, also one that is broken already. The radius bounds how far
a neuron's input can move, ||w_i||_dual radius, which tells the training which neurons can fire.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack.norms import Norm, known_norm
from tacit.attack.symmetric import SymmetricTarget
from tacit.base.shapes import Numbers, Rows
from tacit.errors import CallError
from tacit.nets.fired import slopes
from tacit.nets.symmetric import SymmetricNet

REACH = 2.5  # all steps of PGD together, in radii


@dataclass(frozen=True)
class Around:
    """The net of the neurons that can fire, at points where <w_i, x> is known already."""

    net: SymmetricNet
    x: Rows
    z: Float[Tensor, "h n"]
    both: bool  # whether the second half of a pair can be felt

    def gradient(self) -> Rows:
        """df/dx at the points."""
        return slopes(self.z, self.net.b, self.net.sigma, self.both).T @ self.net.w

    @cached_property
    def target(self) -> SymmetricTarget:
        """For other points."""
        return SymmetricTarget(self.net)


Delta = Callable[[Around, Numbers, torch.Generator | None], Rows]


@dataclass(frozen=True)
class Attacker:
    """delta(around, y, generator) within the ball of that norm and radius.

    `at_point`: it asks for the gradient at the points themselves and nowhere else in the ball, so that neurons
    which fire elsewhere alone need not be shown to it.
    """

    norm: Norm
    radius: float
    delta: Delta
    at_point: bool = False

    def __post_init__(self) -> None:
        if not (self.radius >= 0 and math.isfinite(self.radius)):
            raise CallError(f"radius={self.radius:g}: it is a finite number >= 0")


def fgm_attacker(radius: float, norm: float | str | Norm = 2, *, least: float = 0.0) -> Attacker:
    """The fast gradient method (Section 4.2); delta = 0 where the dual norm of the gradient is <= `least`."""
    ball = known_norm(norm)

    def delta(around: Around, y: Numbers, _generator: torch.Generator | None) -> Rows:
        g = around.gradient().mul_(-y.unsqueeze(1))
        found = ball.extreme(g, column(radius, y), None)
        return torch.where(ball.dual(g).unsqueeze(1) > least, found, 0.0) if least else found

    return Attacker(ball, radius, delta, at_point=True)


def pgd_attacker(
    radius: float,
    norm: float | str | Norm = 2,
    *,
    steps: int = 10,
    step: float | None = None,
    random_start: bool = False,
) -> Attacker:
    """Projected gradient descent on y f; `step` in radii, by default 2.5 / steps."""
    if steps < 1:
        raise CallError(f"steps={steps}: at least one is needed")
    ball, length = known_norm(norm), REACH / steps if step is None else step

    def delta(around: Around, y: Numbers, generator: torch.Generator | None) -> Rows:
        far = column(radius, y)
        found = far * ball.random(around.x, drawn(generator)) if random_start else None
        for _ in range(steps):
            if found is None:
                found, g = torch.zeros_like(around.x), around.gradient()
                down = -y.unsqueeze(1) * g
            else:
                down = around.target.with_pullback(around.x + found)[1](-y)
            found = ball.project(found + length * far * ball.steepest(down), far, None)
        assert found is not None
        return found

    return Attacker(ball, radius, delta)


def universal_attacker(
    direction: Float[Tensor, " D"], radius: float, norm: float | str | Norm = 2
) -> Attacker:
    """-radius y u, u of size 1 (Theorem 5.1(c), with u = M w* / ||M w*||)."""
    ball = known_norm(norm)
    size = float(ball.size(direction.unsqueeze(0)))
    if not size > 0:
        raise CallError("a universal direction of size 0: give one that points somewhere")

    def delta(around: Around, y: Numbers, _generator: torch.Generator | None) -> Rows:
        return -radius * y.unsqueeze(1) * (direction / size).to(around.x)

    return Attacker(ball, radius, delta, at_point=True)


def random_attacker(radius: float, norm: float | str | Norm = 2) -> Attacker:
    """Uniform in the ball, whatever the net is."""
    ball = known_norm(norm)

    def delta(around: Around, y: Numbers, generator: torch.Generator | None) -> Rows:
        return column(radius, y) * ball.random(around.x, drawn(generator))

    return Attacker(ball, radius, delta, at_point=True)


def attacker_of(
    attack: Callable[..., Any], radius: float, norm: float | str | Norm = 2, **settings: Any
) -> Attacker:
    """A function of `tacit.attack`, such as `apgd`: what it found, 0 where the point was broken as it is."""
    ball = known_norm(norm)

    def delta(around: Around, y: Numbers, _generator: torch.Generator | None) -> Rows:
        return attack(around.net, around.x, y, [radius], norm=ball, **settings).delta[0]

    return Attacker(ball, radius, delta)


def column(radius: float, like: Numbers) -> Float[Tensor, "n 1"]:
    """The radius of each row."""
    return like.new_full((len(like), 1), radius)


def drawn(generator: torch.Generator | None) -> torch.Generator:
    """The generator, where the attacker draws."""
    if generator is None:
        raise CallError("this attacker draws: give generator=torch.Generator().manual_seed(0)")
    return generator
