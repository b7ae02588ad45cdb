"""li2025.lemma5, and the compact coordinates: recursions against autograd, laws against direct draws."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import solve_ivp

from benches import new_bench, verdicts
from tacit.errors import CallError
from tacit.nets import TwoLayerNet
from tacit.papers.li2025._shared.coefficients import Seen, dynamics_of
from tacit.papers.li2025._shared.compact import binary_net, classes_net, compact_problem
from tacit.papers.li2025._shared.readings import reading_of
from tacit.papers.li2025._shared.synthetic import binary_start, mixture_of, train_binary
from tacit.papers.li2025.lemma5 import claims as lemma5_claims
from tacit.papers.li2025.lemma5 import exhibit as lemma5
from tacit.papers.li2025.lemma5.settings import Coefficients
from tacit.papers.li2025.sweeps.sweep import delta, epsilon, growth
from tacit.train import descend

TINY = Coefficients(
    d=120, k=4, k1=2, m=3, n=40, T=30, T_long=60, late=10.0, inside=2, starts=20, repeats=3
)


def small(seed, sigma_w=1e-3, d=30, k=4, n=15, m=2):
    stream = torch.Generator().manual_seed(seed)
    mixture = mixture_of(d, k, k // 2, generator=stream)
    samples = mixture.sample(n, stream)
    return mixture, samples, binary_start(d, m, sigma_w, sigma_w, stream)


def carried(problem, eta, steps, *, printed=False):
    """Coefficients after some steps; `printed`: true derivatives, carried without their y_i."""
    at = shown = problem.zero()
    for _ in range(steps):
        seen = problem.seen(at)
        shown = problem.step(shown, Seen(seen.margin, seen.slope * problem.y, seen.active), eta)
        at = problem.step(at, seen, eta)
    return shown if printed else at


@given(st.integers(0, 10_000), st.floats(1e-3, 0.1))
def test_the_recursions_are_gradient_descent(seed, eta):
    mixture, samples, start = small(seed)
    at = carried(problem := dynamics_of(start, mixture, samples), eta, 20)
    net = train_binary(start, samples, eta, 20).net
    assert torch.allclose(problem.rebuilt(at), net.w, rtol=0, atol=1e-12 * float(net.w.norm()))
    assert torch.allclose(at.b, net.b, rtol=1e-11, atol=1e-15)
    assert torch.allclose(problem.seen(at).margin, samples.y * net(samples.x), atol=1e-10)


def test_one_step_of_the_recursions_is_the_gradient_by_autograd():
    mixture, samples, start = small(3)
    problem = dynamics_of(start, mixture, samples)
    w, b = start.w.clone().requires_grad_(), start.b.clone().requires_grad_()
    f = ((samples.x @ w.T + b).relu() * start.v).sum(1)
    torch.nn.functional.softplus(-samples.y * f).mean().backward()
    at = problem.step(problem.zero(), problem.seen(problem.zero()), 0.1)
    assert torch.allclose(problem.rebuilt(at), start.w - 0.1 * w.grad, atol=1e-14)
    assert torch.allclose(at.b, start.b - 0.1 * b.grad, atol=1e-15)


def test_without_its_label_the_derivative_turns_the_negative_neurons_round():
    """As Lemma 5.2 prints it: what y = -1 contributes has the wrong sign."""
    mixture, samples, start = small(4)
    problem = dynamics_of(start, mixture, samples)
    right, printed = (carried(problem, 0.02, 20, printed=flag) for flag in (False, True))
    assert torch.allclose(printed.lam, right.lam * mixture.labels)
    assert torch.allclose(printed.sigma, right.sigma * samples.y)
    w = train_binary(start, samples, 0.02, 20).net.w
    assert lemma5.apart(problem.rebuilt(right), w) < 1e-12
    assert lemma5.apart(problem.rebuilt(printed), w) > 1


def test_at_an_init_of_zero_the_recursions_need_a_slope_of_1_at_the_kink():
    mixture, samples, _ = small(5)
    v = torch.tensor([0.5, 0.5, -0.5, -0.5], dtype=torch.float64)
    start = TwoLayerNet(
        torch.zeros(4, 30).double(), v, torch.zeros(4, dtype=torch.float64), fixed_v=True
    )
    problem = dynamics_of(start, mixture, samples)
    w = problem.rebuilt(carried(problem, 0.02, 5))
    assert torch.allclose(w, train_binary(start, samples, 0.02, 5).net.w, atol=1e-13)
    torch_way = descend(start, samples.x, samples.y, step=0.02, steps=5, loss="logistic").net
    assert torch_way.w.abs().max() == 0 < w.abs().max()


def test_lambda_is_the_sum_of_sigma_over_the_noise_and_not_times_it():
    mixture, samples, start = small(6, d=60)
    problem = dynamics_of(start, mixture, samples)
    at = carried(problem, 0.02, 20)
    for j in range(4):
        here = samples.z == j
        by_hand = sum(
            60 / float((x - mixture.centres[j]).square().sum()) * at.sigma[:, i]
            for i, x in zip(here.nonzero().flatten(), samples.x[here], strict=True)
        )
        assert torch.allclose(at.lam[:, j], by_hand, rtol=1e-12, atol=1e-15)
    found = lemma5.balance(problem, at, replace(TINY, eta=0.02, n=15, m=2, late=100.0))
    assert found["eq4_inverse"] < 1e-12 < 1e-3 < found["eq4_printed"]
    assert found["eq17"] == pytest.approx(2 / 2)  # eta/(nm) over eta/(2n), m = 2


def test_moments_read_the_coefficients_as_loops_do():
    mixture, samples, start = small(7)
    problem = dynamics_of(start, mixture, samples)
    at = carried(problem, 0.05, 12)
    seen = problem.seen(at)
    row = reading_of(problem, at, seen, 12)
    q = [
        sum(
            at.lam[r, samples.z[i]] + at.sigma[r, i]
            for r in range(4)
            if start.v[r].sign() == samples.y[i]
        )
        / 2
        for i in range(15)
    ]
    same = [abs(q[i] - q[j]) for i in range(15) for j in range(15) if samples.z[i] == samples.z[j]]
    assert row["gap_hat"] == pytest.approx(float(max(q) - min(q)))
    assert row["gap_hat_same"] == pytest.approx(float(max(same)))
    pulls = seen.slope.abs()
    assert row["ratio"] == pytest.approx(float(pulls.max() / pulls.min()))
    own = [
        bool(seen.active[r, i])
        for r in range(4)
        for i in range(15)
        if start.v[r].sign() == samples.y[i]
    ]
    assert row["own_active"] == pytest.approx(np.mean(own))


def test_the_properties_of_the_sample_are_those_of_Proposition_A6():
    mixture, samples, start = small(8, d=50, n=12)
    found = lemma5.sample_properties(dynamics_of(start, mixture, samples), samples)
    x, z, mu = samples.x, samples.z, mixture.centres
    xi = x - mu[z]
    pairs = [(i, j) for i in range(12) for j in range(12) if i != j]
    D = 4 * math.sqrt(50) * math.log(50)
    assert delta(50) == pytest.approx(D)
    expected = {
        "A6_1": max(abs(float(v.norm()) - math.sqrt(50)) for v in xi) / (2 * math.log(50)),
        "A6_2": max(float(v.norm()) for v in x) / (3 * math.sqrt(50)),
        "A6_3": max(abs(float(xi[i] @ xi[j])) for i, j in pairs) / D,
        "A6_4": max(abs(float(m @ v)) for m in mu for v in xi) / D,
        "A6_5": max(abs(float(x[i] @ x[j])) for i, j in pairs if z[i] != z[j]) / D,
        "A6_6": max(
            max(float(x[i] @ x[j]) / 100, 25 / float(x[i] @ x[j])) for i, j in pairs if z[i] == z[j]
        ),
        "A6_7": max(abs(int((z == j).sum()) - 3) for j in range(4)) / (math.sqrt(6) * math.log(3)),
    }
    assert found == pytest.approx(expected)


def test_the_number_of_active_points_of_a_cluster_is_uniform_at_the_start():
    """<w, mu> and <w, xi_i> have one variance: 0, 1, ..., N active points are equally likely."""
    stream, N, draws = torch.Generator().manual_seed(0), 4, 20_000
    counts = np.zeros(N + 1)
    common = torch.randn(draws, 1, generator=stream)
    active = (common + torch.randn(draws, N, generator=stream) >= 0).sum(1)
    counts += np.bincount(active.numpy(), minlength=N + 1)
    assert stats.chisquare(counts).pvalue > 0.01


def test_Proposition_A12_misses_a_pair_with_a_probability_that_does_not_vanish():
    """For n/k to infinity |T_srj|/|I_j| = Phi(<w, mu_j>/(sigma_w sqrt d)): all above 1/(3m^2) at m = k = 8."""
    m = k = 8
    shares = stats.norm.cdf(np.random.default_rng(0).standard_normal((4000, 2 * m * k)))
    reached = (shares >= 1 / (3 * m**2)).all(1).mean()
    assert reached == pytest.approx((1 - 1 / (3 * m**2)) ** (2 * m * k), abs=0.025)
    assert reached < 0.6


def test_the_law_of_lambda_solves_its_equation_of_growth():
    d, k, n, m = 3072, 10, 1000, 5
    kappa, rate = 1 + k / n, d / (m * k)
    end = solve_ivp(
        lambda _, lam: rate / (1 + np.exp(kappa * lam)), (0, 2.0), [0.0], rtol=1e-10, atol=1e-12
    ).y[0, -1]
    assert growth(d, k, n, m, 2.0) == pytest.approx(end, rel=1e-7)
    assert growth(d, k, n, m, 0.0) == 0


def test_eps_is_the_largest_of_its_three_terms():
    assert epsilon(3072, 10, 1000) == pytest.approx(100 * delta(3072) / 3072)
    assert epsilon(1e12, 10, 1000) == pytest.approx(2 * math.log(100) / (10 - math.log(100)))
    assert epsilon(1e12, 100, 1000) == pytest.approx(10.0)


def test_compact_coordinates_have_the_law_of_the_full_ones():
    """Norms, products of noises, and products with centres, of 500 problems in R^25."""
    d, n, h = 25, 3, 2
    stream = torch.Generator().manual_seed(1)
    sizes, crossed, weights, along = [], [], [], []
    for _ in range(500):
        problem = compact_problem(d, 2, 1, n, h, stream)
        noise = problem.train.x - problem.mixture.centres[problem.train.z]
        sizes.append(float(noise[2].square().sum()))
        crossed.append(float(noise[0] @ noise[2]) / float(noise[0].norm()))
        weights.append(float(problem.rows[1] @ noise[1]) / float(noise[1].norm()))
        along.append(float(noise[1] @ problem.mixture.centres[1]) / math.sqrt(d))
    assert stats.kstest(sizes, stats.chi2(d).cdf).pvalue > 0.01
    for sample in (crossed, weights, along):
        assert stats.kstest(sample, stats.norm.cdf).pvalue > 0.01
    assert problem.mixture.centres.norm(dim=1).tolist() == pytest.approx([5.0, 5.0])


def test_a_compact_problem_trains_as_the_same_problem_in_the_full_space():
    """Rotated into more dimensions, descent gives the rotated net."""
    stream = torch.Generator().manual_seed(2)
    problem = compact_problem(200, 4, 2, 20, 4, stream)
    start = binary_net(problem.rows, 1e-3, stream, torch.float64)
    q = start.w.shape[1]
    axes = torch.linalg.qr(torch.randn(60, q, generator=stream, dtype=torch.float64)).Q
    turned = replace(start, w=start.w @ axes.T)
    samples = replace(problem.train, x=problem.train.x @ axes.T)
    small_net = train_binary(start, problem.train, 0.01, 30).net
    large_net = train_binary(turned, samples, 0.01, 30).net
    assert torch.allclose(large_net.w, small_net.w @ axes.T, atol=1e-12)


def test_compact_nets_start_as_the_paper_has_it():
    stream = torch.Generator().manual_seed(3)
    problem = compact_problem(4000, 4, 2, 20, 400, stream)
    net = binary_net(problem.rows, 0.1, stream, torch.float64)
    assert net.v.tolist() == [1 / 200] * 200 + [-1 / 200] * 200
    assert float(net.b.std()) == pytest.approx(0.1, rel=0.15)
    assert float(net.w.square().sum(1).mean()) == pytest.approx(40, rel=0.02)
    classes = classes_net(problem.rows, problem.mixture, 0.1, torch.float64)
    assert classes.w.shape[:2] == (4, 100)
    assert torch.equal(classes.labels, problem.mixture.labels)


def test_starts_reach_what_Proposition_A12_asks_as_often_as_the_uniform_law_says(bench):
    """Two clusters, one neuron of a sign, 30 points a cluster or so: 10 of them active in all four pairs."""
    config = replace(TINY, k=2, k1=1, m=1, n=60, starts=4000)
    reached = int(lemma5.starts(config, bench).reached) / 4000
    assert reached == pytest.approx((1 - 10 / 31) ** 4, abs=0.03)


@pytest.fixture(scope="module")
def tiny():
    # a seed whose three samples have the properties of Proposition A.6
    return lemma5.run(TINY, new_bench(seed=1))


def test_lemma5_finds_its_identities_and_the_slips(tiny):
    said = verdicts(tiny)
    assert {said[id] for id in ("recursion", "bias", "eq4")} == {"holds"}
    assert {said[id] for id in ("recursion.printed", "eq4.printed", "eq17.printed")} == {"differs"}
    # neither hangs on one start: the limit of A.12's probability, and the start that Assumption 4.3 allows
    assert {said[id] for id in ("A12.limit", "inside")} == {"differs"}
    assert said["B7.eps"] == "vacuous"  # eps is far above 1
    data = tiny.data
    assert data.t.values[-1] * TINY.eta == pytest.approx(10, rel=0.2)
    assert (data.own_active.values[:, 0] < 1).all()
    assert (data.own_active.values[:, -1] == 1).all()
    lemma5.draw(data, TINY)


def test_lemma5_judges_several_trainings_and_says_so(tiny):
    found = {claim.id: claim for claim in tiny.claims}
    of_trainings = [c for c in tiny.claims if c.over == "trainings"]
    assert {c.n for c in of_trainings} == {TINY.repeats}
    assert all(c.regime.startswith("outside") for c in of_trainings)
    assert (found["A6"].over, found["A6"].verdict) == (
        "samples",
        "undecided",
    )  # 3 samples do not show more than half
    assert found["A12.law"].n == TINY.starts


def test_a_bound_that_one_training_breaks_does_not_hold(bench, tiny):
    """Property 1's lower bound: 1 above it in two trainings, 1 below it in the other, whatever the mean."""
    t, share = tiny.data.t.values, TINY.k / TINY.n
    shift = np.where(np.arange(TINY.repeats) % 2 == 0, 1.0, -1.0)[:, None]
    at = share * (np.log(np.maximum(t, 1) * TINY.eta) / 2 + shift)
    data = tiny.data.assign(sigma_least=(("seed", "time"), at))
    said = {c.id: c for c in lemma5_claims.claims(data, TINY, bench)}
    assert said["B7.late.lower"].verdict == "differs"
    assert said["B7.late.lower"].measured == pytest.approx(-1)
    assert "counterexample" in said["B7.late.lower"].deterministic
    safe = tiny.data.assign(sigma_least=(("seed", "time"), at + 3 * share))
    again = {c.id: c for c in lemma5_claims.claims(safe, TINY, bench)}
    assert again["B7.late.lower"].verdict == "undecided"  # three of three are not most
    assert (again["B7.late.lower"].measured, again["B7.late.lower"].n) == (1.0, 3)
    six = lemma5_claims.claims(safe.isel(seed=[0, 1, 2] * 2), replace(TINY, repeats=6), bench)
    assert {c.id: c.verdict for c in six}["B7.late.lower"] == "holds"


