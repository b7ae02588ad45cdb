"""Every number on the errata page about li2025's dynamics and proofs, computed."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.stats import binom, norm

from tacit.certify import radius
from tacit.data import sqrt_d_mixture
from tacit.nets import TwoLayerNet, average_net
from tacit.papers.li2025._shared.coefficients import class_dynamics_of, dynamics_of
from tacit.papers.li2025._shared.lemmas import sizes_for
from tacit.papers.li2025._shared.synthetic import (
    binary_start,
    mixture_of,
    multi_start,
    train_binary,
    train_classes,
)
from tacit.papers.li2025.sweeps.sweep import epsilon


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def pull(margin):
    """l'(q) = -1/(1 + e^q)."""
    return -torch.sigmoid(-margin)


@pytest.fixture(scope="module")
def course():
    """A short descent at a small size, every step kept: mixture, samples, nets, eta."""
    mixture = mixture_of(40, 4, 2)
    samples = mixture.sample(30, seeded(0))
    start = binary_start(40, 3, 1e-3, 1e-3, seeded(1))
    history = train_binary(start, samples, 0.05, 20, record=range(21)).history
    return mixture, samples, [moment.net for moment in history], 0.05


def carried(course, slope):
    """lambda and sigma by the recursions (2) and (3), with l'_i = slope(margin, y)."""
    mixture, samples, nets, eta = course
    xi = samples.x - mixture.centres[samples.z]
    n, m = len(samples.y), len(nets[0].v) // 2
    s = nets[0].v.sign().unsqueeze(1)
    sigma = torch.zeros(2 * m, n, dtype=torch.float64)
    for net in nets[:-1]:
        z = net.w @ samples.x.T + net.b.unsqueeze(1)
        step = slope(samples.y * net(samples.x), samples.y) * (z >= 0)
        sigma -= s * eta / (n * m) * step * xi.square().sum(1)
    each = sigma / xi.square().sum(1)  # what a point has added to the weights
    belongs = torch.nn.functional.one_hot(samples.z, 4).double()
    return each @ belongs * mixture.D, sigma, each, xi


def rebuilt_error(course, slope):
    """The largest gap between w and Lemma 5.1's decomposition, relative to the largest |w|."""
    mixture, _, nets, _ = course
    lam, _, each, xi = carried(course, slope)
    w = nets[0].w + lam @ mixture.centres / mixture.D + each @ xi
    return float((w - nets[-1].w).abs().max() / nets[-1].w.abs().max())


def test_the_recursions_need_the_label_in_the_derivative(course):
    assert rebuilt_error(course, lambda q, y: y * pull(q)) < 1e-12  # Appendix A.3's definition
    assert rebuilt_error(course, lambda q, _: pull(q)) > 0.5  # Section 5.1's


def test_equation_4_has_its_ratio_inverted(course):
    mixture, samples, *_ = course
    lam, sigma, _, xi = carried(course, lambda q, y: y * pull(q))
    ratio = xi.square().sum(1) / mixture.D
    belongs = torch.nn.functional.one_hot(samples.z, 4).double()
    assert torch.allclose(lam, (sigma / ratio) @ belongs, rtol=1e-12)  # Corollary B.4
    assert ((sigma * ratio) @ belongs - lam).abs().max() > 0.05 * lam.abs().max()


def test_a_coefficient_of_the_other_class_may_be_zero(course):
    _, samples, nets, _ = course
    _, sigma, *_ = carried(course, lambda q, y: y * pull(q))
    other = samples.y * nets[0].v.sign().unsqueeze(1) < 0
    assert (sigma[other] <= 0).all()
    assert (sigma[other] == 0).any()  # Corollary B.5 has < 0


def test_from_zero_weights_the_activation_set_of_section_5_1_is_empty():
    mixture = mixture_of(10, 2, 1)
    samples = mixture.sample(6, seeded(0))
    zero = binary_start(10, 1, 0.0, 0.0, seeded(0))
    assert (
        train_binary(zero, samples, 0.1, 1).net.w.norm() > 0
    )  # >= 0, as B.1 has it; > 0 moves nothing


def test_the_derivative_of_the_logistic_loss_is_negative():
    z = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    torch.log1p(torch.exp(-z)).backward()
    assert z.grad.item() == pytest.approx(-1 / (1 + math.exp(0.3)))


