"""Every number on the errata page, computed."""

import math

import pytest
import torch
from scipy.stats import norm

from tacit.attack import first_crossing
from tacit.certify import radius
from tacit.data import cluster_mixture, orthogonal_centres, sqrt_d_mixture
from tacit.nets import average_net, centre_net, decoupled_net, prop48_net


def test_theorem_3_loses_a_factor_K():
    # |g1| + |g2| <= t is a square of half-side t/sqrt(2), turned by 45 degrees
    both = 1 - (2 * norm.cdf(1 / math.sqrt(2)) - 1) ** 2
    assert both == pytest.approx(0.729, abs=1e-3)
    assert 2 * norm.sf(0.5) == pytest.approx(0.617, abs=1e-3)
    assert both > 2 * norm.sf(0.5)


def test_proposition_1_needs_at_least():
    left = 1 - 2 * math.exp(-10 / 6) - 2 * math.exp(-10 / 4)
    right = 1 - 4 * math.exp(-1)
    assert (left, right) == pytest.approx((0.458, -0.472), abs=1e-3)


def test_the_posters_noise_makes_the_bound_false():
    mixture = cluster_mixture(orthogonal_centres(2, 2), 1, 0.5)
    points = mixture.sample(20_000, torch.Generator().manual_seed(0))
    radii = radius(centre_net(mixture, 3.0), points.x, points.y).lower
    broken = float((radii <= (math.sqrt(2) - 0.5) / 2).double().mean())
    bound = 6 * math.exp(-0.5 * 1000 * 0.25 / (2 * 0.25 * 4))
    assert broken == pytest.approx(0.34, abs=0.01)
    assert bound == pytest.approx(4e-27, rel=0.2)


def test_the_two_half_spaces_behind_theorem_3():
    """At a noisy centre the distances are 1/sqrt(K) and 1/sqrt(K1) plus one Gaussian each."""
    K, K1 = 5, 3
    mixture = cluster_mixture(orthogonal_centres(K, K), K1, 0.05)
    points = mixture.sample(200, torch.Generator().manual_seed(0))
    points_x = points.x[points.y > 0]
    noise = points_x - mixture.centres[points.z[points.y > 0]]
    plane = 1 / math.sqrt(K) + noise @ mixture.labels / math.sqrt(K)
    alone = 1 / math.sqrt(K1) + noise[:, :K1].sum(1) / math.sqrt(K1)
    found = radius(average_net(mixture), points_x, torch.ones(len(points_x)).double()).upper
    assert torch.allclose(found, torch.minimum(plane, alone).clamp_min(0))


def test_figure_1_holds_at_the_closest_corner_only():
    angle = torch.tensor([90.0, 162, 18, 234, 306]).double() * math.pi / 180
    pentagon = cluster_mixture(torch.stack([angle.cos(), angle.sin()], 1), 3, 0.1)
    averaged = radius(average_net(pentagon), pentagon.centres, pentagon.labels).upper
    assert averaged.tolist() == pytest.approx([1, 0.309, 0.309, 0.809, 0.809], abs=1e-3)
    # straight down from the top corner f_FD vanishes half way
    top = torch.tensor([[0.0, 0.4999]]).double()
    assert decoupled_net(pentagon)(top).item() == 0
    assert decoupled_net(pentagon)(top + 2e-4).item() > 0


def test_the_class_radii_of_f_avg_sum_to_twice_root_d_over_k():
    d, k = 400, 8
    mixture = sqrt_d_mixture(d, k, 4)
    for b_plus, b_minus in ((0.0, 0.0), (100.0, -50.0), (300.0, 200.0), (-150.0, -100.0)):
        found = radius(average_net(mixture, b_plus, b_minus), mixture.centres, mixture.labels).upper
        assert found[0] + found[-1] <= 2 * math.sqrt(d / k) + 1e-9
    even = radius(average_net(mixture), mixture.centres, mixture.labels).upper
    assert even.tolist() == pytest.approx([math.sqrt(d / k)] * k)


def test_prop_4_8_breaks_sooner_than_its_proof_says():
    d, k = 10_000, 10
    mixture = sqrt_d_mixture(d, k, 5)
    x, y = mixture.centres[:1], mixture.labels[:1]
    step = -(mixture.labels @ mixture.centres).unsqueeze(0)
    along = first_crossing(prop48_net(mixture), x, y, step).item() / math.sqrt(d)
    assert along == pytest.approx(2 * math.sqrt(k) / (k + 2), rel=1e-3)
    assert 6 / math.sqrt(k) == pytest.approx(1.90, abs=0.01)
    assert radius(prop48_net(mixture), x, y).upper.item() / math.sqrt(d) == pytest.approx(
        0.5, abs=1e-3
    )


def test_f_dec_at_a_centre_is_half_of_d():
    mixture = sqrt_d_mixture(64, 4, 2)
    assert decoupled_net(mixture)(mixture.centres[:1]).item() == 32


def test_sizes_that_assumption_2_2_admits():
    def admits(k, d, sigma):
        delta = 4 * sigma * math.sqrt(d) * math.log(d)
        return k * (delta + 1) <= (d - delta + 1) / 10

    for k, d, sigma in ((2, 549, None), (32, 12_424, None), (2, 1_415_388, 1.0)):
        assert admits(k, d, sigma or d**-0.5)
        assert not admits(k, d - 1, sigma or (d - 1) ** -0.5)
