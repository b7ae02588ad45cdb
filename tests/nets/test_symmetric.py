"""The symmetric smoothed net and the learners beside it, against Monte Carlo, autograd and quadrature."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from tacit.attack import fgm, pgd
from tacit.attack.symmetric import SymmetricTarget
from tacit.attack.target import TorchTarget, target_of
from tacit.errors import CallError
from tacit.nets import (
    Linear,
    PolynomialNet,
    SymmetricNet,
    TangentNet,
    load_net,
    polynomial_start,
    save_net,
    symmetric_start,
    tangent_start,
)
from tacit.nets.smoothed import (
    pair_by_bias,
    pair_slope,
    pair_value,
    quantile,
    smoothed_relu,
    smoothed_step,
)
from tacit.train import descend

DOUBLE = torch.float64


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=DOUBLE)


def a_net(sigma: float = 0.2, h: int = 6, d: int = 5) -> SymmetricNet:
    return SymmetricNet(normal(h, d), 0.1 + normal(h, seed=1).abs(), sigma)


@pytest.mark.parametrize("t", [-3.0, -0.4, 0.0, 0.3, 2.0])
@pytest.mark.parametrize("sigma", [0.1, 0.7])
def test_the_expected_relu_is_the_integral(t: float, sigma: float) -> None:
    density = stats.norm(0, sigma).pdf
    value, _ = integrate.quad(lambda r: (t + r) * density(r), -t, 12 * sigma + abs(t), epsabs=1e-13)
    assert float(smoothed_relu(torch.tensor(t, dtype=DOUBLE), sigma)) == pytest.approx(
        value, abs=1e-11
    )
    step = float(smoothed_step(torch.tensor(t, dtype=DOUBLE), sigma))
    assert step == pytest.approx(stats.norm.cdf(t / sigma), rel=1e-12)


@given(st.floats(-4, 4), st.floats(0, 3), st.floats(0.05, 2))
def test_a_pair_is_odd_rises_and_has_its_slope(z: float, b: float, sigma: float) -> None:
    at = torch.tensor([z], dtype=DOUBLE)
    assert float(pair_value(at, b, sigma)) == pytest.approx(
        -float(pair_value(-at, b, sigma)), abs=1e-14
    )
    slope = float(pair_slope(at, b, sigma))
    assert 0 <= slope <= 1 + 1e-12
    h = 1e-5
    rise = float(pair_value(at + h, b, sigma) - pair_value(at - h, b, sigma)) / (2 * h)
    assert slope == pytest.approx(rise, abs=1e-6)
    by_b = float(pair_value(at, b + h, sigma) - pair_value(at, b - h, sigma)) / (2 * h)
    assert float(pair_by_bias(at, b, sigma)) == pytest.approx(by_b, abs=1e-6)


def test_the_closed_form_is_the_mean_over_the_noise() -> None:
    net, x = a_net(), normal(4, 5, seed=2)
    runs = 20_000
    drawn = net.sampled(x.repeat(runs, 1), seeded(3)).view(runs, 4)
    error = drawn.std(0) / math.sqrt(runs)
    assert bool(((drawn.mean(0) - net(x)).abs() < 5 * error).all())
    assert float(error.max()) < 0.01  # small enough to tell


def test_without_noise_it_is_a_relu_net() -> None:
    net, x = a_net(0.0), normal(50, 5, seed=2)
    torch.testing.assert_close(net(x), net.two_layer()(x))
    torch.testing.assert_close(net(x), net.sampled(x, seeded()))
    torch.testing.assert_close(net(x), -net(-x))


def test_gradients_in_x_and_w_are_autograds() -> None:
    net, x = a_net(), normal(7, 5, seed=2)
    target = target_of(net, (5,))
    assert isinstance(target, SymmetricTarget)
    scores, pullback = target.with_pullback(x)
    wanted, slow = TorchTarget(net, (5,)).with_pullback(x)
    v = normal(7, seed=3)
    torch.testing.assert_close(scores, wanted, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(pullback(v), slow(v), rtol=1e-10, atol=1e-12)
    w = net.w.clone().requires_grad_()
    (by_w,) = torch.autograd.grad((SymmetricNet(w, net.b, net.sigma)(x) * v).sum(), w)
    torch.testing.assert_close((net.slopes(x) * v[:, None]).T @ x, by_w, rtol=1e-10, atol=1e-12)


def test_where_every_slope_rounds_to_zero_the_gradient_still_points_somewhere() -> None:
    """Ten sigmas below every threshold: Phi(-10) is lost next to 1 and is not 0."""
    net = SymmetricNet(normal(6, 5).float(), torch.ones(6), 0.1)
    x = torch.zeros(3, 5)
    x[0] = 5 * net.w[0] / net.w[0].norm()  # this one is awake
    _, pullback = SymmetricTarget(net, (5,)).with_pullback(x)
    found, wanted = pullback(torch.ones(3)), net.slopes(x) @ net.w
    assert bool((found != 0).any(1).all())
    torch.testing.assert_close(found[1:], wanted[1:], rtol=1e-5, atol=0.0)
    torch.testing.assert_close(found[:1], wanted[:1], rtol=1e-5, atol=1e-6)


def test_attacks_take_it() -> None:
    net, x = a_net(0.05, h=20), normal(40, 5, seed=4)
    y = net(x).sign()
    weak, strong = fgm(net, x, y, [0.5]), pgd(net, x, y, [0.5], steps=20)
    assert float(strong.robust_accuracy) <= float(weak.robust_accuracy) + 1e-12
    assert float(strong.robust_accuracy) < 1
    assert any(name.startswith("towards") for name in strong.starts)


NETS = [
    a_net(),
    TangentNet(normal(6, 5), normal(6, 5, seed=1), normal(6, seed=2).abs(), 0.3),
    PolynomialNet(normal(7, 5), normal(2, 7, seed=1), 1, 2),
]


@pytest.mark.parametrize("net", NETS, ids=lambda net: type(net).__name__)
def test_files_and_types(net, tmp_path: Path) -> None:
    x = normal(9, 5, seed=5)
    save_net(tmp_path / "net", net)
    again = load_net(tmp_path / "net")
    assert type(again) is type(net)
    assert torch.equal(again(x), net(x))
    assert net.inputs == 5
    assert net.to(torch.float32).double()(x).shape == (9,)
    torch.testing.assert_close(net(-x), -net(x))  # all of them odd


def test_members_of_an_ensemble() -> None:
    one, two = a_net(), SymmetricNet(normal(6, 5, seed=8), normal(6, seed=9).abs(), 0.2)
    both = SymmetricNet(torch.stack([one.w, two.w]), torch.stack([one.b, two.b]), 0.2)
    x = normal(3, 5, seed=5)
    assert both.ensemble == (2,)
    torch.testing.assert_close(both(x), torch.stack([one(x), two(x)]))
    torch.testing.assert_close(both.members()[1](x), two(x))


def test_the_tangent_learner_is_the_tangent() -> None:
    """f(w + t v) - f(w) = t p(x) + O(t^2): the sum of indicators is what the net's gradient has (Fact A.1)."""
    net, v, x = a_net(0.4), normal(6, 5, seed=6), normal(8, 5, seed=7)
    t = 1e-6
    moved = SymmetricNet(net.w + t * v, net.b, net.sigma)(x)
    rate = (moved - SymmetricNet(net.w - t * v, net.b, net.sigma)(x)) / (2 * t)
    torch.testing.assert_close(
        TangentNet(net.w, v, net.b, net.sigma)(x), rate, rtol=1e-7, atol=1e-8
    )


