"""li2025's starts and pairs of points: Appendix A.3 by draws, B.5 and B.6, and worlds where each is false."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from scipy import stats

from benches import new_bench, verdicts
from tacit.papers.li2025._shared import starts as shared
from tacit.papers.li2025._shared.coefficients import dynamics_of
from tacit.papers.li2025._shared.compact import binary_net, compact_problem
from tacit.papers.li2025._shared.starts import (
    activated,
    enough_points,
    largest_below,
    largest_bound,
    least_below,
    least_bound,
    promise,
)
from tacit.papers.li2025._shared.synthetic import binary_start, mixture_of
from tacit.papers.li2025.lemma5 import claims as lemma5_claims
from tacit.papers.li2025.lemma5 import exhibit as lemma5
from tacit.papers.li2025.lemma5.draws import n_of_A12
from tacit.papers.li2025.lemma5.settings import Coefficients

TINY = Coefficients(
    d=120, k=4, k1=2, m=3, n=40, T=30, T_long=60, late=10.0, inside=2, starts=400, repeats=6
)


@pytest.fixture(scope="module")
def tiny():
    return lemma5.run(TINY, new_bench(seed=1))


def judged(data, config=TINY):
    return {claim.id: claim for claim in lemma5_claims.claims(data, config, new_bench())}


def test_the_chances_of_extremes_are_those_of_draws():
    rng = np.random.default_rng(0)
    for count in (1, 3, 50):
        x = rng.standard_normal((40_000, count))
        edge = math.sqrt(2 * math.log(count))
        t = np.array([0.0, 0.3, 1.0])
        below = (x.min(1)[:, None] <= -edge - t).mean(0)
        assert np.exp(least_below(count, t)) == pytest.approx(below, abs=0.01)
        t = np.array([0.0, 0.5, 1.0]) * 2 * math.log(count)
        below = (x.max(1)[:, None] <= np.sqrt(2 * math.log(count) - t)).mean(0)
        assert np.exp(largest_below(count, t)) == pytest.approx(below, abs=0.01)


@pytest.mark.parametrize("id", ["A9.min", "A9.max"])
def test_a_lemma_a9_with_a_smaller_bound_is_noticed(tiny, monkeypatch, id):
    assert judged(tiny.data)[id].verdict == "holds"
    name = "least_bound" if id == "A9.min" else "largest_bound"
    true = getattr(shared, name)
    # half of the first bound; the second with 2 e^(t/2) for e^(t/2)
    wrong = {
        "least_bound": lambda count, t: true(count, t) - math.log(2),
        "largest_bound": lambda count, t: 2 * true(count, t),
    }
    monkeypatch.setattr(shared, name, wrong[name])
    said = judged(tiny.data)
    assert said[id].verdict == "differs"
    assert said[{"A9.min": "A9.max", "A9.max": "A9.min"}[id]].verdict == "holds"


def test_starts_have_the_sizes_and_biases_of_gaussians(bench):
    """sqrt(chi^2_d) of 2m weights, and the largest of 2m standard Gaussians."""
    config = replace(TINY, starts=3000)
    data = lemma5.starts(config, bench)
    limit, h = 2 * math.sqrt(2 * math.log(3)), 6
    within = float((data.largest_bias <= limit).mean())
    assert within == pytest.approx((1 - 2 * stats.norm.sf(limit)) ** h, abs=0.01)
    edge = 0.1 * 2 * math.log(120)
    low, high = (stats.chi2(120).cdf((math.sqrt(120) + s * edge) ** 2) for s in (-1, 1))
    assert float((data.A10 <= 0.1).mean()) == pytest.approx((high - low) ** h, abs=0.03)


def test_active_points_of_draws_are_those_of_points():
    """By the share of a cluster, and by points: w in R^400, three clusters."""
    k, h, n, draws, asked = 3, 2, 60, 1500, 3
    rng = np.random.default_rng(1)
    reached = 0
    for _ in range(draws):
        w, z = rng.standard_normal((h, 400)), rng.integers(k, size=n)
        x = rng.standard_normal((n, 400))
        x[np.arange(n), z] += 20
        reached += int(((w @ x.T >= 0) @ np.eye(k)[z]).min() >= asked)
    found = activated(h, k, n, asked, 6000, rng) / 6000
    assert found == pytest.approx(reached / draws, abs=0.04)
    assert found == pytest.approx((1 - asked / 21) ** (h * k), abs=0.04)


def test_signs_and_pairs_of_a_moment_are_what_loops_say():
    stream = torch.Generator().manual_seed(4)
    mixture = mixture_of(30, 4, 2, generator=stream)
    samples = mixture.sample(15, stream)
    net = binary_start(30, 2, 1e-2, 1e-2, stream)
    problem = dynamics_of(net, mixture, samples)
    at = problem.zero()
    for _ in range(6):
        at = problem.step(at, problem.seen(at), 0.05)
    # a world in which one own and one foreign coefficient have the wrong sign
    lam = at.lam.clone()
    lam[0, 0], lam[0, 3] = -0.25, 0.125
    at = replace(at, lam=lam)
    seen = problem.seen(at)
    row = lemma5.read(problem, at, seen, 6)
    pairs = [(r, i) for r in range(4) for i in range(15)]
    alike = {(r, i): bool(net.v[r].sign() == samples.y[i]) for r, i in pairs}
    foreign = [float(at.sigma[r, i]) for r, i in pairs if not alike[r, i]]
    assert row["own_negative"] == 0.25
    assert row["foreign_positive"] == 0.125
    assert row["foreign_zero"] == pytest.approx(sum(s == 0 for s in foreign) / len(foreign))
    q, pull = seen.margin.tolist(), (1 / (1 + seen.margin.exp())).tolist()
    gaps = [
        (q[i] - q[j]) / 2 - math.log(pull[j] / pull[i])
        for i in range(15) for j in range(15) if q[i] >= q[j]
    ]  # fmt: skip
    assert row["order_below"] == pytest.approx(max(gaps), abs=1e-12)


def test_the_start_that_is_allowed_takes_of_its_bounds_what_loops_say(bench):
    """k = 2, d = 1024, n = 128: the same stream, neuron by neuron."""
    found = lemma5.inside(TINY, bench, 3)
    d, n, m = 1024, 128, 2
    eta = d**-2.0
    stream = bench.generator("inside", seed=3)
    problem = compact_problem(d, 2, 1, n, 4, stream)
    start = binary_net(problem.rows, math.sqrt(eta / 32), stream, torch.float64)
    most, slopes = 0.0, []
    for x, y in zip(problem.train.x, problem.train.y, strict=True):
        z = [float(w @ x + b) for w, b in zip(start.w, start.b, strict=True)]
        most = max(most, *map(abs, z))
        f = sum(float(v) * max(each, 0.0) for v, each in zip(start.v, z, strict=True))
        slopes.append(1 / (1 + math.exp(float(y) * f)))
    assert float(found.inside_A13) == pytest.approx(most / (eta * math.sqrt(d) / (n * m)))
    part = max(max(slopes) / (2 / 3), (1 / 3) / min(slopes))
    assert float(found.inside_A14) == pytest.approx(part)
    assert part == pytest.approx(0.75, abs=0.01)  # l' is 1/2 or so at every point


def test_the_promise_of_a12_is_half_of_its_limit_where_it_is_judged():
    m, k = 5, 10
    n = enough_points(m, 2 * m * k, 9 * k * m**2)
    assert promise(n, m, 2 * m * k, 9 * k * m**2) == pytest.approx((1 - 5**-0.01) / 2, rel=1e-3)
    assert promise(1000, m, 2 * m * k, 9 * k * m**2) < -60
    assert enough_points(1, 20, 90) == 0
    assert n_of_A12(replace(TINY, m=1)) == TINY.n


def test_lemma5_judges_the_start_and_the_pairs(tiny):
    said = verdicts(tiny)
    held = {"B5.own", "B5.foreign", "B6.upper", "B6.lower", "A9.min", "A9.max", "A10", "A10.bias"}
    assert {said[id] for id in held | {"A12", "A14"}} == {"holds"}
    assert {said[id] for id in ("B5.printed", "B6.lower.printed", "A13")} == {"differs"}
    # B.6 fails at the start, where margins have both signs, and not once all are positive
    data = tiny.data
    assert float(data.order_below[:, 0].max()) > 1e-12 > float(data.order_below[:, 5:].max())


WORLDS = [
    ("B5.own", "own_negative", 1e-3),
    ("B5.foreign", "foreign_positive", 1e-3),
    ("B6.upper", "order_above", 0.1),
    ("B6.lower", "order_mended", 0.1),
    ("A10", "A10", 1.1),
    ("A14", "inside_A14", 1.1),
]


@pytest.mark.parametrize(("id", "variable", "value"), WORLDS)
def test_one_training_or_start_beyond_the_bound_is_noticed(tiny, id, variable, value):
    assert judged(tiny.data)[id].verdict == "holds"
    values = tiny.data[variable].copy(deep=True)
    values[dict.fromkeys(values.dims, 2)] = value
    assert judged(tiny.data.assign({variable: values}))[id].verdict == "differs"


@pytest.mark.parametrize(
    ("id", "variable"),
    [("B5.printed", "foreign_zero"), ("B6.lower.printed", "order_below"), ("A13", "inside_A13")],
)
def test_what_differs_would_hold_in_a_world_where_it_is_true(tiny, id, variable):
    assert judged(tiny.data)[id].verdict == "differs"
    assert judged(tiny.data.assign({variable: 0 * tiny.data[variable]}))[id].verdict == "holds"


def test_biases_and_active_points_rarer_than_promised_are_noticed(tiny):
    data = tiny.data
    wide = xr.where(np.arange(TINY.starts) < 80, 99.0, data.largest_bias)  # a fifth; 2/27 may be
    assert judged(data.assign(largest_bias=wide))["A10.bias"].verdict == "differs"
    many = replace(TINY, starts=4000)
    world = data.assign(largest_bias=("start", np.zeros(4000)), A10=("start", np.zeros(4000)))
    world = world.assign(reached_many=0 * data.reached_many)
    assert judged(world, many)["A12"].verdict == "differs"


def test_with_one_neuron_a_label_the_promises_are_empty(tiny):
    said = judged(tiny.data, replace(TINY, m=1))
    assert {said[id].verdict for id in ("A10.bias", "A12")} == {"vacuous"}
    assert all("m = 2" in said[id].reason for id in ("A10.bias", "A12"))


def test_the_law_of_a12_is_what_is_expected_and_one_property_decides_a6(tiny):
    """At n = 40, k = 4, m = 3: one of the eleven counts, 0 to 10, is too few."""
    n, k, m = TINY.n, TINY.k, TINY.m
    lost = math.ceil(n / (3 * k * m**2)) / (n / k + 1)
    assert judged(tiny.data)["A12.law"].expected.value == pytest.approx((1 - lost) ** (2 * m * k))
    assert judged(tiny.data)["inside"].expected.min == 1
    assert judged(tiny.data)["A6"].verdict != "differs"
    values = tiny.data.A6.copy(deep=True)
    values[dict.fromkeys(values.dims, 0)] = 1.1
    assert judged(tiny.data.assign(A6=values))["A6"].verdict == "differs"


def test_the_bounds_of_lemma_a9_are_the_printed_ones():
    t = np.array([0.0, 1.0, 2.0])
    assert np.exp(least_bound(10, t)) == pytest.approx(np.exp(-(t**2) / 2) / 2)
    low = math.sqrt(2 * math.pi) * (math.sqrt(2 * math.log(10)) + 1)
    assert np.exp(largest_bound(10, t)) == pytest.approx(np.exp(-np.exp(t / 2) / low))


def test_a_derivation_says_that_it_is_one(tiny):
    claim = judged(tiny.data)["A12.limit"]
    assert claim.reason.startswith("a derivation")
    assert claim.verdict == "differs"
