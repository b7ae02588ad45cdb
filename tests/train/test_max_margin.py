"""The convex programs of the limit: closed forms, KKT conditions, brute force, another solver."""

import math
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from tacit.data import sqrt_d_mixture
from tacit.errors import CallError, RunError
from tacit.measure import kkt_residual, normalised_margin
from tacit.nets import TwoLayerNet
from tacit.train import FlowWarning, Until, gradient_flow
from tacit.train.max_margin.every_pattern import (
    activation_patterns,
    cell_count,
    global_max_margin,
)
from tacit.train.max_margin.two_neuron import (
    in_span,
    polished,
    solved,
    two_neuron_max_margin,
)

pytest.importorskip("clarabel")
F = torch.float64


def gaussian(n, d, seed):
    """Points with labels of both signs."""
    g = torch.Generator().manual_seed(seed)
    y = torch.where(torch.rand(n, generator=g, dtype=F) < 0.5, 1.0, -1.0).to(F)
    y[0], y[1] = 1.0, -1.0
    return torch.randn(n, d, generator=g, dtype=F), y


def clusters(d, k, sigma, n, seed=0):
    g = torch.Generator().manual_seed(seed)
    samples = sqrt_d_mixture(d, k, k // 2, sigma, g).sample(n, g)
    return samples.x, samples.y


def orthogonal_rows():
    """Three points in the plane whose (x, 1) are orthogonal, of length sqrt(3)."""
    angle = torch.tensor([0.0, 2 * math.pi / 3, 4 * math.pi / 3], dtype=F)
    return math.sqrt(2) * torch.stack([angle.cos(), angle.sin()], 1)


# two neurons


def test_a_wrong_guess_of_what_is_tight_is_exchanged():
    """-1 and 1 support; 1.9 is said to, or 1 is said not to: the optimum comes out all the same."""
    x, y = torch.tensor([[-1.0], [1], [1.9]], dtype=F), torch.tensor([-1.0, 1, 1], dtype=F)
    points, _, _ = in_span(x, y)
    right = solved(points, y)
    for weight in ([1.0, 1, 1], [1.0, 0, 1]):
        start = replace(right, weight=torch.tensor(weight, dtype=F) * right.weight.max())
        found = polished(points, y, start)
        assert torch.allclose(found.w, right.w, rtol=1e-4)
        assert torch.allclose(found.weight, right.weight, atol=1e-4)


def test_orthogonal_points_have_the_closed_form():
    """w+ = sum of x~_i / ||x~_i||^2 over its class: value sqrt(2/3) + sqrt(1/3), every point supports."""
    x, y = orthogonal_rows(), torch.tensor([1.0, 1.0, -1.0], dtype=F)
    value = math.sqrt(2 / 3) + math.sqrt(1 / 3)
    for found in (two_neuron_max_margin(x, y), global_max_margin(x, y)):
        assert found.value == pytest.approx(value, rel=1e-9)
        assert found.margin == pytest.approx(1 / (2 * value), rel=1e-9)
        assert float(found.multipliers.sum()) == pytest.approx(value, rel=1e-8)
        expected = torch.tensor([1 / math.sqrt(6)] * 2 + [1 / math.sqrt(3)], dtype=F)
        torch.testing.assert_close(found.multipliers, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("d", "k", "sigma", "n"), [(60, 4, 1.0, 40), (60, 4, 0.1, 40), (20, 2, 0.3, 60)]
)
def test_the_optimum_is_a_kkt_point_by_its_duals_and_by_an_independent_search(d, k, sigma, n):
    x, y = clusters(d, k, sigma, n)
    found = two_neuron_max_margin(x, y)
    assert found.stationarity <= 1e-10
    assert abs(found.slackness) <= 1e-10
    assert float((y * found.net(x)).min()) == pytest.approx(1, abs=1e-12)
    assert bool((found.multipliers >= 0).all())
    assert bool(((found.corners >= 0) & (found.corners <= 1)).all())
    assert float(found.multipliers.sum()) == pytest.approx(found.value, rel=1e-10)
    assert found.margin == pytest.approx(float(normalised_margin(found.net, x, y)), rel=1e-12)
    other = kkt_residual(found.net, x, y, slack=1e-8, enough=0)
    assert other.stationarity <= 1e-10
    assert abs(other.slackness) <= 1e-10


def test_points_that_occur_twice_share_their_multiplier():
    x, y = clusters(20, 2, 0.3, 15)
    once, twice = two_neuron_max_margin(x, y), two_neuron_max_margin(x.repeat(2, 1), y.repeat(2))
    assert twice.value == pytest.approx(once.value, rel=1e-10)
    assert twice.stationarity <= 1e-10
    both = twice.multipliers.reshape(2, -1).sum(0)
    torch.testing.assert_close(both, once.multipliers, rtol=1e-6, atol=1e-9)


@given(st.integers(0, 10_000))
def test_the_optimum_beats_every_other_feasible_pair_of_neurons(seed):
    """Random neurons scaled to least margin 1 are never shorter, near the optimum or far."""
    x, y = clusters(12, 2, 0.4, 9, seed)
    if len(y.unique()) < 2:
        return
    found = two_neuron_max_margin(x, y)
    rows = torch.cat([x, torch.ones(len(x), 1, dtype=F)], 1)
    best = torch.cat([found.net.w, found.net.b[:, None]], 1) * found.net.v.abs()[:, None]
    g = torch.Generator().manual_seed(seed)
    for spread in (1e-4, 1e-2, 0.3):
        w = best + spread * best.norm() * torch.randn(200, *best.shape, generator=g, dtype=F)
        z = (rows @ w.mT).clamp_min(0)
        least = (y * (z[..., 0] - z[..., 1])).amin(-1)
        value = w.norm(dim=-1).sum(-1) / least
        assert bool((value[least > 0] >= found.value * (1 - 1e-9)).all())


def test_another_solver_finds_the_same_value():
    """SLSQP, from far away, in (w+, w-, s): a smooth convex problem with linear inequalities."""
    x, y = clusters(5, 2, 0.5, 8, seed=3)
    rows, plus = torch.cat([x, torch.ones(8, 1, dtype=F)], 1).numpy(), y.numpy() > 0

    def slacks(u):
        z, s = rows @ u[:12].reshape(2, 6).T, u[12:]
        own, other = np.where(plus, z.T, z.T[::-1])
        return np.concatenate([own - s - 1, s, s - other])

    def size(u):
        return np.linalg.norm(u[:12].reshape(2, 6), axis=1).sum()

    start = np.random.default_rng(0).normal(size=20)
    out = minimize(
        size, start, constraints={"type": "ineq", "fun": slacks}, method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )  # fmt: skip
    assert slacks(out.x).min() > -1e-8
    assert out.fun == pytest.approx(two_neuron_max_margin(x, y).value, rel=1e-6)


def test_the_flow_ends_in_its_direction():
    """Merged to two neurons, the flow turns to the optimum as 1/|log-loss|."""
    x, y = clusters(40, 4, 0.3, 30, seed=1)
    g = torch.Generator().manual_seed(2)
    w, v, b = (1e-6 * torch.randn(*s, generator=g, dtype=F) for s in ((4, 40), (4,), (4,)))
    found = two_neuron_max_margin(x, y)
    net, gaps = TwoLayerNet(w, v, b), []
    for goal in (-10.0, -40.0):
        net = gradient_flow(net, x, y, until=Until(log_loss=goal), tolerance=0.05).net
        gaps.append(1 - float(normalised_margin(net, x, y)) / found.margin)
    assert 0 < gaps[1] < gaps[0] / 2
    assert gaps[1] < 0.1


def test_points_on_which_the_solver_breaks_down_at_tight_tolerances():
    """Clarabel ends in a NumericalError on these, and with its own tolerances does not."""
    rows = [
        [1.2744436928636418, 1.2664042085218918, 0.46545935286849693],
        [-0.0917992019210471, 2.153060078765069, -1.8228614106025325],
        [-0.4105702184482447, -0.9889691898528188, -0.5233263798288561],
        [1.7197915690997678, 1.0518489739383934, 1.1251309144099209],
        [1.6579646211725356, -0.591154923751162, -3.4718171105167466],
        [1.1157719173441902, -2.293513920535066, -1.9518488805712408],
        [1.119583339800147, 1.0876558384185488, 1.3427711079503744],
        [0.23817613900419565, 0.09994682458156667, -1.2230483877054164],
        [0.7379300050115536, 1.6406886163712913, -0.4712285860228128],
        [2.165840790711075, 0.44983020589597555, 0.11019458447084718],
    ]
    y = [-1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 1.0, -1.0, -1.0]
    x, y = torch.tensor(rows, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)
    found = two_neuron_max_margin(x, y)
    assert found.stationarity <= 1e-7
    assert float((y * found.net(x)).min()) == pytest.approx(1, abs=1e-7)


def test_points_that_two_neurons_cannot_fit_are_refused():
    """f = relu - relu on a line through +, -, +: linear less convex, so concave there."""
    x, y = torch.tensor([[-1.0], [0.0], [1.0]], dtype=F), torch.tensor([1.0, -1.0, 1.0], dtype=F)
    with pytest.raises(CallError, match="one neuron of each sign"):
        two_neuron_max_margin(x, y)
    assert global_max_margin(x, y).value > 0


@pytest.mark.parametrize("solve", [two_neuron_max_margin, global_max_margin])
def test_bad_points_are_refused_in_words(solve):
    x, y = gaussian(4, 2, 0)
    with pytest.raises(CallError, match="both -1 and \\+1"):
        solve(x, torch.ones(4, dtype=F))
    with pytest.raises(CallError, match="both -1 and \\+1"):
        solve(x, torch.tensor([0.0, 1.0, 1.0, -1.0], dtype=F))
    with pytest.raises(CallError, match="NaN"):
        solve(x * torch.nan, y)
    with pytest.raises(CallError, match="4 points with 3 labels"):
        solve(x, y[:3])
    same = torch.ones(2, 3, dtype=F)
    with pytest.raises(CallError, match=r"neuron of each sign|equal points"):
        solve(same, torch.tensor([1.0, -1.0], dtype=F))


def test_without_the_solver_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(RunError, match="pip install clarabel"):
        two_neuron_max_margin(*gaussian(4, 2, 0))


# the global optimum


@pytest.mark.parametrize(("n", "r"), [(1, 1), (5, 1), (6, 2), (7, 3), (9, 4), (6, 6), (5, 4)])
def test_patterns_are_as_many_as_cover_counts_and_hold_every_random_one(n, r):
    g = torch.Generator().manual_seed(10 * n + r)
    x = torch.randn(n, r, generator=g, dtype=F)
    patterns = activation_patterns(x)
    known = {tuple(row) for row in patterns.tolist()}
    assert len(known) == len(patterns) == cell_count(n, r)
    u = torch.randn(5000, r, generator=g, dtype=F)
    seen = {tuple(row) for row in (u @ x.T > 0).tolist()}
    assert seen <= known


def test_patterns_of_points_in_special_position():
    """Twice the same point, an opposite one, and three in a plane: random directions meet every cell."""
    x = torch.tensor([[1, 0, 0], [2, 0, 0], [-1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=F)
    known = {tuple(row) for row in activation_patterns(x).tolist()}
    u = torch.randn(4000, 3, generator=torch.Generator().manual_seed(0), dtype=F)
    assert {tuple(row) for row in (u @ x.T > 0).tolist()} == known


def test_one_point_of_each_label_is_a_closed_form():
    """x~ and -x~-like pairs: with <x~_1, x~_2> <= 0 each label has a neuron of its own, value sum 1/||x~||."""
    x, y = torch.tensor([[2.0], [-3.0]], dtype=F), torch.tensor([1.0, -1.0], dtype=F)
    found = global_max_margin(x, y)
    assert found.value == pytest.approx(1 / math.sqrt(5) + 1 / math.sqrt(10), rel=1e-9)


@given(st.integers(0, 10_000))
def test_the_dual_proves_that_no_net_of_any_width_does_better(seed):
    """|sum_i lambda_i y_i relu(<x~_i, u>)| <= 1 at random u; 1 at the net's own: sum_i lambda_i is a bound."""
    x, y = gaussian(6, 2, seed)
    found = global_max_margin(x, y)
    assert bool((found.multipliers >= -1e-9).all())
    assert float(found.multipliers.sum()) == pytest.approx(found.lower, rel=1e-9)
    assert found.lower <= found.value * (1 + 1e-9)
    # up to 64 neurons of 1e-7 of the value are dropped, which costs their margins at points of length about 3
    assert found.value == pytest.approx(found.lower, rel=2e-5)
    assert float((y * found.net(x)).min()) == pytest.approx(1, abs=1e-9)
    assert found.margin == pytest.approx(float(normalised_margin(found.net, x, y)), rel=1e-6)
    rows = torch.cat([x, torch.ones(6, 1, dtype=F)], 1)
    u = torch.randn(20_000, 3, generator=torch.Generator().manual_seed(seed), dtype=F)
    own = torch.cat([found.net.w, found.net.b[:, None]], 1)
    u = torch.nn.functional.normalize(torch.cat([u, own]), dim=1)
    pull = (u @ rows.T).clamp_min(0) @ (found.multipliers * y)
    assert float(pull.abs().max()) <= 1 + 1e-5
    torch.testing.assert_close(pull[-len(own) :], found.net.v.sign(), rtol=1e-4, atol=1e-4)


def test_it_is_at_most_the_value_of_two_neurons():
    for seed in range(5):
        x, y = clusters(3, 2, 0.4, 8, seed)
        if len(y.unique()) == 2:
            assert global_max_margin(x, y).value <= two_neuron_max_margin(x, y).value * (1 + 1e-7)


def test_no_training_exceeds_it_and_the_best_of_many_comes_close():
    """Overlapping clusters on the plane; each flow as far as 100 looks lead."""
    x, y = clusters(2, 2, 0.6, 7, seed=1)
    g = torch.Generator().manual_seed(0)
    w, v, b = (0.01 * torch.randn(6, *s, generator=g, dtype=F) for s in ((10, 2), (10,), (10,)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlowWarning)
        flowed = gradient_flow(
            TwoLayerNet(w, v, b), x, y, until=Until(log_loss=-60.0, evaluations=100), tolerance=0.1
        )
    margins = torch.stack([normalised_margin(flowed.member(i), x, y) for i in range(6)])
    best = global_max_margin(x, y).margin
    assert bool((margins <= best * (1 + 1e-7)).all())
    assert float(margins.max()) > 0.9 * best


def test_too_many_patterns_are_refused_with_their_number():
    x, y = gaussian(40, 5, 0)
    with pytest.raises(CallError, match=str(cell_count(40, 6))):
        global_max_margin(x, y)