def test_lemma_B6_fails_where_margins_are_negative():
    def ratio(qi, qj):
        return (1 + math.exp(qi)) / (1 + math.exp(qj))

    assert ratio(0, -2) == pytest.approx(1.76, abs=0.005)
    assert ratio(0, -2) < math.exp(1)
    q = np.linspace(-4, 4, 81)
    for qi in q:
        for qj in q[q <= qi]:
            assert ratio(qi, qj) <= math.exp(qi - qj) * (1 + 1e-12)
            held = ratio(qi, qj) >= math.exp((qi - qj) / 2) * (1 - 1e-12)
            assert held == (qi + qj >= -1e-9 or qi == qj)


def test_property_6_fails_for_a_point_with_itself():
    d = 3072
    samples = mixture_of(d, 10, 5).sample(1000, seeded(0))
    square = samples.x.square().sum(1)
    assert float((square > 2 * d).double().mean()) == pytest.approx(0.5, abs=0.05)
    same = (samples.z.unsqueeze(1) == samples.z) & ~torch.eye(1000, dtype=torch.bool)
    products = (samples.x @ samples.x.T)[same]
    assert ((products > d / 2) & (products < 2 * d)).all()
    # the proof's chain d +- 4 sqrt(d) ln d lies within [d/2, 2d] from d = 4,600 or so on
    assert 4 * math.sqrt(d) * math.log(d) == pytest.approx(1780, abs=1)


def test_property_7_is_too_likely_where_clusters_are_many():
    def failing(k, mean):
        t = math.sqrt(2 * mean) * math.log(mean)
        n = k * mean
        return binom.sf(math.floor(mean + t), n, 1 / k) + binom.cdf(
            math.ceil(mean - t) - 1, n, 1 / k
        )

    bound = 2 * math.exp(-(math.log(200) ** 2))
    assert failing(10**6, 200) / bound == pytest.approx(1.66, abs=0.02)
    for k in (2, 3, 4, 5, 8, 12):  # Assumption 4.3
        assert failing(k, k**6) < 2 * math.exp(-(math.log(k**6) ** 2))


def test_proposition_A12_is_a_coin_toss_where_m_is_k():
    """Every neuron and cluster: P(Q(z) >= 1/(3 m^2)), z standard Gaussian, 2 m k of them."""

    def chance(m, k):
        return math.exp(2 * m * k * math.log1p(-1 / (3 * m * m)))

    assert chance(5, 10) == pytest.approx(0.26, abs=0.005)
    assert chance(1e32, 1e32) == pytest.approx(0.513, abs=5e-4)
    stated = 1 - 1e32**-0.01  # n large
    assert stated == pytest.approx(0.521, abs=5e-4)
    # the law behind it: the share of a cluster's points that activate a neuron is uniform
    d, seeds = 400, 400
    mixture = mixture_of(d, 2, 1)
    w = torch.randn(seeds, d, generator=seeded(0), dtype=torch.float64)
    share = norm.cdf((w @ mixture.centres[0] / w.norm(dim=1)).numpy())
    assert np.abs(np.quantile(share, (0.25, 0.5, 0.75)) - (0.25, 0.5, 0.75)).max() < 0.08


def test_lemmas_A13_and_B1_fail_at_an_init_that_the_assumption_admits():
    k, m = 2, 2
    d, n = k**10, k**7
    eta = d**-2.0
    sd = math.sqrt(eta * k**-5)
    samples = mixture_of(d, k, 1).sample(n, seeded(3))
    active, excess = [], []
    for seed in range(5):
        start = binary_start(d, m, sd, sd, seeded(seed))
        z = samples.x @ start.w.T + start.b
        excess.append(float(z.abs().max()) / (eta * math.sqrt(d) / (n * m)))
        net = train_binary(start, samples, eta, 1).net
        z = samples.x @ net.w.T + net.b
        own = (samples.y.unsqueeze(1) * net.v) > 0
        active.append(float((z[own] >= 0).double().mean()))
    assert min(excess) > 1e5
    assert max(active) < 0.9  # Lemma B.1: all


def test_theorem_4_5_and_4_7_have_a_window_only_for_very_many_clusters():
    """Constants 1, no logarithms: eta^-1 = d^2 = k^20, times k^8 in Theorem 4.7, against exp(sqrt(k))."""
    for power, first in ((20, 46_133), (28, 104_759)):
        assert math.sqrt(first) >= power * math.log(first)
        assert math.sqrt(first - 1) < power * math.log(first - 1)
    assert 10 * math.log10(46_133) == pytest.approx(46.6, abs=0.05)


