"""F^(p): against brute force, closed forms, and the invariants of the problem."""

import math

import numpy as np
import pytest
import torch
from brute import separable_brute
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.certify.poly.decoupled import decoupled_radius
from tacit.certify.poly.power import power_radius
from tacit.errors import CallError

POWERS = [1.1, 1.5, 1.9, 2.0, 2.1, 3.0, 4.0, 10.0]


def random_task(rng, K1, K2, equal, noise):
    own, opp = rng.normal(size=K1) * noise, rng.normal(size=K2) * noise
    own[0] += 1
    weights = (np.ones(K1), np.ones(K2)) if equal else (rng.uniform(0.3, 2, K) for K in (K1, K2))
    return own, opp, *weights


def solve(own, opp, A_own, A_opp, p):
    own, opp = (torch.tensor(c).unsqueeze(0) for c in (own, opp))
    return power_radius(own, opp, torch.tensor(A_own), torch.tensor(A_opp), p)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("equal", [True, False])
def test_never_longer_than_brute_force_and_always_breaks(p, equal):
    rng = np.random.default_rng(17)
    shorter = 0
    for _ in range(6):
        K1, K2 = rng.integers(1, 4, 2)
        own, opp, A, B = random_task(rng, K1, K2, equal, rng.choice([0.05, 0.3, 1.0]))
        found = solve(own, opp, A, B, p)
        length = math.sqrt(found.square.item())
        brute = separable_brute(own, opp, A, B, p)
        assert length <= brute + 1e-7
        shorter += length < brute - 1e-5
        u, v = own + found.own[0].numpy(), opp + found.opp[0].numpy()
        left, right = (A * np.maximum(u, 0) ** p).sum(), (B * np.maximum(v, 0) ** p).sum()
        assert left <= right + 1e-12 * max(left, 1)
        moved = np.concatenate([found.own[0], found.opp[0]])
        assert length == pytest.approx(np.linalg.norm(moved), abs=1e-12)
    # the local solver misses the global minimum now and then, never mostly
    assert shorter <= 2


@pytest.mark.parametrize("p", [2.0, 2.5, 3.0, 4.0, 7.3, 30.0, 100.0])
def test_at_a_centre_the_radius_is_half_the_distance_between_centres(p):
    c = torch.eye(9, dtype=torch.float64)
    one = torch.ones(5, dtype=torch.float64)
    found = power_radius(c[:5, :5], c[:5, 5:], one, one[:4], p)
    assert (found.square.sqrt() - math.sqrt(0.5)).abs().max() < 1e-9


@pytest.mark.parametrize("p", [1.05, 1.2, 1.5, 1.8, 1.97])
@pytest.mark.parametrize("K2", [1, 2, 5])
def test_below_two_opposite_centres_rise_together(p, K2):
    one = torch.ones(K2, dtype=torch.float64)
    found = power_radius(one[:1, None], torch.zeros(1, K2).double(), one[:1], one, p)
    q = K2 ** (1 - 2 / p)
    assert found.square.item() == pytest.approx(q / (1 + q), abs=1e-9)


def batch(rng, n, equal):
    """n points with their weights: three own and three opposite centres."""
    noise = rng.choice([1e-3, 0.1, 1.0], (n, 1))
    own, opp = rng.normal(size=(n, 3)) * noise, rng.normal(size=(n, 3)) * noise
    own[:, 0] += 1
    weights = np.ones((2, 3)) if equal else rng.uniform(0.3, 2, (2, 3))
    return own, opp, *weights


def lengths(own, opp, A, B, p):
    return power_radius(*(torch.tensor(t) for t in (own, opp, A, B)), p).square.sqrt().numpy()


