"""The Bayes rule, the net of Prop. 4.8 and the nearest neighbour."""

import math

import numpy as np
import pytest
import torch
from brute import grid_radius
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from tacit.certify import nearest_bounds, nearest_radius, radius
from tacit.certify.nearest.radius import least_distance
from tacit.certify.softmax.bayes import prop48_radius
from tacit.data import cluster_mixture, min2024_mixture, sqrt_d_mixture
from tacit.errors import CallError
from tacit.nets import BayesRule, MultiClassNet, NearestNeighbour, prop48_net


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("seed", range(4))
def test_the_bayes_interval_holds_the_fan_of_rays(seed):
    centres = torch.randn(4, 2, generator=gen(seed), dtype=torch.float64) * 2
    mixture = cluster_mixture(centres, 2, 0.4, torch.tensor([1.0, 2.0, 1.0, 1.0]))
    points = mixture.sample(5, gen(seed))
    found = radius(BayesRule(mixture), points.x, points.y)
    for x, y, low, high in zip(points.x, points.y, found.lower, found.upper, strict=True):
        fan = grid_radius(BayesRule(mixture), x, float(y), 8.0)
        assert float(low) <= fan + 1e-9
        assert fan <= float(high) + 8 / 1999


def test_the_bayes_interval_is_tight_where_noise_is_small():
    mixture = min2024_mixture(300, 6, 3, 0.1)
    points = mixture.sample(200, gen())
    found = radius(BayesRule(mixture), points.x, points.y)
    assert (found.lower <= found.upper).all()
    assert (found.upper - found.lower).max() < 2e-3
    assert abs(float(found.upper.median()) - math.sqrt(0.5)) < 0.01


@pytest.mark.parametrize(("k", "k1"), [(4, 2), (10, 5), (12, 9)])
def test_prop_4_8_at_the_centres(k, k1):
    d = 4000
    mixture = sqrt_d_mixture(d, k, k1)
    found = radius(prop48_net(mixture), mixture.centres, mixture.labels)
    theory = 2 * math.sqrt(d / (k + 6))
    assert (found.lower <= found.upper).all()
    assert (found.lower / theory - 1).abs().max() < 2e-3
    assert (found.upper / theory - 1).abs().max() < 2e-3


def test_prop_4_8_lower_end_is_never_beaten_by_descent():
    """An attack by SLSQP on the log-odds itself, from the interval's own direction and from others."""
    mixture = sqrt_d_mixture(30, 4, 2).reduced()
    net = prop48_net(mixture)
    points = mixture.sample(6, gen(1))
    found = radius(net, points.x, points.y)
    for x, y, low, high in zip(points.x, points.y, found.lower, found.upper, strict=True):
        if high == 0:
            continue
        best = np.inf
        for target in mixture.centres[mixture.labels != y]:
            result = minimize(
                lambda u, x=x: ((u - x.numpy()) ** 2).sum() / 2,
                ((x + target) / 2).numpy(),
                constraints=[
                    {
                        "type": "ineq",
                        "fun": lambda u, y=y: -float(y * net(torch.tensor(u)[None])[0]),
                    }
                ],
                method="SLSQP",
                options={"ftol": 1e-12},
            )
            if -float(y * net(torch.tensor(result.x)[None])[0]) > -1e-7:
                best = min(best, np.linalg.norm(result.x - x.numpy()))
        assert float(low) <= best + 1e-4
        assert float(high) <= best * 1.05 + 1e-4


def test_prop_4_8_refuses_other_nets():
    labels = torch.tensor([1.0, -1.0]).double()
    x, y = torch.ones(1, 3).double(), torch.ones(1).double()
    with pytest.raises(CallError, match="one neuron a subclass"):
        prop48_radius(MultiClassNet(torch.ones(2, 2, 3).double(), labels), x, y)
    with pytest.raises(CallError, match="orthogonal centres"):
        prop48_radius(
            MultiClassNet(torch.tensor([[[1.0, 0, 0]], [[1.0, 1, 0]]]).double(), labels), x, y
        )