def test_the_polynomial_is_its_sum() -> None:
    net, x = PolynomialNet(normal(7, 5), normal(3, 7, seed=1), 0, 1), normal(4, 5, seed=2)
    wanted = [
        sum(float(net.u[e, r]) * float(net.a[r] @ point) ** e for e in range(3) for r in range(7))
        for point in x
    ]
    assert net.degrees == (0, 1, 2)
    torch.testing.assert_close(net(x), torch.tensor(wanted, dtype=DOUBLE))


@pytest.mark.parametrize(
    "net",
    [
        Linear(torch.zeros(5, dtype=DOUBLE)),
        tangent_start(5, 8, 0.5, 0.3, seeded(1)),
        polynomial_start(5, 2, forms=4, generator=seeded(2)),
    ],
    ids=lambda net: type(net).__name__,
)
def test_learners_learn_a_linear_rule(net) -> None:
    x = normal(300, 5, seed=1)
    y = (x @ normal(5, seed=2)).sign()
    trained = descend(net, x, y, step=0.1, steps=600, loss="logistic").net
    assert float((trained(x) * y > 0).double().mean()) > 0.95


def test_starts_and_what_they_refuse() -> None:
    net = symmetric_start(40, 500, 0.01, 0.05, seeded(), dtype=torch.float32)
    assert net.w.dtype == torch.float32
    assert float(net.w.std()) == pytest.approx(0.01, rel=0.02)
    assert bool((net.b == torch.tensor(0.05)).all())
    assert float(tangent_start(4, 3, 0.1, 0.0, seeded()).v.abs().sum()) == 0
    assert quantile(stats.norm.cdf(-5.0)) == pytest.approx(5.0, abs=1e-6)
    for call in (
        lambda: symmetric_start(4, 4, 0.0, 0.1, seeded()),
        lambda: SymmetricNet(torch.ones(2, 2), torch.ones(2), -1.0),
        lambda: TangentNet(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2), math.nan),
        lambda: PolynomialNet(torch.ones(2, 2), torch.ones(1, 2), 1, 0),
        lambda: polynomial_start(3, 0),
        lambda: polynomial_start(3, 1, forms=2),
    ):
        with pytest.raises(CallError):
            call()
