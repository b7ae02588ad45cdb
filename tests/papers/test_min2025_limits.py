"""min2025.limits: the law against other integrators, the trainings, and the claims in made-up worlds."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.integrate import quad, solve_ivp
from scipy.stats import norm

from benches import new_bench, verdicts
from tacit.errors import CallError
from tacit.papers.min2025.limits import exhibit
from tacit.papers.min2025.limits.claims import claims
from tacit.papers.min2025.limits.law import (
    ARRIVED,
    Pair,
    critical_p,
    growth,
    largest_of,
    least_log_init,
    moment,
    pairs_of,
    pull,
    rest,
    turn_to_centre,
    turning,
    typical_pair,
)
from tacit.papers.min2025.limits.settings import Limits
from tacit.papers.min2025.transition.theory import Clusters, alignment, predicted_shares
from tacit.papers.min2025.transition.turning import turning_boundary

PAIR = typical_pair(0.03, 24, 12, 4)

# ---- the law


@pytest.mark.parametrize("q", [1.0, 1.3, 2.0, 3.7])
def test_moments_are_those_of_quadrature(q):
    x = np.array([-3.0, -0.4, 0.0, 0.7, 5.0, 19.9, 20.1, 60.0])
    found = moment(q, x)
    for at, value in zip(x, found, strict=True):
        low = max(0.0, at - 10)
        exact = quad(lambda s, at=at: s**q * norm.pdf(s - at), low, at + 10, epsabs=0, limit=200)[0]
        assert value == pytest.approx(exact, rel=2e-5)
    if q == 1:
        assert found == pytest.approx(x * norm.cdf(x) + norm.pdf(x), rel=1e-9)


@pytest.mark.parametrize("p", [2.05, 2.6, 4.0])
def test_turning_takes_the_time_of_its_differential_equation(p):
    start = rest(p, PAIR)
    assert start == pytest.approx(PAIR.e + PAIR.rho(p) * pull(p, 0.03, np.array([start])).item())

    def rate(_, m):
        return (1 - m**2) * pull(p, 0.03, m)

    def there(_, m):
        return m[0] - ARRIVED

    there.terminal = True
    found = solve_ivp(rate, (0, 1e6), [start], events=there, rtol=1e-8, atol=1e-12, first_step=1e-3)
    assert turning(p, PAIR) == pytest.approx(found.t[-1], rel=2e-3)


@pytest.mark.parametrize(("p", "b"), [(2.0, 0.3), (2.5, 0.2), (4.0, 0.5)])
def test_a_neuron_alone_with_its_cluster_fits_it_when_the_law_says(p, b):
    """u' = p u^(p-1) (1 - u^2), (log mass)' = 2 u^p with a pull of 1, until the mass is 1."""

    def rate(_, state):
        u = min(state[0], 1.0)
        return [p * u ** (p - 1) * (1 - u * u), 2 * u**p]

    def fitted(_, state):
        return state[1]

    fitted.terminal = True
    found = solve_ivp(rate, (0, 1e4), [b, -60.0], events=fitted, rtol=1e-8, atol=1e-10)
    assert 30 + turn_to_centre(p, b) / p == pytest.approx(found.t[-1], rel=1e-4)


def fitted_times(x, z, u, log_mass, p):
    """When the outputs at the means of clusters 0 and 1, of one class, reach 1; by Runge-Kutta."""
    means = np.stack([x[z == k].mean(0) for k in (0, 1)])
    h = len(u)

    def parts(y):
        at = y[h:-1].reshape(u.shape)
        at = at / np.linalg.norm(at, axis=1, keepdims=True)
        return at, np.maximum(x @ at.T, 0), np.exp(y[:h])

    def rate(_, y):  # by the loss: d/dtau = (1/loss) d/dt, and the time itself last
        at, on, mass = parts(y)
        pull = np.exp(-(on**p) @ mass) / len(x)
        loss = pull.sum()
        slope = p * (on ** (p - 1) * pull[:, None] / loss).T @ x
        turn = slope - (slope * at).sum(1, keepdims=True) * at
        return np.concatenate([2 * (pull / loss) @ on**p, turn.ravel(), [1 / loss]])

    def reaches(k):
        return lambda _, y: float(np.maximum(parts(y)[0] @ means[k], 0) ** p @ np.exp(y[:h])) - 1

    events = [reaches(0), reaches(1)]
    events[1].terminal = True
    y = np.concatenate([log_mass, u.ravel(), [0.0]])
    found = solve_ivp(rate, (0, 1e4), y, events=events, rtol=1e-5, atol=1e-8)
    return [float(at[0][-1]) for at in found.y_events], means


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "init"), [(0.05, 1e-20), (0.05, 1e-40), (0.2, 1e-40)])
def test_clusters_are_fitted_and_neurons_turn_when_the_law_says(alpha, init):
    """At alpha = .2 and 1e-40 p = 3 is too small: neurons of 0 reach 1 before its own have grown."""
    stream, D, h = np.random.default_rng(0), 24, 24
    z = np.repeat([0, 1], [240, 120])
    x = np.eye(D)[z] + stream.standard_normal((360, D)) * alpha / math.sqrt(D)
    w = stream.standard_normal((h, D))
    length = np.linalg.norm(w, axis=1)
    log_mass = 2 * math.log(init) + 2 * np.log(length)
    times, means = fitted_times(x, z, w / length[:, None], log_mass, 3.0)
    pulls = np.array([2 / 3, 1 / 3]) * np.linalg.norm(means, axis=1) ** 3
    need = growth(3.0, math.log(init), D, 2 * h)
    pair = next(q for q in pairs_of(x, z, np.ones(2), alpha / math.sqrt(D)) if q.rho(3.0) < 1)
    lag = need * (1 / pulls[1] - 1 / pulls[0])
    turned = turning(3.0, pair) / (3 * pulls[1])
    assert times[0] == pytest.approx(need / pulls[0], rel=0.03)
    if turned > lag:
        assert times[1] == pytest.approx(need / pulls[1], rel=0.03)
    else:
        assert 1 < (times[1] - times[0]) / turned < 1.6


def test_lambda_is_made_of_the_mass_and_the_turn():
    b = largest_of(24) / math.sqrt(24)
    mass = 1e-20 * 24
    wanted = -math.log(mass) / 2 + turn_to_centre(3.0, b) / 3
    assert growth(3.0, math.log(1e-10), 24, 48) == pytest.approx(wanted)
    draws = np.random.default_rng(0).standard_normal((4000, 24)).max(1)
    assert largest_of(24) == pytest.approx(np.median(draws), abs=0.03)


def test_the_critical_p_is_where_both_times_are_equal():
    inits = np.log([1e-3, 1e-12, 1e-70, 1e-250])
    found = critical_p(inits, [PAIR], 24, 48)
    assert (np.diff(found) > 0).all()
    for init, p in zip(inits, found, strict=True):
        lag = (1 - PAIR.rho(p)) * growth(p, init, 24, 48)
        # between two p of the grid log f is taken to be straight
        assert turning(p, PAIR) / p == pytest.approx(lag, rel=0.02)


def test_more_noise_and_less_equal_counts_ask_for_a_larger_p():
    at = np.log([1e-30])
    base = critical_p(at, [PAIR], 24, 48)
    assert critical_p(at, [typical_pair(0.06, 24, 12, 4)], 24, 48) > base
    assert critical_p(at, [typical_pair(0.03, 24, 6, 4)], 24, 48) > base
    assert critical_p(at, [PAIR, typical_pair(0.06, 24, 12, 4)], 24, 48) > base


def test_without_noise_or_lag_no_init_is_too_small():
    for pair in (Pair(0.0, 0.5, 0.0, 0.0), Pair(0.1, 1.0, 0.0, 0.01), Pair(0.1, 0.9, 0.1, 0.01)):
        assert least_log_init(3.0, pair, 24, 48) == -math.inf
    assert critical_p(np.log([1e-70]), [Pair(0.0, 0.5, 0.0, 0.0)], 24, 48) == 2.0
    assert critical_p(np.log([1e-300]), [Pair(0.9, 0.1, 0.0, 0.1)], 24, 48) == 8.0


def test_pairs_are_the_ordered_ones_of_a_class():
    x = np.array([[1.0, 0.1], [1.0, -0.1], [0.0, 2.0], [-1.0, 0.0]])
    pairs = pairs_of(x, np.array([0, 0, 1, 2]), np.array([1.0, 1.0, -1.0]), 0.1)
    assert [(q.ratio, q.e) for q in pairs] == [(0.5, 0.0), (2.0, 0.0)]
    assert pairs[0].rho(3.0) == pytest.approx(0.5 * 2**3)


# ---- trainings


def one_world(setting=0, seed=0, **changes):
    config = replace(Limits(), n=60, K=4, D=12, h=24, repeats=1, **changes)
    return config, exhibit.world(config, new_bench(seed=seed), config.settings[setting], seed)


def test_counts_are_as_the_ratio_says():
    config, one = one_world()
    assert torch.bincount(one.points.z).tolist() == [20, 10, 20, 10]
    pair = exhibit.typical(config, config.settings[0])
    assert (pair.ratio, pair.sigma) == (0.5, pytest.approx(0.05 / math.sqrt(12)))


@pytest.mark.slow
def test_weights_of_1e_200_are_followed_and_learn_a_mixture():
    """Their squares are no floats. With noise and unequal counts p = 2.3 is far below the law."""
    _, one = one_world(setting=1)
    init = torch.tensor([1e-200], dtype=torch.float64)
    found, fitted = exhibit.trained_shares([one], init, torch.full((1,), 2.3).double())
    assert fitted.all()
    assert found[0, 1] < 0.9


def test_the_law_on_given_points_is_near_the_turning_of_all_coordinates():
    """`transition.turning` integrates u' = P grad G on the points, without the turn to the centres."""
    for seed in range(2):
        _, one = one_world(setting=1, seed=seed)
        points, mixture = one.points, one.mixture
        pairs = pairs_of(points.x.numpy(), points.z.numpy(), mixture.labels.numpy(), mixture.sd)
        log_init = math.log(1e-30)
        law = critical_p(np.array([log_init]), pairs, 12, 24).item()
        whole = turning_boundary(points, mixture, 2 * log_init + math.log(12))
        assert law == pytest.approx(whole, abs=0.25)


