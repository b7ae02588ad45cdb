"""Universal perturbations: the papers' directions, and the learned one against closed forms."""

import math

import pytest
import torch

from tacit.attack.universal import (
    allenzhu2020_dense,
    broken_by,
    frei2023_z,
    learned_universal,
    li2025_rho,
    min2024_d0,
)
from tacit.data import min2024_mixture, sqrt_d_mixture
from tacit.errors import CallError
from tacit.nets import Linear, average_net, centre_net, linear_rule


def generator(seed):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def cosine(a, b):
    return (a @ b / (a.norm() * b.norm())).item()


def share(model, points, delta, *, signed=True):
    return broken_by(model, points.x, points.y, delta, signed=signed).double().mean().item()


def test_the_papers_directions_are_one_direction_at_the_papers_lengths():
    mixture = min2024_mixture(30, 10, 6, 0.1, generator(0))
    assert min2024_d0(mixture).norm().item() == pytest.approx(1)
    assert cosine(frei2023_z(mixture, 0.3), min2024_d0(mixture)) == pytest.approx(1)
    assert frei2023_z(mixture, 0.3).norm().item() == pytest.approx(0.3 * math.sqrt(10))
    big = sqrt_d_mixture(100, 10, 6, 1.0, generator(0))
    # ||rho|| = 2 (1+c) sqrt(d/k), c = 6/4 here
    assert li2025_rho(big).norm().item() == pytest.approx(2 * 2.5 * math.sqrt(10))
    assert li2025_rho(big, c=1.0).norm().item() == pytest.approx(4 * math.sqrt(10))


def test_the_papers_directions_break_what_the_papers_say_they_break():
    mixture = min2024_mixture(200, 10, 6, 0.1, generator(0))
    points = mixture.sample(500, generator(1))
    assert share(average_net(mixture), points, 1.3 / math.sqrt(10) * min2024_d0(mixture)) == 1
    assert share(average_net(mixture), points, 0.7 / math.sqrt(10) * min2024_d0(mixture)) == 0
    # the wrong sign helps the classifier
    assert share(average_net(mixture), points, -1.3 / math.sqrt(10) * min2024_d0(mixture)) == 0
    big = sqrt_d_mixture(400, 10, 6, 1.0, generator(2))
    many = big.sample(500, generator(3))
    assert share(average_net(big), many, li2025_rho(big)) == 1
    assert share(linear_rule(big), many, frei2023_z(big, 0.15)) == 1


def test_the_dense_direction_breaks_the_linear_rule_of_sparse_coding():
    M = torch.linalg.qr(normal(40, 40, seed=0))[0]
    w = normal(40, seed=1).sign()
    z = normal(200, 40, seed=2) * (torch.rand(200, 40, generator=generator(3)) < 0.1)
    y = torch.where(z @ w > 0, 1.0, -1.0).double()
    dense = allenzhu2020_dense(M, w)
    assert dense.norm().item() == pytest.approx(1)
    rule = Linear(M @ w)
    tau = ((z @ w).abs().max() / w.norm()).item()
    assert broken_by(rule, z @ M.T, y, (1 + 1e-9) * tau * dense, signed=True).all()
    with pytest.raises(CallError, match="dense"):
        allenzhu2020_dense(M, 0 * w)


def test_on_a_linear_rule_the_learned_one_is_the_normal_and_breaks_all_at_the_closed_form_radius():
    rule, x = Linear(normal(20, seed=0), 0.3), normal(200, 20, seed=1)
    y = torch.where(rule(x) > 0, 1.0, -1.0).double()
    for norm, dual in ((1, math.inf), (2, 2), (math.inf, 1)):
        least = ((y * rule(x)).max() / torch.linalg.vector_norm(rule.u, dual)).item()
        delta = learned_universal(rule, x, y, least * (1 + 1e-9), signed=True, norm=norm)
        assert torch.linalg.vector_norm(delta, norm).item() <= least * (1 + 1e-8)
        if norm == 2:
            assert cosine(delta, rule.u) > 1 - 1e-9
        assert broken_by(rule, x, y, delta, signed=True).all()


@pytest.mark.parametrize("K1", [5, 2])
def test_on_the_average_net_the_learned_one_is_d0(K1):
    mixture = min2024_mixture(50, 10, K1, 0.1, generator(0))
    points, F = mixture.sample(200, generator(1)), average_net(mixture)
    d0 = min2024_d0(mixture)
    for times in (1.05, 1.5):
        r = times / math.sqrt(10)
        delta = learned_universal(F, points.x, points.y, r, signed=True)
        assert delta.norm().item() <= r * (1 + 1e-12)
        assert cosine(delta, d0) > 0.98
        assert share(F, points, delta) >= share(F, points, r * d0) - 0.005
    assert share(F, points, delta) == 1


def test_unsigned_it_breaks_one_class():
    mixture = min2024_mixture(50, 6, 4, 0.1, generator(0))
    points, F = mixture.sample(300, generator(1)), average_net(mixture)
    delta = learned_universal(F, points.x, points.y, 0.8, signed=False)
    positive = float((points.y > 0).double().mean())
    assert share(F, points, delta, signed=False) >= positive - 0.01


def test_logits_boxes_shapes_and_few_points_work():
    mixture = min2024_mixture(12, 4, 2, 0.1, generator(0))
    points, net = mixture.sample(200, generator(1)), centre_net(mixture, 3.0)

    def logits(x):
        f = net(x.flatten(1))
        return torch.stack([-f, f], 1)

    x = (points.x.reshape(-1, 3, 4) / 8 + 0.5).clamp(0, 1)
    y = (logits(8 * (x - 0.5))[:, 1] > 0).long()

    def model(x):
        return logits(8 * (x - 0.5))

    for signed in (True, False):
        delta = learned_universal(
            model, x, y, 0.3, signed=signed, norm="inf", box=(0.0, 1.0), batch=100
        )
        assert delta.shape == (3, 4)
        assert delta.abs().max() <= 0.3 * (1 + 1e-12)
        broken = broken_by(model, x, y, delta, signed=signed, box=(0.0, 1.0))
        assert broken.double().mean() >= (0.9 if signed else 0.4)


def test_wrong_calls_are_named():
    rule, x = Linear(normal(4, seed=0)), normal(6, 4, seed=1)
    three = torch.tensor([0, 1, 2, 0, 1, 2])
    with pytest.raises(CallError, match="signed=False"):
        broken_by(rule, x, three, x[0], signed=True)
    with pytest.raises(CallError, match="radius -1"):
        learned_universal(rule, x, torch.ones(6), -1.0, signed=False)