def test_f_FA_is_robust_at_half_of_root_d_over_k():
    d, k = 3072, 10
    mixture = sqrt_d_mixture(d, k, 5)
    points = mixture.sample(2000, seeded(0))
    found = radius(average_net(mixture), points.x, points.y).lower / math.sqrt(d / k)
    assert found.min() > 0.5
    assert float(found.median()) == pytest.approx(1, abs=0.02)


def test_f_FA_is_linear_along_the_attack_until_it_vanishes():
    d, k = 60, 6
    mixture = sqrt_d_mixture(d, k, 4)
    t = torch.linspace(0, 1 / k, 20, dtype=torch.float64).unsqueeze(1)
    f = average_net(mixture)(mixture.centres[:1] - t * (mixture.labels @ mixture.centres))
    assert torch.allclose(f, d * (1 - k * t.squeeze(1)), atol=1e-9)


def test_fewer_neurons_than_remark_a5_wants_are_robust():
    d, k = 3072, 10
    mixture = sqrt_d_mixture(d, k, 5)
    mu, root = mixture.centres, math.sqrt(d)
    threshold = (1 - 1 / math.sqrt(2)) * d
    for groups, at_centres in (
        ([(0, 1), (2, 3), (4,)], 1 / 2),
        ([(0, 1, 2, 3), (4,)], math.sqrt(1 / 8)),
    ):
        rows = [mu[list(group)].sum(0) for group in groups]
        rows += [mu[[5 + j for j in group]].sum(0) for group in groups]
        v = torch.tensor([1.0] * len(groups) + [-1.0] * len(groups), dtype=torch.float64)
        net = TwoLayerNet(torch.stack(rows), v, torch.full_like(v, -threshold))
        found = radius(net, mu, mixture.labels).lower / root
        assert float(found.min()) == pytest.approx(at_centres, rel=1e-6)
        assert at_centres > 1 / 3
        if len(groups) == 3:
            points = mixture.sample(500, seeded(0))
            assert (radius(net, points.x, points.y).lower > root / 3).all()


def cosines(net: TwoLayerNet, centres):
    """Of neurons with the centres of their own class, as (neuron, centre) pairs."""
    unit = torch.nn.functional.normalize
    c = unit(net.w.double(), dim=1) @ unit(centres, dim=1).T
    return torch.cat([c[:5, :5].flatten(), c[5:, 5:].flatten()])


def test_a_learning_rate_ten_times_larger_still_averages():
    mixture = mixture_of(3072, 10, 5)
    samples = mixture.sample(1000, seeded(0))
    start = binary_start(3072, 5, 1e-5, 1e-5, seeded(1), torch.float32)
    share = []
    for moment in train_binary(start, samples, 0.001, 5, record=(1, 5)).history:
        z = samples.x.float() @ moment.net.w.T + moment.net.b
        own = samples.y.unsqueeze(1) * moment.net.v > 0
        share.append(float((z[own] >= 0).double().mean()))
    assert 0.95 < share[0] < 0.99  # Lemma B.1: all, after one step
    assert share[1] == 1
    spread = {}
    for eta in (0.1, 0.01, 0.001):
        end = train_binary(start, samples, eta, 100).net
        found = cosines(end, mixture.centres)
        spread[eta] = float(found.std())
        assert float(found.mean()) == pytest.approx(math.sqrt(0.2), abs=0.03)
        if eta == 0.001:  # T = 100 is before the window: log(eta T) is negative, lambda is not
            coefficient = float((end.w[:5].double() @ mixture.centres[:5].T).mean())
            assert math.log(eta * 100) == pytest.approx(-2.3, abs=0.01)
            assert coefficient == pytest.approx(1.7, abs=0.1)
    assert spread[0.01] < spread[0.001] < spread[0.1]


def test_equation_17_has_the_factor_of_another_net(course):
    """q_hat_i, one step on: less eta/(nm) of what the bracket holds for point i, not eta/(2n)."""
    mixture, samples, nets, eta = course
    n, m = len(samples.y), len(nets[0].v) // 2
    xi = (samples.x - mixture.centres[samples.z]).square().sum(1)
    net = nets[-2]
    own = (samples.y.unsqueeze(1) * net.v) > 0
    assert (
        (samples.x @ net.w.T + net.b >= 0) | ~own
    ).all()  # all neurons of a point's label are on
    q_hat = []
    for length in (len(nets) - 1, len(nets)):
        lam, sigma, *_ = carried((mixture, samples, nets[:length], eta), lambda q, y: y * pull(q))
        total = lam[:, samples.z] + sigma
        q_hat.append((total.T * own).sum(1) / m)
    slope = pull(samples.y * net(samples.x))
    cluster = torch.nn.functional.one_hot(samples.z, 4).double()
    bracket = (cluster @ (cluster.T @ slope)) * mixture.D + slope * xi
    step = q_hat[1] - q_hat[0]
    assert torch.allclose(step, -eta / (n * m) * bracket, rtol=1e-9)
    assert torch.allclose(step / (-eta / (2 * n) * bracket), torch.tensor(2 / m).double())