def test_without_noise_the_alignment_boundary_falls_to_2():
    _, one = one_world()
    found = exhibit.aligned_p(one, (1e-1, 1e-3, 1e-12, 1e-70))
    assert sorted(found, reverse=True) == found
    assert found[0] > 2.1
    assert found[-1] < 2.05


def test_the_alignment_boundary_is_the_lower_end_of_a_window():
    """From 1e-3 this start has the centres at p = 2.1 to 4, and no longer at p = 6."""
    config, seed = Limits(), 11063760
    setting = next(each for each in config.settings if each.K == 4)
    one = exhibit.world(config, new_bench(seed=seed), setting, seed)
    length, K = one.w.norm(dim=1), setting.K
    log_mass = 2 * math.log(1e-3) + 2 * length.log()
    clusters = Clusters(one.mixture.labels, one.mixture.weights)

    def there(p):
        curves = alignment(one.w[:, :K] / length[:, None], one.sign, log_mass, clusters, p, 11.0)
        return predicted_shares(curves, 11.0)[1] >= 0.95

    assert [there(p) for p in (2.1, 3.0, 4.0, 6.0, 8.0)] == [True, True, True, False, False]
    assert exhibit.aligned_p(one, (1e-3,))[0] < 2.1


def test_the_critical_p_is_found_where_it_is_also_above_the_top_and_is_cut_at_8(monkeypatch):
    """Trainings that learn centres from a p on that depends on the init, or never; p = 8 does not fit."""
    edges = {1e-3: 2.3, 1e-20: 3.7, 1e-30: 4.999, 1e-50: 5.5, 1e-60: 7.995, 1e-70: math.inf}
    config, one = one_world(init=tuple(edges))

    def pretended(worlds, init, p):
        edge = torch.tensor([edges[each] for each in init.tolist()], dtype=torch.float64)
        there = (p >= edge).double()
        return torch.stack([1 - there, there], 1), p < 8

    monkeypatch.setattr(exhibit, "trained_shares", pretended)
    found, tried, fitted = exhibit.measured(config, [one])
    half = exhibit.half_bracket(config, config.top, 8.0)
    assert half == exhibit.half_bracket(config, 2.0, config.top)
    assert found[0, :5] == pytest.approx(list(edges.values())[:5], abs=half)
    assert found[0, 5] == 8.0
    # seven halvings; the top where all of them were above; then seven more, and p = 8 itself
    assert tried.tolist() == [[7, 7, 8, 15, 16, 16]]
    assert (tried - fitted).tolist() == [[0, 0, 0, 0, 1, 1]]


