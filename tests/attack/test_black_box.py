"""Queries alone: models without gradients are broken, never sooner than is possible."""

import math

import pytest
import torch

from tacit.attack.ball.black_box import black_box
from tacit.data import min2024_mixture
from tacit.errors import CallError
from tacit.nets import Linear, NearestNeighbour


def gen(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("norm", "dual"), [(1, math.inf), (2, 2), (math.inf, 1)])
def test_linear_models_break_soon_after_their_radius_and_never_before(norm, dual):
    u, x = torch.randn(8, generator=gen(0)).double(), torch.randn(20, 8, generator=gen(1)).double()
    rule = Linear(u)

    def no_gradient(z):
        return rule(z.detach())

    y = rule(x).sign()
    exact = rule(x).abs() / torch.linalg.vector_norm(u, dual)
    radii = [0.1, 0.3, 1.0]
    found = black_box(no_gradient, x, y, radii, norm=norm, steps=200)
    may = exact.unsqueeze(0) <= torch.tensor(radii).unsqueeze(1) * (1 + 1e-9)
    must = exact.unsqueeze(0) * 1.3 <= torch.tensor(radii).unsqueeze(1)
    assert not (found.broken & ~may).any()
    assert found.broken[must].double().mean() > 0.95
    assert not found.flat.any()


def test_hard_labels_are_broken_along_the_ray_to_another_class():
    mixture = min2024_mixture(20, 4, 2, 0.2, gen(0))
    train, data = mixture.sample(60, gen(1)), mixture.sample(30, gen(2))
    rule = NearestNeighbour(train.x, train.y)

    def label(z):
        return rule(z).sign()

    clean = label(data.x) == data.y
    found = black_box(label, data.x, data.y, [0.05, 1.0], steps=20)
    # half of the distance between clusters is .71; a sign says nothing until it changes
    assert found.broken[1].all()
    assert not found.broken[0][clean].all()


def test_a_gradient_start_is_refused():
    x, y = torch.ones(1, 2).double(), torch.ones(1).double()
    with pytest.raises(CallError, match="black-box attack has none"):
        black_box(Linear(x[0]), x, y, [0.1], starts=("gradient",))
