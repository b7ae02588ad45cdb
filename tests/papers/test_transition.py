"""min2025.learned and min2025.transition against other integrators, quadrature and plain descent."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp

from benches import new_bench
from tacit.data import min2024_mixture
from tacit.errors import CallError
from tacit.nets import TwoLayerNet, average_net, centre_net
from tacit.papers.min2025 import EXHIBITS
from tacit.papers.min2025.learned import exhibit as learned
from tacit.papers.min2025.learned.settings import Learned
from tacit.papers.min2025.transition import exhibit as transition
from tacit.papers.min2025.transition.claims import located
from tacit.papers.min2025.transition.exhibit import (
    Start,
    bisected,
    bracket,
    curves_of,
    flow_shares,
    shares,
    starts_of,
    theory_shares,
    trained,
)
from tacit.papers.min2025.transition.settings import Transition
from tacit.papers.min2025.transition.theory import Clusters, alignment
from tacit.papers.min2025.transition.turning import (
    height,
    maximiser,
    slope,
    turning_boundary,
    turning_times,
)

SMOKE = {exhibit.name: exhibit.scales["smoke"] for exhibit in EXHIBITS}


def start_of(K, K1, h, seed, weights=None):
    generator = torch.Generator().manual_seed(seed)
    w = torch.randn(h, K, generator=generator, dtype=torch.float64)
    sign = torch.where(torch.arange(h) % 2 == 0, 1.0, -1.0).double()
    labels = torch.where(torch.arange(K) < K1, 1.0, -1.0).double()
    c = torch.ones(K, dtype=torch.float64) if weights is None else torch.tensor(weights).double()
    return Start(w, sign, Clusters(labels, c / c.sum()))


def by_weights(s, p, time):
    """The alignment phase in w and v themselves (min2024, Section 4.1), by scipy: directions and masses."""
    c, y = s.clusters.weights.numpy(), s.clusters.labels.numpy()

    def rate(_, state):
        w, v = state[:-1], state[-1]
        size, active = np.linalg.norm(w), np.maximum(w, 0)
        G = (c * y * active**p).sum() / size ** (p - 1)
        slope = np.where(w > 0, active ** (p - 1), 0.0) if p > 1 else (w > 0).astype(float)
        grad = p * c * y * slope / size ** (p - 1) - (p - 1) * G * w / size**2
        return np.append(v * grad, G)

    out = []
    for w, sign in zip(s.w.numpy(), s.sign.numpy(), strict=True):
        first = np.append(w, sign * np.linalg.norm(w))
        out.append(solve_ivp(rate, (0, time), first, rtol=1e-9, atol=1e-12).y[:, -1])
    w, v = np.array(out)[:, :-1], np.array(out)[:, -1]
    size = np.linalg.norm(w, axis=1)
    return w / size[:, None], np.log(np.abs(v) * size)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 2.3, 4.0])
def test_the_closed_form_is_the_alignment_flow_of_the_weights(p):
    s = start_of(5, 3, 14, 0, [0.3, 0.2, 0.15, 0.2, 0.15])
    length = s.w.norm(dim=1)
    curves = alignment(
        s.w / length.unsqueeze(1), s.sign, 2 * length.log(), s.clusters, p, level=1e6
    )
    u, log_mass = curves.state(12.0)
    alive = ((s.sign.unsqueeze(1) * s.clusters.labels > 0) & (s.w > 0)).any(1).numpy()
    exact_u, exact_mass = by_weights(s, p, 12.0)
    # opposite coordinates reach 0 in finite time below p = 2, where scipy chatters about the kink
    assert np.abs(u.numpy() - exact_u[alive]).max() < 5e-3
    assert np.abs(log_mass.numpy() - exact_mass[alive]).max() < 2e-2


def test_at_p_2_the_closed_form_is_continuous():
    s = start_of(6, 3, 20, 1, [1, 2, 3, 1, 2, 3])
    found = [curves_of(s, 1e-3, p).state(20.0)[0] for p in (2 - 1e-6, 2.0, 2 + 1e-6)]
    assert float((found[0] - found[1]).abs().max()) < 1e-4
    assert float((found[2] - found[1]).abs().max()) < 1e-4


@pytest.mark.parametrize("weights", [None, [1.1, 0.9, 1.0, 1.2, 0.8, 1.0]])
def test_the_flow_does_what_the_closed_form_predicts(weights):
    """Shares at the end of training, against those predicted without any; p = 2 is the edge between."""
    s = start_of(6, 3, 64, 2, weights)
    p = torch.tensor([1.0, 1.6, 2.2, 2.6, 2.05, 3.0], dtype=torch.float64)
    init = torch.tensor([1e-7, 1e-7, 1e-3, 1e-3, 1e-20, 1e-7], dtype=torch.float64)
    found, arrived, _ = flow_shares([s] * 6, init, p)
    assert arrived.all()
    gap = (found - theory_shares([s] * 6, init, p)).abs()
    assert float(gap.max()) < (0.03 if weights is None else 0.15)


def test_the_time_to_fit_is_predicted_in_few_and_many_dimensions():
    s = start_of(4, 2, 60, 3)
    outside = torch.full((60, 1), 10.0, dtype=torch.float64)
    wide = Start(torch.cat([s.w, outside], 1), s.sign, s.clusters)
    p = torch.tensor([2.5, 5.0], dtype=torch.float64)
    for one in (s, wide):
        _, log_time, arrived = trained([one] * 2, torch.full_like(p, 1e-5), p, -1.0)
        assert arrived.all()
        expected = [math.log(curves_of(one, 1e-5, float(q)).loss_time(-1.0)) for q in p]
        assert np.abs(log_time.numpy() - expected).max() < 0.15


@pytest.mark.slow
def test_plain_descent_learns_centres_from_1e30_with_unequal_counts():
    """Without noise the boundary stays at 2: Euler steps on the weights, no coordinates, no merging."""
    s = start_of(4, 2, 40, 4, [1.2, 0.8, 1.1, 0.9])
    w = 1e-30 * s.w
    v = s.sign * w.norm(dim=1)
    p, c, y = 2.2, s.clusters.weights, s.clusters.labels
    for _ in range(40_000):
        size = w.norm(dim=1, keepdim=True)
        cosine = (w / size).clamp_min(0)
        value = cosine**p * size  # (h, K): what each neuron passes on
        pull = c * y * (-(y * (v @ value))).exp()
        grad = p * pull * cosine ** (p - 1) - (p - 1) * (cosine**p @ pull).unsqueeze(1) * w / size
        w, v = w + 0.02 * v.unsqueeze(1) * grad, v + 0.02 * (value @ pull)
    net = TwoLayerNet(w, v, p=p)
    assert float((y * net(torch.eye(4, dtype=torch.float64))).min()) > 2
    average, centres = shares(net, torch.eye(4, dtype=torch.float64), y)
    assert (average < 0.05) & (centres > 0.95)


def test_shares_know_the_two_predicted_nets():
    mixture = min2024_mixture(9, 6, 4, 0.1)
    assert shares(average_net(mixture), mixture.centres, mixture.labels) == (1.0, 0.0)
    assert shares(centre_net(mixture, 3.0), mixture.centres, mixture.labels) == (0.0, 1.0)


@given(st.floats(1.15, 1.95), st.floats(2.05, 3.9))
def test_boundaries_are_found_where_they_are(low, high):
    def share(p):
        return torch.stack([(p < low).double(), (p > high).double()], 1)

    grid = np.array([1.0, 1.5, 2.0, 3.0, 4.0])
    side = torch.tensor([0, 1])
    seen = share(torch.from_numpy(grid)).numpy()
    ends = torch.tensor(
        [bracket(seen[:, i], grid, name) for i, name in enumerate(transition.SIDES)]
    )
    found = bisected(share, side, ends.double(), 8)
    assert torch.allclose(found, torch.tensor([low, high]).double(), atol=1 / 256)


def test_a_phase_that_the_grid_does_not_show_has_no_boundary():
    grid = np.array([1.0, 2.0, 3.0])
    for row in ([0.2, 0.1, 0.0], [1.0, 1.0, 1.0]):
        assert np.isnan(bracket(np.array(row), grid, "average")).all()


def test_turning_takes_the_time_of_its_equation():
    """Two points: turning from one to the other is a quadrature in the angle."""
    p, small = 2.5, 0.01
    x, pull = np.eye(2), np.array([0.0, 0.5])
    first = np.array([math.sqrt(1 - small**2), small])
    found = turning_times(x, pull, p, first, {1: x[1]}, 1e4)
    # the angle f: c = sin f, f' = p pull sin^(p-1) f cos f
    time, _ = quad(
        lambda f: 1 / (p * 0.5 * math.sin(f) ** (p - 1) * math.cos(f)),
        math.asin(small),
        math.asin(0.7),
    )
    assert found[1] == pytest.approx(time, rel=1e-3)
    assert turning_times(x, pull, p, first, {1: x[1]}, time / 2) == {}


def test_the_maximiser_of_a_cluster_is_where_the_flow_rests():
    mixture = min2024_mixture(20, 4, 2, 0.2)
    points = mixture.sample(200, torch.Generator().manual_seed(1))
    x, pull = points.x.numpy(), points.y.numpy() / 200
    u = maximiser(x, pull, 3.0, mixture.centres[0].numpy())
    step = slope(x, pull, 3.0, u)
    assert np.abs(step - (step @ u) * u).max() < 1e-8
    assert u @ mixture.centres[0].numpy() > 0.95
    ahead = [height(x, pull, 3.0, u + 1e-6 * e) for e in np.eye(20)]
    change = (np.array(ahead) - height(x, pull, 3.0, u)) / 1e-6
    assert np.abs(change - step).max() < 1e-4


def test_turning_needs_noise_and_a_lag_and_rises_as_the_init_shrinks():
    def at(alpha, equal):
        mixture = min2024_mixture(24, 6, 3, alpha)
        points = mixture.sample(240, torch.Generator().manual_seed(7), equal_counts=equal)
        return [turning_boundary(points, mixture, 2 * math.log(e)) for e in (1e-7, 1e-30, 1e-70)]

    noisy = at(0.1, equal=False)
    assert noisy[0] < noisy[1] < noisy[2]
    assert max(at(0.0, equal=False)) < 2.05
    assert max(at(0.02, equal=True)) < 2.05


def test_with_noise_unequal_counts_delay_the_centres_and_equal_ones_do_not(bench):
    config = replace(
        SMOKE["transition"], K=4, K1=2, alpha=(0.1,), noisy_init=(1e-30,), noisy_dim=12, noisy_n=60,
        noisy_h=24, noisy_rounds=3,
    )  # fmt: skip
    found = transition.noise(config, bench)
    drawn, equal = (found.sel(counts=kind).squeeze() for kind in ("drawn", "equal"))
    assert float(drawn.noisy_boundary) > float(equal.noisy_boundary) + 0.1
    assert float(drawn.estimated_boundary) > float(equal.estimated_boundary) + 0.1


def test_starts_are_shared_by_the_p_of_a_row_and_by_nothing_else(bench):
    config = replace(SMOKE["transition"], repeats=2)
    shape = (2, config.repeats, len(config.init), len(config.p))
    rows = {
        cell: s.w
        for cell, s in zip(
            np.ndindex(shape), starts_of(config, bench, np.ndindex(shape)), strict=True
        )
    }
    assert len({tuple(w.flatten().tolist()) for w in rows.values()}) == math.prod(shape[:3])
    assert all(w is rows[(*cell[:3], 0)] for cell, w in rows.items())


@pytest.fixture(scope="module")
def small_run():
    return transition.run(replace(SMOKE["transition"], noisy_sets=3), new_bench())


@pytest.mark.slow
def test_shares_are_over_independent_starts_and_few_decide_nothing(small_run):
    found = {claim.id: claim for claim in small_run.claims}
    config = SMOKE["transition"]
    for id in ("average.1", "centres.3"):
        assert (found[id].n, found[id].over) == (config.starts, "starts")
        assert [member.id for member in found[id].members] == ["equal", "drawn"]
        assert found[id].verdict == "undecided"


@pytest.mark.slow
def test_a_start_without_a_boundary_is_named_and_not_left_out(small_run):
    data = small_run.data.copy(deep=True)
    data["boundary"], data["predicted_boundary"] = (
        xr.full_like(data.boundary, 2.0) for _ in range(2)
    )
    data.boundary[{"init": 1}] = math.nan  # 1e-5, where a prediction is made
    data.noisy_boundary[{"noisy_seed": 1, "noisy_init": 0}] = math.nan
    found = {claim.id: claim for claim in transition.claims(data, SMOKE["transition"], new_bench())}
    for id in ("predicted.centres.equal", "limit.equal", "noise.equal", "noise.estimated"):
        assert found[id].verdict == "not testable here"
        assert "no boundary" in found[id].reason
    assert "seed 1 of 3" in found["noise.drawn"].reason
    # a phase that neither the flow nor the prediction has is none that was missed
    data.predicted_boundary[{"init": 1}] = math.nan
    again = {claim.id: claim for claim in transition.claims(data, SMOKE["transition"], new_bench())}
    assert again["predicted.centres.equal"].measured == 0.0


@pytest.mark.parametrize(
    ("from_p", "found"), [(1.9, 2.0), (2.1, 2.25), (3.9, 3.75), (4.1, math.nan)]
)
def test_with_noise_both_ends_of_the_search_are_looked_at(bench, monkeypatch, from_p, found):
    asked = []

    def flow(net, x, y, *, powers, until):
        asked.append(powers)
        return type("Flowed", (), {"member": lambda self, i: float(powers[i])})()

    monkeypatch.setattr(transition, "gradient_flow", flow)
    monkeypatch.setattr(transition, "shares", lambda p, *_: (0.0, float(p > from_p)))
    config = replace(SMOKE["transition"], noisy_rounds=2)
    where = transition.noise(config, bench).noisy_boundary.values
    assert np.array_equal(where, np.full_like(where, found), equal_nan=True)
    assert len(asked) == 3


@pytest.mark.slow
def test_a_boundary_above_2_contradicts_the_poster_and_is_not_filed_as_holding(small_run):
    config = SMOKE["transition"]
    late = xr.full_like(small_run.data.noisy_boundary, 3.0)
    data = small_run.data.assign(noisy_boundary=late, noisy_resolution=0.03)
    found = {claim.id: claim for claim in transition.claims(data, config, new_bench())}
    for kind in ("equal", "drawn"):
        assert (found[f"noise.{kind}"].source, found[f"noise.{kind}"].verdict) == (
            "words",
            "differs",
        )


def test_a_boundary_is_no_better_known_than_its_last_bracket():
    found = located(xr.DataArray([2.0, 2.0, 2.0]), xr.DataArray([0.02, 0.03]))
    reach = 0.03 + 4.302653 * 0.03 / math.sqrt(3)  # Student's t with two degrees of freedom
    assert (found.value, found.n, found.fixed) == (2.0, 3, 0.03)
    assert (found.low, found.high) == pytest.approx((2 - reach, 2 + reach))
    wide = located(xr.DataArray([1.0, 2.0, 3.0]), xr.DataArray(0.03))
    assert wide.high == pytest.approx(2.03 + 4.302653 / math.sqrt(3))
    assert located(xr.DataArray([2.0]), xr.DataArray(0.03)).high == math.inf


def test_learned_finds_F_and_its_power(bench):
    config = Learned(K=4, K1=2, D=40, h=100, n=800, p=(1.0, 1.5, 2.5), repeats=1, near=1)
    outcome = learned.run(config, bench)
    found = {claim.id: claim for claim in outcome.claims}
    assert set(found) == {"F", "radius.F", "Fp", "every", "near", "radius.Fp", "p-bar"}
    assert float(outcome.data.near[0]) == float(outcome.data.dist.sel(p=2.5)[0])
    assert {claim.verdict for claim in outcome.claims} == {"undecided"}  # one training each
    assert found["F"].measured < learned.CLOSE
    assert found["Fp"].members[0].measured < learned.CLOSE
    assert (outcome.data.dist_upper >= outcome.data.dist).sel(p=[1.0, 2.5]).all()


@pytest.mark.parametrize(
    ("dist", "verdict"),
    [
        ([0.6, 0.5, 0.7], "not as predicted"),
        ([0.02, 0.6, 0.1], "undecided"),
        ([0.02, 0.03, 0.02], "as predicted"),
    ],
)
def test_learned_judges_every_p_above_2_and_names_the_one_that_differs(bench, dist, verdict):
    config = Learned(p=(1.0, 3.0, 12.0), repeats=3)
    rows = np.array([[0.05, 0.06, 0.05], dist, [0.03, 0.03, 0.04]])
    data = xr.Dataset(
        {
            "dist": (("p", "seed"), rows), "dist_upper": (("p", "seed"), 1.01 * rows),
            "radius": (("p", "seed", "point"), np.full((3, 3, 2), 0.7)),
            "arrived": (("p", "seed"), np.ones((3, 3), bool)), "log10_time": (("p", "seed"), rows),
            "near": (("near_seed",), np.repeat(dist, 20)),
        },
        coords={"p": list(config.p), "seed": range(3)},
    )  # fmt: skip
    found = {claim.id: claim for claim in learned.claims(data, config, bench)}
    # the poster's sentence is about every training: one that is far from F^(p) contradicts it
    assert found["every"].verdict == ("holds" if verdict == "as predicted" else "differs")
    assert found["every"].source == "formula"
    assert found["Fp"].verdict == verdict
    good = verdict == "as predicted"
    assert good or "p3" in found["Fp"].reason
    assert found["F"].verdict == "as predicted"
    assert found["near"].verdict == ("as predicted" if good else "not as predicted")
    # a tenth was chosen after the runs, and no paper says it
    assert {found[id].source for id in ("F", "Fp", "near", "time", "p-bar")} == {"ours"}
    assert "after" in found["F"].bar


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Transition(p=(0.5,)), r"p=0\.5"),
        (lambda: Transition(init=(2.0,)), r"init=2\.0"),
        (lambda: Transition(init=(1e-200,)), "init=1e-200"),
        (lambda: Transition(fit_p=(1.5,)), r"fit_p=1\.5"),
        (lambda: Transition(clusters=(4,), positives=(2, 3)), "pair up"),
        (lambda: Transition(fit_dims=(3,)), "D=3"),
        (lambda: Transition(noisy_n=2), "noisy_n=2"),
        (lambda: Learned(init=0.0), r"init=0\.0"),
        (lambda: Learned(n=3), "n=3"),
        (lambda: Learned(K=300), "K=300"),
    ],
)
def test_impossible_settings_are_refused(make, words):
    with pytest.raises(CallError, match=words):
        make()
