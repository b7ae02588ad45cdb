"""Half-spaces, two neurons, orthogonal neurons: against fans of rays in the plane and brute force."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from brute import grid_radius
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from rounding import same_numbers
from tacit.certify import radius
from tacit.certify.poly.decoupled import decoupled_radius
from tacit.data import (
    cluster_mixture,
    equiangular_centres,
    min2024_mixture,
    orthogonal_centres,
    sqrt_d_mixture,
)
from tacit.errors import CallError
from tacit.nets import (
    Linear,
    TwoLayerNet,
    average_net,
    centre_net,
    decoupled_net,
    frei_net,
)


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(seed=st.integers(0, 999))
def test_linear_radius_is_the_distance_to_the_plane(seed):
    rule = Linear(normal(seed, 4), 0.3)
    x = normal(seed + 1, 6, 4)
    y = torch.ones(6, dtype=torch.float64)
    found = radius(rule, x, y).upper
    expected = [max(float(v), 0) / float(rule.u.norm()) for v in rule(x)]
    assert found.tolist() == pytest.approx(expected)


@settings(max_examples=15)
@given(seed=st.integers(0, 9999), label=st.sampled_from([1.0, -1.0]))
def test_two_neurons_at_any_angle_with_any_bias(seed, label):
    net = TwoLayerNet(
        normal(seed, 2, 2),
        torch.tensor([1.0, -1.0]).double() * normal(seed + 1, 2).abs(),
        normal(seed + 2, 2) / 2,
    )
    x = normal(seed + 3, 1, 2)
    exact = radius(net, x, torch.tensor([label]).double()).upper.item()
    fan = grid_radius(net, x, label, 6.0)
    if exact < 5:
        assert exact <= fan + 1e-9
        assert fan <= exact * 1.0001 + 6 / 1999 + 1e-3 * exact
    else:
        assert fan > 4.9


def test_two_neurons_in_either_order():
    mixture = min2024_mixture(6, 4, 2, 0.3)
    net = average_net(mixture)
    points = mixture.sample(20, torch.Generator().manual_seed(0))
    flipped = TwoLayerNet(net.w.flip(0), net.v.flip(0), net.b.flip(0))
    # a few dozen operations on 6 coordinates
    assert same_numbers(
        radius(net, points.x, points.y).upper, radius(flipped, points.x, points.y).upper, 100
    )


@pytest.mark.parametrize(("K", "K1"), [(2, 1), (4, 2), (10, 6), (20, 8)])
def test_F_breaks_at_one_over_root_K_at_the_centres(K, K1):
    mixture = min2024_mixture(K + 3, K, K1, 0.0)
    found = radius(average_net(mixture), mixture.centres, mixture.labels)
    assert (found.upper - 1 / math.sqrt(K)).abs().max() < 1e-12
    assert found.exact.all()


def piecewise_brute(own, opp, a, b, ties_break):
    """The union over subsets T of convex programs, each by SLSQP in the epigraph form."""
    c, K1 = np.concatenate([own, opp]), len(own)
    if a * np.maximum(own, 0).sum() <= b * np.maximum(opp, 0).sum() and ties_break:
        return 0.0
    best = np.linalg.norm(np.maximum(own, 0)) if ties_break else np.inf
    for size in range(1, len(opp) + 1):
        for T in combinations(range(len(opp)), size):
            # variables u and e >= relu(u_own)
            def room(v, T=T):
                return b * v[[K1 + j for j in T]].sum() - a * v[len(c) :].sum()

            start = np.concatenate([np.zeros(K1), np.maximum(opp, 0.1), np.zeros(K1)])
            found = minimize(
                lambda v: ((v[: len(c)] - c) ** 2).sum() / 2,
                start,
                constraints=[
                    {"type": "ineq", "fun": room},
                    {"type": "ineq", "fun": lambda v: v[len(c) :] - v[:K1]},
                    {"type": "ineq", "fun": lambda v: v[len(c) :]},
                ],
                method="SLSQP",
                options={"ftol": 1e-13, "maxiter": 200},
            )
            if found.success:
                best = min(best, np.linalg.norm(found.x[: len(c)] - c))
    return best


@pytest.mark.parametrize("ties_break", [True, False])
def test_orthogonal_neurons_agree_with_convex_programs(ties_break):
    rng = np.random.default_rng(3)
    for _ in range(12):
        K1, K2 = rng.integers(1, 4, 2)
        own, opp = rng.normal(size=K1) * 0.4, rng.normal(size=K2) * 0.4 - 0.3
        own[0] += 0.8
        a, b = rng.uniform(0.5, 2, 2)
        found = decoupled_radius(
            torch.tensor(own)[None], torch.tensor(opp)[None], a, b, ties_break=ties_break
        )
        brute = piecewise_brute(own, opp, a, b, ties_break)
        assert math.sqrt(found.square.item()) == pytest.approx(brute, abs=1e-5)
        u, v = own + found.own[0].numpy(), opp + found.opp[0].numpy()
        assert a * np.maximum(u, 0).sum() <= b * np.maximum(v, 0).sum() + 1e-9


def test_f_dec_at_a_centre_in_both_readings_of_a_tie():
    mixture = sqrt_d_mixture(64, 6, 3)
    net = decoupled_net(mixture)
    tied = radius(net, mixture.centres, mixture.labels).upper / 8
    strict = radius(net, mixture.centres, mixture.labels, ties_break=False).upper / 8
    assert (tied - 0.5).abs().max() < 1e-12
    assert (strict - math.sqrt(0.5)).abs().max() < 1e-12


@given(seed=st.integers(0, 999))
def test_f_dec_and_freis_net_have_the_same_sign_and_radius(seed):
    mixture = sqrt_d_mixture(30, 5, 2, 1.0)
    points = mixture.sample(10, torch.Generator().manual_seed(seed))
    one, two = (
        radius(make(mixture), points.x, points.y).upper for make in (decoupled_net, frei_net)
    )
    assert torch.allclose(one, two)


def test_neurons_that_are_not_orthogonal_get_an_honest_interval():
    g = torch.Generator().manual_seed(0)
    centres = orthogonal_centres(4, 6, 2.0, g) + 0.1 * normal(5, 4, 6)
    mixture = cluster_mixture(centres, 2, 0.1)
    straight = cluster_mixture(orthogonal_centres(4, 6, 2.0), 2, 0.1)
    uneven = TwoLayerNet(
        straight.centres, straight.labels * torch.tensor([1, 1.2, 1, 0.9]), -torch.ones(4).double()
    )
    for net in (decoupled_net(mixture), TwoLayerNet(centres, mixture.labels, p=3.0), uneven):
        points = (straight if net is uneven else mixture).sample(30, g)
        found = radius(net, points.x, points.y)
        assert (found.lower <= found.upper).all()
        assert torch.isfinite(found.upper).all()
        assert (found.upper <= 1.6 * found.lower).all()
        # no random perturbation shorter than the lower end breaks a point
        for seed in range(20):
            shift = normal(seed, 30, 6)
            shift = shift / shift.norm(dim=1, keepdim=True) * (found.lower * 0.999).unsqueeze(1)
            assert (points.y * net(points.x + shift) > 0).all()


def test_a_strict_crossing_of_neurons_that_are_not_orthogonal():
    """f_dec on a simplex of five: half the distance between centres, sqrt(2 (1 - c)) / 2, brackets."""
    mixture = cluster_mixture(equiangular_centres(5, 8, -0.25, 3.0), 3, 0.1)
    net = decoupled_net(mixture)
    strict = radius(net, mixture.centres, mixture.labels, ties_break=False)
    tied = radius(net, mixture.centres, mixture.labels)
    assert (strict.lower <= strict.upper).all()
    assert (tied.upper <= strict.upper).all()
    assert (tied.lower <= 1.5 + 1e-9).all()
    assert (strict.lower / 3 <= 0.8165).all()
    assert (strict.upper / 3 >= 0.8164).all()


def test_ensembles_get_a_row_each():
    mixture = min2024_mixture(6, 4, 2, 0.3)
    points = mixture.sample(9, torch.Generator().manual_seed(0))
    one = average_net(mixture)
    both = TwoLayerNet(torch.stack([one.w, 2 * one.w]), torch.stack([one.v, one.v]))
    found = radius(both, points.x, points.y).upper
    assert found.shape == (2, 9)
    assert torch.allclose(found[0], found[1])


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (
            TwoLayerNet(
                torch.eye(2).double(),
                torch.tensor([1.0, -1.0]).double(),
                torch.ones(2).double(),
                3.0,
            ),
            "biases",
        ),
    ],
)
def test_nets_without_a_known_radius_are_refused(net, words):
    x = torch.ones(1, net.w.shape[1], dtype=torch.float64)
    with pytest.raises(CallError, match=words):
        radius(net, x, torch.ones(1).double())


def test_silent_neurons_change_nothing():
    mixture = min2024_mixture(6, 4, 2, 0.3)
    points = mixture.sample(9, torch.Generator().manual_seed(0))
    for net in (average_net(mixture), centre_net(mixture, 3.0), decoupled_net(mixture)):
        b = None if net.b is None else torch.cat([net.b, torch.tensor([-1.0, 0.5])])
        w = torch.cat([net.w, torch.zeros(1, 6), torch.ones(1, 6)])
        padded = TwoLayerNet(w, torch.cat([net.v, torch.tensor([1.0, 0.0])]), b, net.p)
        found, wanted = (radius(some, points.x, points.y).upper for some in (padded, net))
        assert torch.allclose(found, wanted, rtol=1e-9)  # as far as a radius is exact
    constant = TwoLayerNet(
        torch.zeros(1, 6).double(), torch.ones(1).double(), torch.ones(1).double()
    )
    # f = 1: right for the positive class whatever is added, wrong for the other
    found = radius(constant, points.x, points.y)
    assert torch.equal(found.lower, torch.where(points.y > 0, torch.inf, 0.0).double())
    assert torch.equal(found.upper, found.lower)


def test_nets_that_speak_for_one_class_only():
    one = torch.ones(2, dtype=torch.float64)
    x, y = torch.eye(2, 3).double(), torch.tensor([1.0, -1.0]).double()
    for p in (1.0, 3.0):
        net = TwoLayerNet(torch.eye(2, 3).double(), one, p=p)
        # the positive point is broken where its neuron is off; the negative one is broken already
        assert radius(net, x, y).upper.tolist() == pytest.approx([1.0, 0.0])
        silent = TwoLayerNet(net.w, 0 * one, p=p)
        assert radius(silent, x, y).upper.tolist() == [0.0, 0.0]


def test_float32_nets_and_points_are_welcome():
    mixture = min2024_mixture(6, 4, 2, 0.3)
    points = mixture.sample(9, torch.Generator().manual_seed(0))
    net = average_net(mixture)
    single = TwoLayerNet(net.w.float(), net.v.float(), net.b.float())
    found = radius(single, points.x.float(), points.y.float()).upper
    assert torch.allclose(found, radius(net, points.x, points.y).upper, atol=1e-6)


def test_a_net_with_nan_gets_no_certificate():
    net = TwoLayerNet(torch.full((2, 3), math.nan).double(), torch.tensor([1.0, -1.0]).double())
    with pytest.raises(CallError, match=r"TwoLayerNet\.w holds NaN"):
        radius(net, torch.ones(1, 3).double(), torch.ones(1).double())


def test_bad_points_are_refused():
    net = average_net(min2024_mixture(3, 2, 1, 0.1))
    one = torch.ones(1, dtype=torch.float64)
    with pytest.raises(CallError, match="NaN"):
        radius(net, torch.full((1, 3), math.nan).double(), one)
    with pytest.raises(CallError, match="labels are -1 or"):
        radius(net, torch.ones(1, 3).double(), 0 * one)
    with pytest.raises(CallError, match="ties_break"):
        radius(Linear(torch.ones(3).double()), torch.ones(1, 3).double(), one, ties_break=False)
