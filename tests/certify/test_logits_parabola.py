"""Parabolas and lines below a neuron, and the radial term, on grids."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.attack.norms import known_norm
from tacit.certify.logits.ball import ball_bound, multiplier, no_moments
from tacit.certify.logits.pairs import linear_bound, pairs_of
from tacit.certify.logits.parabola import lines, parabolas, phi
from tacit.certify.logits.vertex import vertex_bound
from tacit.nets import PolyReLUNet

POWERS = [1.0, 1.2, 1.5, 1.9, 2.0, 2.5, 3.0, 4.0, 9.0]


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(seed=st.integers(0, 10**6), p=st.sampled_from(POWERS))
def test_parabolas_and_lines_lie_below(seed, p):
    a, t = normal(3, 40, seed=seed), 2 * normal(3, 40, seed=seed + 1)
    reach = 3 * normal(3, 40, seed=seed + 2).abs()
    mean = reach * normal(3, 40, seed=seed + 3).tanh()
    var = reach.square() * normal(3, 40, seed=seed + 4).square() * torch.tensor([[0.0], [0.1], [1]])
    alpha, beta, k = parabolas(a, t, reach, mean, var, p)
    flat, tilt = lines(a, t, reach, mean, p)
    s = torch.linspace(-1, 1, 401, dtype=torch.float64)[:, None, None] * reach
    exact = a * phi(t + s, p) + 1e-9 * a.abs() * phi(t.abs() + reach, p)
    assert (alpha + beta * s + k * s.square() / 2 <= exact).all()
    assert (flat + tilt * s <= exact).all()
    assert (k * a >= 0).all()


@pytest.mark.parametrize("p", [2.0, 3.0, 4.0])
def test_a_known_move_is_touched(p):
    """Without variance it has the value at the mean; with it, the mean value of the worst two points."""
    a, t = torch.tensor([[1.0, -1.0]]).double(), torch.tensor([[0.3, 0.3]]).double()
    reach, mean = torch.full_like(t, 2.0), torch.full_like(t, 0.4)
    alpha, beta, k = parabolas(a, t, reach, mean, torch.zeros_like(t), p)
    torch.testing.assert_close(alpha + beta * mean + k * mean**2 / 2, a * phi(t + mean, p))
    # mass m at hi = 2.3 and 1 - m at z0: mean .7
    alpha, beta, k = parabolas(a, t, reach, mean, torch.full_like(t, 0.5), p)
    z0 = 0.7 - 0.5 / 1.6
    share = (0.7 - z0) / (2.3 - z0)
    worst = share * 2.3**p + (1 - share) * z0**p
    mean_value = alpha + beta * 0.4 + k * (0.4**2 + 0.5) / 2
    assert mean_value[0, 1].item() == pytest.approx(-worst)


def test_the_relu_parabola_is_scarfs():
    """The largest mean of relu(z) for mean m and variance v is (m + sqrt(m^2 + v)) / 2."""
    one = torch.ones(1, 1).double()
    alpha, beta, k = parabolas(-one, 0.2 * one, 5 * one, 0.3 * one, 0.7 * one, 1.0)
    value = alpha + beta * 0.3 + k * (0.3**2 + 0.7) / 2
    assert value.item() == pytest.approx(-(0.5 + math.sqrt(0.25 + 0.7)) / 2)


def drawn_pairs(seed, p, norm, bias):
    net = PolyReLUNet(
        normal(9, 4, seed=seed), normal(2, 9, seed=seed + 1), normal(2, seed=seed + 2) * bias, p
    )
    x = normal(8, 4, seed=seed + 3)
    own = torch.zeros(8, dtype=torch.int64)
    pairs = pairs_of(net, x, own, own + 1, torch.zeros(8).double(), norm)
    return net, x, pairs


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("order", [1, 2, math.inf])
def test_bounds_are_below_the_margin_in_the_ball(p, order):
    norm = known_norm(order)
    net, x, pairs = drawn_pairs(3, p, norm, 3.0)
    clean = pairs.margin()
    z = net(x)
    size = x.norm(dim=1)
    # F is the margin times ||c||^(p-1), in units of ||c||^p; a hair is taken off
    torch.testing.assert_close(clean * size, z[:, 0] - z[:, 1])
    for share in (0.05, 0.5, 2.0):
        r = torch.full_like(size, share)
        found = [linear_bound(pairs, norm, r)]
        if order == 1:
            found.append(vertex_bound(pairs, r, clean))
        else:
            moments = no_moments(pairs, norm)
            for _ in range(6):
                value, moments = ball_bound(pairs, norm, r, moments, clean)
                found.append(value)
        const, slant = pairs.radial_below(r)
        for seed in range(20):
            ball = norm.random(x, torch.Generator().manual_seed(seed))
            delta = r.unsqueeze(1) * (ball if seed % 2 else ball / norm.size(ball).unsqueeze(1))
            there = (pairs.c + delta) * size.unsqueeze(1)
            z, far = net(there), (pairs.c + delta).norm(dim=1)
            margin = (z[:, 0] - z[:, 1]) / size * far ** (p - 1)
            for bound in found:
                assert (bound <= margin + 1e-12).all()
            grown = 2 * (pairs.c * delta).sum(1) + delta.square().sum(1)
            radial = pairs.beta * far ** (p - 1) if p > 1 else pairs.beta
            assert (const + slant * grown <= radial + 1e-12 * pairs.beta.abs()).all()


def test_the_multiplier_solves_its_equation_and_keeps_the_matrix_definite():
    e = normal(5, 6, seed=0).sort(dim=1).values
    q, rho = normal(5, 6, seed=1), torch.tensor([0.1, 0.5, 1, 2, 30]).double()
    q[3, 0] = 0.0
    for mu in (0.0, 0.02):
        (lam,) = multiplier(e, q, rho, torch.full((1, 5), mu, dtype=torch.float64))
        P = e + lam.unsqueeze(1)
        size = (q / P).square().sum(1) + 2 * mu * (1 / P).sum(1)
        assert (P > 0).all()
        assert (size <= rho.square() * (1 + 1e-9)).all()
        least = lam <= (-e[:, 0]).clamp_min(0) * (1 + 1e-9) + 1e-9
        torch.testing.assert_close(size[~least], rho.square()[~least], rtol=1e-5, atol=0.0)