def test_a_top_of_8_is_the_only_stretch(monkeypatch):
    config, one = one_world(init=(1e-3, 1e-9), top=8.0)
    found = exhibit.stretches(config)
    assert found == [(2.0, 8.0)]

    def never(worlds, init, p):
        return torch.zeros(len(worlds), 2).double(), torch.ones(len(worlds), dtype=torch.bool)

    monkeypatch.setattr(exhibit, "trained_shares", never)
    assert (exhibit.measured(config, [one])[0] == 8.0).all()


# ---- settings


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"init": (1e-3, 0.0)}, "init=0.0: it is at least 1e-300 (float64 has no smaller weight"),
        ({"init": (1e-3, 1e-310)}, "it is at least 1e-300"),
        ({"init": (2.0, 1e-3)}, "init=2.0: it is at most 1"),
        ({"init": (1e-3,)}, "init=0.001: two sizes or more"),
        ({"init": (1e-3, 1e-3)}, "each value once"),
        ({"init": (math.nan, 1e-3)}, "init=nan: it is at most 1"),
        ({"alpha": (0.0,)}, "alpha=0.0: it is a positive number"),
        ({"alpha": (1.5,)}, "alpha=1.5: it is at most 1"),
        ({"ratio": 0.0}, "ratio=0.0: it is a positive number"),
        ({"ratio": 1.0}, "ratio=1.0: it is below 1 (equal counts are run"),
        ({"K": 5}, "K=5: an even number from 4 on"),
        ({"K": 2}, "K=2: an even number from 4 on"),
        ({"K": 30}, "K=30 > D=24"),
        ({"n": 8}, "less than 2 points; raise n or ratio"),
        ({"h": 4}, "h=4: it is at least 16"),
        ({"top": 2.0}, "top=2.0: the critical p is sought from 2 to top <= 8"),
        ({"top": 9.0}, "top=9.0"),
        ({"rounds": 0}, "rounds=0: it is at least 1"),
        ({"unseen_clusters": (4,)}, "pair up: give all four the same length"),
        ({"unseen_clusters": (6, 6, 6, 6, 6), "unseen_ratio": (0.5,) * 5}, "is there twice"),
    ],
)
def test_unusable_settings_are_refused_in_one_line(changes, words):
    with pytest.raises(CallError) as refused:
        replace(Limits(), **changes)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