def test_inside_the_assumptions_a_smaller_start_would_do():
    """Lemma A.13's own bound on sigma_w makes Lemma 5.5 true at t = 1, where a point activates each neuron."""
    k = 3
    d, n, m = k**10, k**7, k
    stream = torch.Generator().manual_seed(5)
    problem = compact_problem(d, k, 2, n, 2 * m, stream)
    sigma_w = d**-2 / (6 * math.sqrt(d) * n * m)
    start = binary_net(problem.rows, sigma_w, stream, torch.float64)
    net = train_binary(start, problem.train, d**-2, 1).net
    z = net.w @ problem.train.x.T + net.b.unsqueeze(1)
    assert (z[net.v.sign().unsqueeze(1) == problem.train.y] >= 0).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k1": 10}, "k1=10 with k=10"),
        ({"k": 200, "k1": 100, "d": 100}, "orthogonal centres need"),
        ({"n": 5}, "two points a cluster"),
        ({"eta": 0.0}, "eta=0.0"),
        ({"sigma_w": -1.0}, "not negative"),
        ({"T_long": 10}, "goes on from T"),
        ({"late": 1.0}, "a decade past"),
        ({"inside": 1}, "both classes"),
        ({"repeats": 1}, "over trainings"),
        ({"starts": 0}, "starts=0"),
    ],
)
def test_lemma5_refuses(change, words):
    with pytest.raises(CallError, match=words):
        replace(Coefficients(), **change)


def test_compact_problems_refuse_more_rows_than_dimensions():
    with pytest.raises(CallError, match="raise d or lower n"):
        compact_problem(20, 4, 2, 20, 4, torch.Generator())