def test_lambda_is_the_logarithm_of_eta_t_d_over_mk():
    d, k, m, eta = 512, 4, 2, 0.01
    mixture = mixture_of(d, k, 2)
    samples = mixture.sample(200, seeded(5))
    start = binary_start(d, m, 1e-5, 1e-5, seeded(6))
    history = train_binary(start, samples, eta, 1000, record=(100, 1000)).history
    for moment in history:
        lam = float((moment.net.w[:m] @ mixture.centres[:2].T).mean())
        time = eta * moment.step
        assert lam == pytest.approx(math.log(time * d / (m * k)), abs=0.25)
        assert lam - math.log(time) > 3.8  # "approximately log(eta T)"
    assert math.log(3072 / 50) == pytest.approx(4.12, abs=0.005)


def test_features_at_cosine_09_are_subtracted_and_not_only_averaged():
    mixture = mixture_of(3072, 10, 5, cosine=0.09)
    samples = mixture.sample(1000, seeded(20))
    start = binary_start(3072, 5, 1e-5, 1e-5, seeded(21), torch.float32)
    w = train_binary(start, samples, 0.001, 100).net.w.double()
    unit = torch.nn.functional.normalize
    found = unit(w, dim=1) @ unit(mixture.centres, dim=1).T
    averages = torch.stack([samples.x[samples.y == sign].mean(0) for sign in (1, -1)])
    plain = unit(averages, dim=1) @ unit(mixture.centres, dim=1).T
    assert (found[:5, :5].mean(), found[:5, 5:].mean()) == pytest.approx((0.487, -0.007), abs=0.01)
    assert (plain[0, :5].mean(), plain[0, 5:].mean()) == pytest.approx((0.520, 0.172), abs=0.005)
    sums = torch.stack([mixture.centres[:5].sum(0), mixture.centres[5:].sum(0)], 1)
    own, other = torch.linalg.lstsq(sums, w[:5].mean(0)[:, None]).solution.flatten()
    assert float(other / own) == pytest.approx(-1 / 3, abs=0.03)


def test_the_attack_of_theorem_4_5_is_longer_than_the_way_to_another_centre_for_k_below_8():
    for k in (2, 4, 7, 8, 10):
        assert (4 / math.sqrt(k) > math.sqrt(2)) == (k < 8)


@pytest.mark.slow
def test_with_five_neurons_a_label_figure_3s_time_is_too_short():
    """The clock of k labels is eta d/(hk). Here d is a tenth of the paper's, eta ten times as large."""
    d = 300
    mixture = mixture_of(d, 10, 5)
    samples, test = mixture.sample(400, seeded(50)), mixture.sample(40, seeded(51))

    def radii(h):
        start = multi_start(d, mixture.labels, h, 1e-4, seeded(52))
        history = train_classes(
            samples=samples, net=start, eta=0.01, T=1000, record=(100, 1000)
        ).history
        return [float(radius(moment.net, test.x, test.y).upper.median()) for moment in history]

    one, five = radii(1), radii(5)
    assert one[0] / one[1] == pytest.approx(1, abs=0.01)
    assert five[0] < 0.99 * one[0]
    assert five[1] == pytest.approx(one[1], rel=0.015)


def test_proposition_c3_misses_pairs_with_a_chance_that_does_not_vanish():
    rng = np.random.default_rng(0)
    for h, stated in ((1, 0.717), (3, 0.895)):
        assert math.exp(-1 / (3 * h)) == pytest.approx(stated, abs=1e-3)
        k = 8
        shares = norm.cdf(rng.standard_normal((4000, h * k * k)))  # of a cluster, n/k large
        reached = (shares >= 1 / (3 * k**2 * h**2)).all(1).mean()
        assert reached == pytest.approx(stated, abs=0.025)


