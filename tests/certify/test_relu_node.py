"""The bound of a node: true for any theta, reached by the solvers, and above relu within the ball."""

import math

import pytest
import torch

from tacit.certify.relu.ascent import Ascent
from tacit.certify.relu.node import Values, halfspace, lines, nodes_of, sides_of
from tacit.certify.relu.program import Program


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def draw(seed, m=4, k=3, D=5, n=20):
    sides = sides_of(normal(seed, m, D), normal(seed + 1, k, D), 0.0)
    own, opp = normal(seed + 2, n, m), normal(seed + 3, n, k)
    slope = (normal(seed + 4, n, k) > 0).double()
    slope[0] = 0  # a cone
    return sides, nodes_of(sides, Values(own, opp, own.abs(), opp.abs()), slope, 0 * slope)


@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
def test_the_solver_meets_its_own_bound_and_no_theta_beats_it(norm):
    sides, nodes = draw(7)
    solver = Ascent(sides) if norm == 2 else Program(sides, norm)
    start = (nodes.own > 0).double()
    solved = solver(nodes, start, torch.full_like(nodes.base, torch.inf))
    length = torch.linalg.vector_norm(solved.delta, ord=norm, dim=1)
    assert torch.allclose(length, solved.bound, rtol=1e-8, atol=1e-12)
    moved = nodes.own + solved.delta @ sides.own.T
    level = nodes.base + moved.clamp_min(0).sum(1)
    level -= (nodes.slope * (solved.delta @ sides.opp.T)).sum(1)
    assert level.max() < 1e-9
    assert level[solved.bound > 0].abs().max() < 1e-9
    for seed in range(30):
        theta = torch.rand(nodes.own.shape, generator=torch.Generator().manual_seed(seed)).double()
        bound = halfspace(sides, nodes, theta, norm)[0]
        assert (bound <= solved.bound * (1 + 1e-9)).all()


def test_lines_lie_above_relu_within_reach():
    z, reach = normal(1, 50, 4), normal(2, 50, 4).abs() + 0.1
    slope, offset = lines(z, reach, torch.zeros(50, 4, dtype=torch.int8))
    for s in torch.linspace(-1, 1, 21).tolist():
        at = z + s * reach
        assert (slope * at + offset >= at.clamp_min(0) - 1e-12).all()


def test_an_empty_set_is_far():
    """z and -z cannot both be at most -1."""
    w = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    sides = sides_of(w, torch.zeros(0, 2, dtype=torch.float64), 0.0)
    one, none = torch.ones(1, 2, dtype=torch.float64), torch.zeros(1, 0, dtype=torch.float64)
    nodes = nodes_of(sides, Values(one, none, one, none), none, none)
    solved = Ascent(sides)(nodes, one, torch.full((1,), torch.inf, dtype=torch.float64))
    assert solved.bound.item() > 1e12


@pytest.mark.parametrize("angle", [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
def test_a_light_neuron_that_is_alone_in_a_cone_is_not_lost_by_rounding(angle):
    """{<w_i, delta> <= -z_i}: a point of it as long as the bound is the nearest."""
    u = torch.eye(4).double()[:1] + angle * normal(1, 4, 4) / 2
    w = torch.tensor([20, 0.3, 0.1, 0.01]).double().unsqueeze(1) * u / u.norm(dim=1, keepdim=True)
    z = (0.5 * torch.eye(4).double()[:1] + 0.1 * normal(2, 500, 4)) @ w.T
    none = torch.zeros(500, 0, dtype=torch.float64)
    sides = sides_of(w, torch.zeros(0, 4, dtype=torch.float64), 0.0)
    nodes = nodes_of(sides, Values(z, none, z.abs(), none), none, none)
    far = torch.full((500,), torch.inf, dtype=torch.float64)
    solved = Ascent(sides)(nodes, (z > 0).double(), far)
    assert torch.allclose(solved.delta.norm(dim=1), solved.bound, rtol=1e-9, atol=1e-12)
    assert ((z + solved.delta @ w.T) / w.norm(dim=1)).max() < 1e-8