@settings(max_examples=8)
@given(seed=st.integers(0, 9999))
def test_nearest_neighbour_in_the_plane(seed):
    train = torch.randn(12, 2, generator=gen(seed), dtype=torch.float64)
    y = torch.ones(12, dtype=torch.float64)
    y[6:] = -1
    rule = NearestNeighbour(train, y)
    x = torch.randn(3, 2, generator=gen(seed + 1), dtype=torch.float64)
    labels = rule(x).sign()
    exact, bounds = nearest_radius(rule, x, labels), nearest_bounds(rule, x, labels)
    assert (bounds.lower <= exact.lower + 1e-9).all()
    assert (exact.upper <= bounds.upper + 1e-9).all()
    for point, label, r in zip(x, labels, exact.upper, strict=True):
        if r < 7:
            fan = grid_radius(rule, point, float(label), 8.0)
            assert float(r) <= fan + 1e-9
            # a corner is met to first order in the angle between rays
            assert fan <= float(r) * 1.01 + 8 / 1999


def test_nearest_neighbour_in_many_dimensions_agrees_with_a_general_solver():
    mixture = sqrt_d_mixture(20, 4, 2, 0.5)
    train = mixture.sample(24, gen(0))
    rule = NearestNeighbour(train.x, train.y)
    points = mixture.sample(4, gen(1))
    found = nearest_radius(rule, points.x, points.y).upper
    for x, y, r in zip(points.x, points.y, found, strict=True):
        own, opp = train.x[train.y == y].numpy(), train.x[train.y != y].numpy()
        best = np.inf
        for j in opp:
            G = 2 * (own - j)
            h = (own**2).sum(1) - (j**2).sum()
            result = minimize(
                lambda u, x=x: ((u - x.numpy()) ** 2).sum() / 2,
                j,
                constraints=[
                    {"type": "ineq", "fun": lambda u, G=G, h=h: h - G @ u, "jac": lambda u, G=G: -G}
                ],
                method="SLSQP",
                options={"ftol": 1e-12, "maxiter": 300},
            )
            best = min(best, np.linalg.norm(result.x - x.numpy()))
        assert float(r) == pytest.approx(best, rel=1e-5)


def test_coincident_training_points_of_both_classes():
    rule = NearestNeighbour(
        torch.tensor([[0.0, 0], [3, 0], [3, 0]]).double(), torch.tensor([1.0, 1, -1]).double()
    )
    x, y = torch.tensor([[0.1, 0]]).double(), torch.ones(1).double()
    # the point (3, 0) is a tie for ever, so x breaks where (3, 0) becomes the nearest
    for found in (nearest_radius(rule, x, y), nearest_bounds(rule, x, y)):
        assert found.lower.item() == pytest.approx(1.4)
        assert found.upper.item() == pytest.approx(1.4)


def test_an_own_point_beyond_the_opposite_one_does_not_loosen_the_bound():
    rule = NearestNeighbour(
        torch.tensor([[0.0], [5], [1]]).double(), torch.tensor([1.0, 1, -1]).double()
    )
    found = nearest_bounds(rule, torch.zeros(1, 1).double(), torch.ones(1).double())
    assert (found.lower.item(), found.upper.item()) == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_nearest_neighbour_far_from_the_origin(offset):
    train = torch.randn(40, 3, generator=gen(0), dtype=torch.float64) + offset
    y = torch.ones(40, dtype=torch.float64)
    y[20:] = -1
    x = torch.randn(5, 3, generator=gen(1), dtype=torch.float64) + offset
    here = nearest_radius(NearestNeighbour(train, y), x, NearestNeighbour(train, y)(x).sign())
    home = NearestNeighbour(train - offset, y)
    assert torch.allclose(
        here.upper, nearest_radius(home, x - offset, home(x - offset).sign()).upper, atol=1e-7
    )


def test_upper_ends_are_numbers_even_next_to_the_boundary():
    """Within ln K of the boundary the lower end is 0 and its ray has no length."""
    mixture = sqrt_d_mixture(9, 4, 2).reduced()
    points = mixture.sample(400, gen(0))
    wide = cluster_mixture(mixture.centres, 2, 2.0, torch.tensor([1.0, 1e-6, 1, 1]))
    for rule in (prop48_net(mixture), BayesRule(wide)):
        found = radius(rule, points.x, points.y)
        assert not found.upper.isnan().any()
        assert (found.lower <= found.upper).all()
        assert (found.lower == 0).any()