def test_the_largest_start_allowed_is_beyond_eps_and_its_products_are_not():
    """sqrt(d) ||w(0)|| = k^-2.5 at eta = 1/d^2, sigma_w^2 = eta/k^5; <w(0), mu_j> is smaller by sqrt(d)."""
    k, d = 10, 10**6
    sigma_w = math.sqrt(float(d) ** -2 * k**-5)
    w = sigma_w * torch.randn(d, generator=seeded(0), dtype=torch.float64)
    assert math.sqrt(d) * float(w.norm()) == pytest.approx(k**-2.5, rel=0.01)
    assert abs(float(w[0])) * math.sqrt(d) < 5 * k**-2.5 / math.sqrt(d)  # mu = sqrt(d) e_1
    assert k**-2.5 == pytest.approx(0.0032, abs=1e-4)
    assert epsilon(float(k) ** 20, k, float(k) ** 14) == pytest.approx(1.9e-5, rel=0.03)


def test_a_foreign_coefficient_of_the_net_with_k_labels_may_stay_zero():
    mixture = mixture_of(60, 3, 1, generator=seeded(0))
    samples = mixture.sample(30, seeded(1))
    start = multi_start(60, mixture.labels, 1, 1e-3, seeded(2))
    problem = class_dynamics_of(start, mixture, samples)
    at = problem.zero()
    for _ in range(200):
        at = problem.step(at, problem.seen(at), 0.02)
    foreign = at.sigma[~problem.own]
    assert (foreign <= 0).all()
    assert (foreign == 0).any()
    assert (foreign < 0).any()


def test_lemma_c21_needs_k_of_3():
    """(k-1)/(k-1+2e^x) >= e^-x/2 is false at k = 2, x = 0, as 1/(1+e^q) >= e^-x/2 is for q = x + 2 eps.

    With q itself, 1/(1+e^q) >= e^-q/2, it is true.
    """
    assert 1 / (1 + 2) < 1 / 2
    assert 1 / (1 + math.exp(0.01)) < 1 / 2
    q = np.linspace(0, 50, 200)
    assert (1 / (1 + np.exp(q)) >= np.exp(-q) / 2 - 1e-15).all()
    x = np.linspace(0, 50, 200)
    assert all(
        ((k - 1) / (k - 1 + 2 * np.exp(x)) >= np.exp(-x) / 2 - 1e-15).all() for k in (3, 4, 10)
    )


def test_clusters_may_differ_by_more_than_eps_allows():
    """Property 7 of Proposition A.6 at N = n/k points, against 1 + eps."""
    N = 30_000
    wide = math.sqrt(2 * N) * math.log(N)
    ratio = (N + wide) / (N - wide)
    assert ratio == pytest.approx(1 + 2 * math.log(N) / (math.sqrt(N / 2) - math.log(N)))
    assert ratio == pytest.approx(1.184, abs=5e-4)
    assert 1 + epsilon(1e16, 3, 3 * N) == pytest.approx(1.127, abs=5e-4)
    sizes = np.geomspace(300, 1e12, 60)
    own = 2 * np.log(sizes) / (np.sqrt(sizes) - np.log(sizes))
    assert (2 * np.log(sizes) / (np.sqrt(sizes / 2) - np.log(sizes)) <= 2 * own).all()


def test_the_step_21_needs_a_small_eps():
    def needed(ratio, over):
        return brentq(lambda e: (1 + ratio * e) ** 2 * (1 + e) / (1 + over * e) - 1, 1e-6, 0.05)

    assert needed(14, 30) == pytest.approx(0.0044, abs=5e-5)
    assert needed(42, 87) == pytest.approx(0.0011, abs=5e-5)
    share, d = sizes_for(needed(14, 30), 3)
    assert (share > 6e7, d > 3e10) == (True, True)


def test_the_bounds_of_lemma_b10_and_of_foreign_sigmas_cannot_fail():
    """b - b(0) = sum_j lambda_j/d, step by step; and the sizes that the remark names."""
    mixture = mixture_of(50, 4, 2, generator=seeded(3))
    samples = mixture.sample(40, seeded(4))
    problem = dynamics_of(binary_start(50, 2, 1e-3, 1e-3, seeded(5)), mixture, samples)
    at = problem.zero()
    for _ in range(50):
        at = problem.step(at, problem.seen(at), 0.05)
    assert torch.allclose(at.b - problem.first_b, at.lam.sum(1) / 50, atol=1e-14)
    assert 2 / 3 * 3 * math.sqrt(1e7) * math.log(1e7) == pytest.approx(1e5, rel=0.05)
    share = np.geomspace(60, 1e12, 50)
    first = 2 * np.log(share) / (np.sqrt(share) - np.log(share))
    assert (2 * first >= 4 * np.log(share) / np.sqrt(share)).all()
    assert math.isqrt(5184) == 5184 // 72
