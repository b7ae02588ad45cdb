"""Every number on the errata page, computed."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import norm

from tacit.attack import first_crossing
from tacit.certify import radius
from tacit.data import cluster_mixture, orthogonal_centres, sqrt_d_mixture
from tacit.measure import algorithm1, alignment_field
from tacit.measure.purification.lottery import lottery_constants
from tacit.nets import (
    PolyReLUNet,
    SymmetricNet,
    TwoLayerNet,
    average_net,
    centre_net,
    decoupled_net,
    prop48_net,
)
from tacit.nets.smoothed import smoothed_step
from tacit.papers.frei2023._shared.means import least_dimension, small_noise
from tacit.papers.min2024.alg1.exhibit import known_distance, known_net
from tacit.train import Until, descend, gradient_flow
from tacit.train.losses import loss_at, pull_at


def test_theorem_3_loses_a_factor_K():
    # |g1| + |g2| <= t is a square of half-side t/sqrt(2), turned by 45 degrees
    both = 1 - (2 * norm.cdf(1 / math.sqrt(2)) - 1) ** 2
    assert both == pytest.approx(0.729, abs=1e-3)
    assert 2 * norm.sf(0.5) == pytest.approx(0.617, abs=1e-3)
    assert both > 2 * norm.sf(0.5)


def test_34_needs_the_square_of_one_less_root_half():
    sd = 0.2  # alpha/sqrt(D)
    edge = 1 - math.sqrt(0.5)
    assert edge**2 == pytest.approx(0.086, abs=5e-4)
    assert 2 * norm.sf(edge / sd) == pytest.approx(0.143, abs=1e-3)
    assert 2 * math.exp(-0.5 / (4 * sd**2)) == pytest.approx(0.088, abs=1e-3)
    delta = torch.linspace(0, math.sqrt(2), 1001).double()
    assert (delta[-1] ** 2 / 8 > edge**2).item()  # the last step, K2 = 1
    assert ((1 - (math.sqrt(2) - delta) / 2) ** 2 > delta**2 / 8).all()


def test_an_attack_on_figure_2_that_starts_at_zero_does_not_see_root_half():
    """The released rule: normalised gradient steps of the exponential loss from the point itself."""
    mixture = cluster_mixture(orthogonal_centres(10, 10), 6, 0.01 / math.sqrt(1000))
    points = mixture.sample(500, torch.Generator().manual_seed(0))
    net, limit = centre_net(mixture, 3.0), 0.75
    delta = torch.zeros_like(points.x)
    for _ in range(200):
        moved = (points.x + delta).requires_grad_()
        loss = torch.exp(-points.y * net(moved)).sum()
        (slope,) = torch.autograd.grad(loss, moved)
        delta = delta + 0.1 * slope / (slope.norm(dim=1, keepdim=True) + 1e-7)
        delta = delta * (limit / delta.norm(dim=1, keepdim=True)).clamp(max=1.0)
    assert (points.y * net(points.x + delta) > 0).all()
    assert (radius(net, points.x, points.y).upper < limit).all()


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


def test_theorem_2_1_needs_the_logarithm_of_base_2():
    """A net that is dead at its one point: no gradient, whatever the loss there."""
    x, y = torch.ones(1, 3).double(), torch.ones(1).double()
    dead = TwoLayerNet(-torch.ones(4, 3).double(), torch.ones(4).double(), torch.zeros(4).double())
    net = descend(dead, x, y, step=1.0, steps=5, loss="logistic").net
    assert torch.equal(net.w, dead.w)
    assert float(loss_at(y * net(x), "logistic")) == pytest.approx(math.log(2))  # < 1/n = 1
    q = torch.linspace(-3, 3, 601).double()
    assert torch.equal(loss_at(q, "logistic") / math.log(2) < 1, q > 0)
    wrong = loss_at(torch.tensor([-0.5]).double(), "logistic")
    assert float(wrong) == pytest.approx(0.974, abs=5e-4)  # < 1, on the wrong side


def test_the_perturbation_of_theorem_4_2s_proof():
    def length(k, d):
        """(eta_1 + eta_2) ||u|| / sqrt(d); orthogonal means, sigma = 1/sqrt(d), c = 1/2."""
        delta = 4 * math.log(d)
        room, c = d - delta - k * delta, k * (delta + 1) / (d - delta + 1)
        two = 3 * (3 * d + delta + 1) * (1 - 2 * c) / (room * (1 - 3 * c) * k / 2)
        return ((2 * delta + 1) / room + two) * math.sqrt(k)

    assert length(32, 12_424) == pytest.approx(4.1, abs=0.05)
    for k, d in ((530, 270_521), (532, 271_629)):
        assert least_dimension(k, small_noise) == d
    assert length(532, 271_629) < 1 < length(530, 270_521)
    # d far above what Assumption 2.2 asks for: 9/(c sqrt(k)), below 1 from k = 81/c^2 on
    assert length(325, 1e12) < 1 < length(323, 1e12)


# Theorem 2 and its lemmas: five orthonormal centres, the first K1 of them positive


def rates(w, target, p, K1):
    """d/dt cos(w, target) of positive neurons with unit rows w, as eps -> 0."""
    centres = orthogonal_centres(5, 5)
    labels = torch.where(torch.arange(5) < K1, 1.0, -1.0).double()
    field = alignment_field(w, centres, labels, p)
    return field @ target - (w @ target) * (field * w).sum(1)


def around(target, within, delta, n=20_000):
    """Random unit rows at cosine 1 - delta from the target, in the span of the rows of `within`."""
    lean = torch.randn(n, len(within), generator=torch.Generator().manual_seed(0)).double() @ within
    lean = lean - (lean @ target).unsqueeze(1) * target
    return leaning(target, lean / lean.norm(dim=1, keepdim=True), delta)


def leaning(target, lean, delta):
    c = 1 - delta
    return c * target + math.sqrt(1 - c * c) * lean


@pytest.mark.parametrize("p", [1.0, 3.0, 6.0])
def test_off_the_span_the_average_attracts_whatever_p(p):
    K1, centres = 3, orthogonal_centres(5, 5)
    average = centres[:K1].sum(0) / math.sqrt(K1)
    for delta in (0.3, 0.01, 1e-4):
        c = 1 - delta
        found = rates(leaning(average, -centres[-1:], delta), average, p, K1).item()
        formula = p * (1 - c * c) * math.sqrt(K1) * (c / math.sqrt(K1)) ** (p - 1)
        assert found == pytest.approx(formula, rel=1e-9)
        assert found > 0
        if (p, delta) == (3.0, 0.01):
            assert found == pytest.approx(0.034, abs=5e-4)


@pytest.mark.parametrize("p", [2.1, 3.0, 6.0])
def test_in_the_span_the_average_repels_up_to_an_edge(p):
    K1, centres = 3, orthogonal_centres(5, 5)
    average = centres[:K1].sum(0) / math.sqrt(K1)
    edge = 1 - math.sqrt(1 - 1 / K1)
    for part in (0.01, 0.5, 0.99):
        w = around(average, centres[:K1], part * edge)
        assert rates(w, average, p, K1).max() < 0
    assert rates(around(average, centres[:K1], 1.02 * edge), average, p, K1).max() > 0


def test_with_one_centre_61_contradicts_62():
    centre = orthogonal_centres(5, 5)[0]
    w = around(centre, torch.eye(5, dtype=torch.float64), 0.01)
    assert rates(w, centre, 3.0, K1=1).min() > 0


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 6.0])
def test_a_centre_attracts_every_neighbour_for_p_above_2_only(p):
    K1, centres = 3, orthogonal_centres(5, 5)
    worst = centres[1:K1].sum(0) / math.sqrt(K1 - 1) if p < 2 else centres[1]
    for delta in (0.01, 0.2, 0.28, 0.3):
        zeta = 1 - (1 - delta) ** 2
        unit = p * (1 - delta) ** (p - 1) * zeta
        least = 1 - (K1 - 1) ** max(1 - p / 2, 0) * (zeta / (1 - delta) ** 2) ** (p / 2 - 1)
        found = rates(leaning(centres[0], worst.unsqueeze(0), delta), centres[0], p, K1) / unit
        assert found.item() == pytest.approx(least, rel=1e-9, abs=1e-12)
        others = around(centres[0], torch.eye(5, dtype=torch.float64), delta)
        assert rates(others, centres[0], p, K1).min() / unit >= least - 1e-9
        sign = 0 if p == 2 else 1 if p > 2 and delta < 1 - math.sqrt(0.5) else -1
        assert (least > 0) - (least < 0) == sign
        if (p, delta) == (1.0, 0.01):
            assert least == pytest.approx(-8.9, abs=0.05)


def test_lemma_5_is_not_strict_where_a_number_is_zero():
    z, p = torch.tensor([1.0, 0.0]), 3.0
    assert [float((z**q).sum() * (z ** (p + 1 - q)).sum()) for q in (0.5, 1, 2, 3.5)] == [1.0] * 4


def test_lemma_6_holds_for_the_logistic_loss_with_half_of_y():
    """-dl/df = y * pull(y f): divided by y, (57) compares the pull with 1, or with 1/2."""
    f = torch.linspace(-1, 1, 2001, dtype=torch.float64)
    assert ((pull_at(f, "exp") - 1).abs() <= 2 * f.abs()).all()
    assert (pull_at(torch.zeros(1), "logistic") - 1).abs().item() == 0.5
    assert ((pull_at(f, "logistic") - 0.5).abs() <= 2 * f.abs()).all()


def test_algorithm_1_has_no_gradient_where_no_neuron_is_active():
    mixture = cluster_mixture(orthogonal_centres(5, 5), 3, 0.0)
    x = (-mixture.centres.sum(0, keepdim=True)).requires_grad_()
    centre_net(mixture, 3.0)(x).square().sum().backward()
    assert x.grad.norm() == 0


def test_algorithm_1_as_released_stalls_at_p_3():
    f, F = known_net(1000, 10, 6, 3.0, 0.0065, torch.Generator().manual_seed(0))

    def estimate(offset):
        stream = torch.Generator().manual_seed(1)
        sizes = {"N1": 2000, "N2": 20, "max_iter": 1000}
        return algorithm1(f, F, **sizes, generator=stream, offset=offset).value

    assert known_distance(10, 6, 3.0, 0.0065) == pytest.approx(0.0075, abs=5e-5)
    assert estimate(0.0) == pytest.approx(0.0075, abs=5e-5)
    assert estimate(1e-7 * 1000) < 2e-5


def test_a_sample_of_the_other_class_lets_go_at_p_1_and_never_at_p_3():
    x, y = torch.tensor([[1.0, 0.0]]).double(), -torch.ones(1).double()
    start = torch.tensor([[0.8, 0.6]]).double()

    def cosine(p, time):
        net = TwoLayerNet(1e-5 * start, torch.tensor([1e-5]).double(), p=p)
        # merging would retire a neuron that nothing activates any more
        flowed = gradient_flow(net, x, y, until=Until(time=time), tolerance=1e-4, merge_angle=0.0)
        end = flowed.net
        assert end.w.norm() < 1e-5
        return float(end.w[0, 0] / end.w.norm())

    lets_go = math.atanh(0.8)
    assert cosine(1.0, 0.98 * lets_go) > 0
    assert cosine(1.0, 1.02 * lets_go) <= 0
    # 1/c - artanh(c) grows by 3 t
    for time in (2.0, 8.0):
        c = cosine(3.0, time)
        assert 1 / c - math.atanh(c) == pytest.approx(1.25 - lets_go + 3 * time, rel=0.02)


def test_a_neuron_that_one_centre_activates_turns_to_it_at_p_1():
    w = torch.tensor([[0.8, -0.6]]).double()
    field = alignment_field(w, torch.eye(2).double(), torch.ones(2).double(), 1.0)
    assert field.tolist() == [[1.0, 0.0]]
    # the growth of a mass, 2 G: at the average G = sqrt(2), at a centre 1
    average = torch.full((1, 2), math.sqrt(0.5), dtype=torch.float64)
    both = alignment_field(average, torch.eye(2).double(), torch.ones(2).double(), 1.0)
    assert (both * average).sum().item() == pytest.approx(math.sqrt(2))


def poly_relu_net(p, **reading):
    stream = torch.Generator().manual_seed(0)
    w, v = (torch.randn(shape, generator=stream).double() for shape in ((30, 7), (4, 30)))
    return PolyReLUNet(w, v, p=p, **reading)


def points_of_many_lengths(generator):
    return torch.randn(50, 7, generator=generator).double() * torch.linspace(0.1, 9, 50)[:, None]


RAW, RELEASED, WRITTEN = (
    {"normalize_input": False},
    {"normalize_input": True},
    {"normalize_input": False, "unit": True},
)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 4.0])
def test_hidden_values_scale_as_written_as_released_and_after_normalisation(p):
    x = points_of_many_lengths(torch.Generator().manual_seed(1))
    for reading, exponent in ((RAW, p), (RELEASED, 1.0), (WRITTEN, 0.0)):
        net = poly_relu_net(p, **reading)
        active = net.hidden(x) > 0
        ratio = (net.hidden(3 * x) / net.hidden(x))[active]
        assert torch.allclose(ratio.log() / math.log(3), torch.full_like(ratio, exponent))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 4.0])
def test_section_2_penalises_the_angle_by_a_power_of_its_cosine(p):
    x = points_of_many_lengths(torch.Generator().manual_seed(2))
    net = poly_relu_net(p, **RELEASED)
    inner = (x @ net.w.T).clamp_min(0)
    cosine = inner / net.w.norm(dim=1) / x.norm(dim=1, keepdim=True)
    assert torch.allclose(net.hidden(x), inner * cosine ** (p - 1))
    unit = x / x.norm(dim=1, keepdim=True)
    at_unit = poly_relu_net(p, **RAW).hidden(unit)
    assert torch.allclose(at_unit, (unit @ net.w.T).clamp_min(0) * cosine ** (p - 1))


def test_without_a_bias_released_and_written_layers_give_the_same_class():
    x = points_of_many_lengths(torch.Generator().manual_seed(3))
    released, written = (poly_relu_net(3.0, **reading)(x) for reading in (RELEASED, WRITTEN))
    assert torch.allclose(released, x.norm(dim=1, keepdim=True) * written)
    assert torch.equal(released.argmax(1), written.argmax(1))


def test_kaiming_of_a_weight_stored_by_inputs_has_the_bound_of_the_width():
    stored = torch.empty(784, 500)
    torch.nn.init.kaiming_uniform_(
        stored, nonlinearity="relu", generator=torch.Generator().manual_seed(0)
    )
    assert stored.abs().max().item() == pytest.approx(math.sqrt(6 / 500), rel=1e-4)
    assert (math.sqrt(6 / 500), math.sqrt(6 / 784)) == pytest.approx((0.110, 0.087), abs=6e-4)
    net = poly_relu_net(3.0, **RELEASED)
    larger = PolyReLUNet(1.25 * net.w, net.v, p=3.0)
    x = points_of_many_lengths(torch.Generator().manual_seed(4))
    assert torch.allclose(larger(x), 1.25 * net(x))


def test_theorem_E1_takes_the_sign_twice():
    w = torch.ones(1, 1, dtype=torch.float64)
    net = SymmetricNet(w, torch.full((1,), 0.25, dtype=torch.float64))
    y, x, step = 1.0, torch.ones(1, 1, dtype=torch.float64), 2.0
    delta = -y * step  # M w* = 1
    assert float(net(x - delta)) == pytest.approx(2.75)
    assert float(net(x + delta)) == pytest.approx(-0.75)


def test_the_regulariser_is_the_cube_of_the_2_norm():
    for order, wanted in ((2, [15.0, 20.0]), (3, [9.0, 16.0])):
        w = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
        (torch.linalg.vector_norm(w, order) ** 3 / 3).backward()
        torch.testing.assert_close(w.grad, torch.tensor(wanted, dtype=torch.float64))


def test_definition_5_5_as_printed_is_even():
    generator = torch.Generator().manual_seed(0)
    x, w, v = (torch.randn(7, 5, generator=generator, dtype=torch.float64) for _ in range(3))
    for sign, parity in ((-1, 1.0), (1, -1.0)):

        def p(x, sign=sign):
            z = x @ w.T
            return (
                (x @ v.T) * (smoothed_step(z - 0.3, 0.2) + sign * smoothed_step(-z - 0.3, 0.2))
            ).sum(1)

        torch.testing.assert_close(p(-x), parity * p(x))


def test_the_two_norms_called_M1():
    M = torch.eye(3, dtype=torch.float64)
    assert (float(M.sum(0).max()), float(M.abs().amax(0).sum())) == (1.0, 3.0)
    assert float((-M).sum(0).max()) <= 0


def test_T_g_lost_d_over_eta():
    d, k = 200, 6
    assert k**2 * d * math.log(d) / d == pytest.approx(191, abs=0.5)
    assert k**2 / d == pytest.approx(0.18)


def test_lemma_B2_at_sizes_that_run():
    d, m, gamma = 200, 2000, 0.1
    known = lottery_constants(m, d, gamma)
    c0 = math.log(m) / math.log(d) - 1
    assert d ** (7 / 4 * c0) == pytest.approx(56, abs=0.5)
    assert d ** (gamma * c0 / 4) == pytest.approx(1.06, abs=5e-3)
    above = [2 * norm.sf(math.sqrt((known.c1 + s * known.c2) * math.log(d))) for s in (1, -1)]
    assert m * above[0] / 2 * (1 - above[1]) ** (d - 1) == pytest.approx(0.11, abs=5e-3)
    tails = [2 * norm.sf(math.sqrt(2.5 * math.log(d))) * d**1.25 for d in (1e3, 1e6)]
    scaled = [t * math.sqrt(math.log(d)) for t, d in zip(tails, (1e3, 1e6), strict=True)]
    assert scaled == pytest.approx([0.479, 0.491], abs=1e-3)


def test_no_k_is_inside_below_2e7():
    assert math.log(2.4e7) > (2.4e7) ** (1 / 6)
    assert math.log(2.5e7) < (2.5e7) ** (1 / 6)
    for d in np.geomspace(4, 2.4e7, 400):
        assert (d ** (1 / 3)) ** 2.5 >= d / math.log(d)
    assert math.log(3.4e15) > (3.4e15) ** 0.1
    assert math.log(3.5e15) < (3.5e15) ** 0.1