# ---- claims, in worlds that are made up


LAPTOP = Limits()
LAW = ("law.unseen", "law.most", "law.each", "law.before")


def made_up(
    noisy, *, still=2.0, equal=2.0, gap=0.0, spread=0.01, rise=0.0, fitted=1.0, seeds=5
) -> xr.Dataset:
    """The critical p of the noise sweep is `noisy` (one number an init), that of the controls `still` and `equal`
    (with a rise at the smallest init), and the unseen ones are the prediction and a gap."""
    roles = [each.role for each in LAPTOP.settings]
    stream = np.random.default_rng(0)
    rows = {"noise": np.array(noisy), "still": np.full(6, still), "equal": np.full(6, equal)}
    rows["unseen"] = np.linspace(2.2, 3.4, 6)
    at = np.array([rows[role] for role in roles])
    p = np.repeat(at[:, None], seeds, 1) + spread * stream.standard_normal((len(roles), seeds, 1))
    p[[role in ("still", "equal") for role in roles], :, -1] += rise
    unseen = np.array([role == "unseen" for role in roles])[:, None, None]
    guess = p - unseen * gap
    dims = ("setting", "seed", "init")
    return xr.Dataset(
        {
            "p": (dims, p),
            "turning_p": (dims, guess),
            "aligned_p": (dims, np.full_like(p, 2.0)),
            "law_p": (("setting", "init"), guess.mean(1)),
            "tried": (dims, np.full(p.shape, 7)),
            "fitted": (dims, np.full(p.shape, 7 * fitted)),
            "resolution": ((), 0.0156),
        },
        coords={
            "setting": [each.name for each in LAPTOP.settings],
            "role": ("setting", roles),
            "seed": range(seeds),
            "init": list(LAPTOP.init),
        },
    )


def judged(data):
    return verdicts(tuple(claims(data, LAPTOP, new_bench())))


RISING = (2.2, 2.5, 2.8, 3.0, 3.2, 3.4)


def test_in_a_world_where_the_limits_do_not_commute_every_claim_says_so():
    found = judged(made_up(RISING))
    poster = {id: v for id, v in found.items() if id.startswith("poster.")}
    assert len(poster) == 6
    assert set(poster.values()) == {"not as predicted"}
    assert {v for id, v in found.items() if id.startswith("rises.")} == {"as predicted"}
    assert found["control.still"] == "as predicted"
    assert found["control.equal"] == "holds"
    assert {found[id] for id in LAW} == {"as predicted"}
    assert found["fitted"] == "holds"


def test_in_the_posters_world_every_claim_says_the_opposite():
    data = made_up(
        (2.0, 2.0, 2.0, 2.0, 1.99, 1.7), still=2.3, equal=2.3, rise=0.3, gap=0.5, fitted=0.2
    )
    found = judged(data)
    assert {v for id, v in found.items() if id.startswith("poster.")} == {"as predicted"}
    assert {v for id, v in found.items() if id.startswith("rises.")} == {"not as predicted"}
    assert found["control.still"] == "not as predicted"
    assert found["control.equal"] == "differs"
    assert {found[id] for id in LAW} == {"not as predicted"}
    assert found["fitted"] == "differs"