def test_p_two_has_a_closed_form():
    """At p = 2 only a = ||relu(own)|| and b = ||relu(opp)|| count; with b = 0 the least negative
    opposite projection does."""
    own, opp, A, B = batch(np.random.default_rng(0), 2000, equal=True)
    a, b = (np.linalg.norm(np.maximum(c, 0), axis=1) for c in (own, opp))
    top = opp.max(1)
    alone = np.minimum(a, np.where(a + top > 0, (a - top) / math.sqrt(2), np.inf))
    expected = np.where(a <= b, 0, np.where(b > 0, (a - b) / math.sqrt(2), alone))
    assert np.abs(lengths(own, opp, A, B, 2.0) - expected).max() < 1e-7


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, 4.5])
@settings(max_examples=2)
@given(seed=st.integers(0, 10**6), scale=st.floats(0.2, 5))
def test_scaling_and_permutation(p, seed, scale):
    """F^(p) is homogeneous in x, so the radius scales with x; the order of centres is immaterial."""
    rng = np.random.default_rng(seed)
    own, opp, A, B = batch(rng, 12, equal=bool(seed % 2) or p < 2)
    both = (np.concatenate([c, scale * c]) for c in (own, opp))
    base, scaled = np.split(lengths(*both, A, B, p), 2)
    i, j = rng.permutation(3), rng.permutation(3)
    close = {"rtol": 1e-6, "atol": 1e-9}
    np.testing.assert_allclose(scaled, scale * base, **close)
    np.testing.assert_allclose(lengths(own[:, i], opp[:, j], A[i], B[j], p), base, **close)
    np.testing.assert_allclose(lengths(own, opp, 7 * A, 7 * B, p), base, **close)


def test_unequal_weights_agree_with_equal_ones_in_the_limit():
    rng = np.random.default_rng(0)
    for p in (1.5, 3.0):
        own, opp, A, B = random_task(rng, 3, 4, True, 0.2)
        nearly = solve(own, opp, A, B * (1 + 1e-9 * np.arange(4)), p).square.item()
        assert nearly == pytest.approx(solve(own, opp, A, B, p).square.item(), rel=1e-6)


@pytest.mark.parametrize("p", [1.001, 1.01, 1.05, 1.5, 1.999, 2.0, 2.001, 3.0, 50.0, 100.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 55.0, 1e4])
def test_two_neurons_at_any_p_scale_and_weight(p, scale):
    """K1 = K2 = 1: the boundary is the ray v = (A/B)^(1/p) u, u >= 0, and the axis u = 0 below it."""
    rng = np.random.default_rng(5)
    a, b = np.abs(rng.normal(size=40)) * scale, rng.normal(size=40) * scale / 2
    A, B = np.exp(3 * rng.normal(size=2))
    found = lengths(a[:, None], b[:, None], np.array([A]), np.array([B]), p)
    slope = (A / B) ** (1 / p)
    u = np.maximum((a + slope * b) / (1 + slope**2), 0)
    expected = np.minimum(np.hypot(a - u, b - slope * u), a)
    expected[slope * a <= b] = 0
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-9)


def test_just_above_one_is_the_piecewise_linear_net():
    rng = np.random.default_rng(1)
    own, opp, A, B = batch(rng, 60, equal=True)
    straight = (
        decoupled_radius(torch.tensor(own), torch.tensor(opp), 1.0, 1.0).square.sqrt().numpy()
    )
    broken = np.maximum(own, 0).sum(1) <= np.maximum(opp, 0).sum(1)
    found = lengths(own, opp, A, B, 1.0005)
    np.testing.assert_allclose(found[~broken], straight[~broken], atol=5e-3)


def test_points_at_the_edge_and_beyond():
    one = torch.ones(2, dtype=torch.float64)
    own = torch.tensor([[0.5, 0.0], [0.2, 0.1], [-1.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    opp = torch.tensor([[0.5, 0.0], [0.9, 0.0], [-1.0, -2.0], [-5.0, -5.0]], dtype=torch.float64)
    for p in (1.5, 2.0, 3.0):
        found = power_radius(own, opp, one, one, p).square.sqrt()
        # on the boundary; broken; silent (f = 0 is broken); far from any opposite centre: the end
        assert found[:3].tolist() == [0, 0, 0]
        assert found[3].item() == pytest.approx(1.0)


def test_no_opposite_centre_leaves_the_end():
    own = torch.tensor([[0.6, 0.8, -3.0]], dtype=torch.float64)
    found = power_radius(
        own, torch.zeros(1, 0).double(), torch.ones(3).double(), torch.ones(0).double(), 3
    )
    assert found.square.item() == pytest.approx(1.0)


def test_refusals():
    one = torch.ones(1, 1, dtype=torch.float64)
    for p in (1.0, 101.0):
        with pytest.raises(CallError, match=f"p={p:g}"):
            power_radius(one, one, one[0], one[0], p)
    many = torch.zeros(1, 15, dtype=torch.float64)
    with pytest.raises(CallError, match="15 opposite centres"):
        power_radius(one, many, one[0], torch.arange(1, 16).double(), 1.5)