def test_bayes_with_one_centre_in_both_classes():
    """Of equal weights the second own cluster decides, and nothing breaks; of 1 : 1 : 3 something does."""
    centres = torch.tensor([[1.0, 0], [0, 1], [1, 0]], dtype=torch.float64)
    x = torch.tensor([[1.0, 1], [0, 1]], dtype=torch.float64)
    never = radius(BayesRule(cluster_mixture(centres, 2, 0.5)), x, torch.ones(2, dtype=x.dtype))
    assert torch.isinf(never.upper).all()
    assert (never.lower >= 0).all()
    weights = torch.tensor([1.0, 1, 3], dtype=torch.float64)
    rule = BayesRule(cluster_mixture(centres, 2, 0.5, weights))
    y = rule(x).sign()
    found = radius(rule, x, y)
    fan = [grid_radius(rule, x[i], float(y[i]), 6.0) for i in range(2)]
    assert (found.lower <= torch.tensor(fan, dtype=x.dtype) + 1e-9).all()


def test_intervals_are_not_upside_down_next_to_the_boundary():
    x = torch.tensor([[1 + 1e-9, 1], [1 + 1e-13, 1]], dtype=torch.float64)
    y = torch.ones(2, dtype=torch.float64)
    net = MultiClassNet(torch.eye(2, dtype=torch.float64).unsqueeze(1), x.new_tensor([1, -1]))
    for found in (prop48_radius(net, x, y), radius(BayesRule(sqrt_d_mixture(2, 2, 1)), x, y)):
        assert (found.lower <= found.upper).all()
        assert found.upper.tolist() == pytest.approx([1e-9 / 2**0.5, 1e-13 / 2**0.5], rel=0.01)


def test_two_opposite_clusters_share_what_the_bayes_bound_gives_up():
    """At 0, opposite centres (2, +-.3): broken where 2 e^{2t - 2.045} = 1, closer than any one of them says."""
    centres = torch.tensor([[0.0, 0], [2, 0.3], [2, -0.3]], dtype=torch.float64)
    rule = BayesRule(cluster_mixture(centres, 1, 1.0))
    found = radius(rule, centres[:1], torch.ones(1, dtype=torch.float64))
    t = (2.045 - math.log(2)) / 2
    assert float(found.upper) == pytest.approx(t, rel=0.02)
    assert 0.9 * t <= float(found.lower) <= t


def test_bayes_is_attacked_past_the_opposite_centre():
    """At (0, 0) two own densities still outweigh the one that is centred there: 2 e^{t - 1/2} = 1 further on."""
    centres = torch.tensor([[1.0, 0], [0, 1], [0, 0]], dtype=torch.float64)
    x = torch.ones(1, 2, dtype=torch.float64)
    found = radius(BayesRule(cluster_mixture(centres, 2, 1.0)), x, torch.ones(1, dtype=x.dtype))
    assert float(found.upper) == pytest.approx((0.5 + math.log(2)) * 2**0.5, rel=1e-6)


def test_one_class_is_refused_where_a_second_is_needed():
    alone = cluster_mixture(torch.eye(2).double(), 2, 0.1, one_class=True)
    with pytest.raises(CallError, match="both classes"):
        BayesRule(alone)
    with pytest.raises(CallError, match="both classes"):
        radius(prop48_net(alone), torch.ones(1, 2).double(), torch.ones(1).double())


def test_least_distance_to_a_corner():
    # {-a <= -3, -b <= -4}: the nearest point is the corner (3, 4)
    G, h = -np.eye(2), np.array([-3.0, -4.0])
    assert least_distance(G, h) == pytest.approx([3, 4])


def test_a_wrong_label_has_radius_zero():
    rule = NearestNeighbour(
        torch.tensor([[0.0], [1.0]]).double(), torch.tensor([1.0, -1.0]).double()
    )
    found = nearest_radius(
        rule, torch.tensor([[0.2], [0.2]]).double(), torch.tensor([1.0, -1.0]).double()
    )
    assert found.upper.tolist() == pytest.approx([0.3, 0.0])


def test_many_points_get_bounds():
    mixture = sqrt_d_mixture(20, 4, 2, 0.5)
    train, points = mixture.sample(24, gen(0)), mixture.sample(500, gen(1))
    found = radius(NearestNeighbour(train.x, train.y), points.x, points.y)
    assert (found.lower <= found.upper).all()
    assert not found.exact.all()