def test_in_a_world_of_luck_nothing_is_decided():
    found = judged(made_up((2.2,) * 6, still=2.1, equal=2.1, gap=0.15, spread=0.4))
    for id in ("fitted", *LAW):
        del found[id]
    assert set(found.values()) == {"undecided"}
    exact = judged(made_up(RISING, gap=0.15))
    assert exact["law.unseen"] == "undecided"
    assert exact["law.before"] == "undecided"


def unseen_rows(data):
    return np.flatnonzero(data.role.values == "unseen")


def test_one_start_that_never_learns_silences_nothing():
    """At every init of one unseen setting: 6 of 30 cells of one data set of five are cut at 8."""
    data = made_up(RISING)
    data.p[unseen_rows(data)[0], 3] = 8.0
    found = {claim.id: claim for claim in claims(data, LAPTOP, new_bench())}
    gap = float((8 - data.turning_p[unseen_rows(data)[0], 3]).mean()) / 5
    assert found["law.unseen"].measured == pytest.approx(gap / 5, abs=1e-6)
    assert {found[id].verdict for id in LAW} == {"undecided"}
    # five sixths of its cells and all of the others'
    assert found["law.most"].measured == pytest.approx((4 + 24 / 30) / 5)
    assert found["rises.0.05"].verdict == "as predicted"
    # of one cell in 150 the law is right in nine of ten all the same
    data = made_up(RISING)
    data.p[unseen_rows(data)[0], 3, -1] = 8.0
    assert judged(data)["law.most"] == "as predicted"


def test_a_prediction_above_8_is_right_where_nothing_is_learned_and_wrong_elsewhere():
    data = made_up(RISING)
    rows = unseen_rows(data)
    data.p[rows], data.turning_p[rows], data.law_p[rows] = 8.0, 8.0, 8.0
    assert {judged(data)[id] for id in LAW} == {"as predicted"}
    data.p[rows] = 3.0
    assert {judged(data)[id] for id in LAW} == {"not as predicted"}
    data.p[rows], data.turning_p[rows], data.law_p[rows] = 8.0, 3.0, 3.0
    assert {judged(data)[id] for id in LAW} == {"not as predicted"}


def test_what_is_cut_neither_rises_nor_falls():
    data = made_up(RISING)
    data.p[0, 3, -2:] = 8.0
    claim = next(c for c in claims(data, LAPTOP, new_bench()) if c.id == "rises.0.05")
    assert claim.measured == pytest.approx(4 * 0.2 / 5, abs=1e-6)
    # the poster's p = 2 is refuted by a p above 8 as by one below it
    found = {claim.id: claim for claim in claims(data, LAPTOP, new_bench())}
    members = {part.id: part.measured for part in found["poster.1e-70"].members}
    assert members[LAPTOP.settings[0].name] == pytest.approx((4 * 3.4 + 8) / 5, abs=0.02)
    assert found["poster.1e-70"].verdict == "not as predicted"


def test_only_the_balanced_mixture_is_judged_by_the_posters_words():
    """Unequal counts contradict no sentence of the poster; equal ones, sampled with noise, can."""
    made = {claim.id: claim for claim in claims(made_up(RISING), LAPTOP, new_bench())}
    assert {id for id, c in made.items() if c.source == "words"} == {"control.equal"}
    balanced = made["control.equal"]
    assert balanced.where == "Poster, Observations"
    assert balanced.regime.startswith("inside: as many points in each cluster")
    for id, claim in made.items():
        if id.startswith("poster."):
            assert (claim.source, claim.where) == (
                "ours",
                "Beyond the poster (docs/guide/limits.md)",
            )
            assert claim.bar.startswith("ours: a tenth in p")
            assert claim.regime.startswith("outside: the poster's mixture is balanced")


def test_the_figure_tells_what_was_cut():
    data = made_up(RISING)
    data.p[unseen_rows(data)[0], 3] = 8.0
    panel = exhibit.draw(data, LAPTOP).axes[2]
    assert "none up to $p$ = 8" in panel.get_legend_handles_labels()[1]
    assert panel.get_ylim()[1] < 6


def test_without_unseen_settings_no_error_is_judged():
    few = replace(LAPTOP, unseen_clusters=(), unseen_alpha=(), unseen_ratio=(), unseen_n=())
    data = made_up(RISING)
    data = data.sel(setting=data.role != "unseen")
    found = verdicts(tuple(claims(data, few, new_bench())))
    assert not any(id.startswith("law.") for id in found)
    assert exhibit.draw(data, few).axes
