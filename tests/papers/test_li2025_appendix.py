"""li2025.eps and li2025.appendixC: sizes and bounds; claims in made-up worlds."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from benches import new_bench
from tacit.errors import CallError, RunError
from tacit.papers.li2025._shared import readings
from tacit.papers.li2025._shared.bounds import bounds, induction, needed, products, room_of
from tacit.papers.li2025._shared.coefficients import (
    ClassDynamics,
    class_dynamics_of,
    followed,
)
from tacit.papers.li2025._shared.compact import classes_net, compact_problem
from tacit.papers.li2025._shared.lemmas import constants, counts_term, sizes_for
from tacit.papers.li2025.appendixC import claims as class_claims
from tacit.papers.li2025.appendixC import exhibit as appendix
from tacit.papers.li2025.appendixC.settings import Classes
from tacit.papers.li2025.eps import claims as eps_claims
from tacit.papers.li2025.eps import exhibit as eps
from tacit.papers.li2025.eps.settings import Small
from tacit.papers.li2025.sweeps.sweep import class_growth, epsilon, growth

TINY = Small(n=600, d=10**10, n_exact=60, d_exact=10**6, late=10.0, repeats=6, fresh=50, stride=1.0)
NET = Classes(
    d=200,
    k=3,
    k1=1,
    h=2,
    n=60,
    T=30,
    T_descent=15,
    late=10.0,
    repeats=6,
    starts=4,
    draws=50,
    inside=2,
)


def gen(seed):
    return torch.Generator().manual_seed(seed)


# ---- sizes at which eps is small


def test_sizes_for_an_eps_have_that_eps():
    for k, goal in ((2, 0.5), (3, 0.1), (10, 0.01)):
        share, d = sizes_for(goal, k)
        assert counts_term(share) == pytest.approx(goal, rel=1e-6)
        assert epsilon(d * (1 + 1e-9), k, k * share * (1 + 1e-9)) <= goal
        assert epsilon(d * 0.9, k, k * share) > goal
    assert epsilon(1e16, 3, 90_000) == pytest.approx(0.127, abs=0.001)


def test_orthogonal_noises_are_the_limit_of_all_products():
    """One draw with its products at d = 10^12, and the same with those of noises left out."""
    stream = gen(5)
    problem = compact_problem(10**12, 3, 1, 60, 6, stream)
    start = classes_net(problem.rows, problem.mixture, 1e-14, torch.float64)
    whole = class_dynamics_of(start, problem.mixture, problem.train)
    bare = replace(whole, features=whole.z.T.contiguous(), noises=None, span=None)
    ends = []
    for dynamics in (whole, bare):
        *_, (_, at, seen) = followed(dynamics, 1e-24, 8, 10.0, 0.2, 0.5)
        ends.append((at.lam, seen.margin))
    for one, other in zip(*ends, strict=True):
        assert (one - other).abs().max() < 1e-3 * one.abs().max()


def test_the_settings_apart_have_the_laws_of_their_products():
    bench, config = new_bench(), replace(TINY, n=4000)
    for net, h in (("two", 6), ("classes", 3)):
        problem, eta = eps.apart(config, bench, net, gen(3))
        unit = float(config.d) * eta**0.5 * 3**-2.5 / math.sqrt(config.d)
        assert problem.first.shape == (h, 4000)
        # a point's product with a weight: of its centre and of its noise, one variance each
        scaled = problem.first / unit
        within = [scaled[0][problem.z[:, j] > 0] for j in range(3)]
        assert all(float(row.std()) == pytest.approx(1.0, abs=0.06) for row in within)
        ends = (problem.noise_size.numpy() / config.d - 1) * math.sqrt(config.d / 2)
        assert stats.kstest(ends, stats.norm.cdf).pvalue > 0.01
    assert isinstance(problem, ClassDynamics)


def test_lambda_grows_as_its_laws_have_it_where_eps_is_small():
    bench = new_bench()
    for net, law in (("two", growth), ("classes", class_growth)):
        data = eps.course(replace(TINY, stride=0.1), bench, net, "apart", 0)
        wide = TINY.k if net == "two" else TINY.h
        end = float(data.t[-1]) * float(TINY.d) ** -2
        expected = law(float(TINY.d), TINY.k, TINY.n, wide, end)
        assert float(data.lam[-1]) == pytest.approx(expected, rel=0.02)


def test_draws_whose_neurons_never_all_begin_are_an_error(monkeypatch):
    monkeypatch.setattr(readings, "begun", lambda _: False)
    monkeypatch.setattr(appendix, "DRAWS", 3)
    with pytest.raises(RunError, match=r"in 3 draws not all of 6 neurons .* raise n=60"):
        appendix.born(NET, new_bench(), 0)
    monkeypatch.setattr(eps, "DRAWS", 2)
    with pytest.raises(RunError, match=r"in 2 draws not all of 3 neurons .* raise n=60"):
        eps.course(TINY, new_bench(), "classes", "exact", 0)


# ---- claims


@pytest.fixture(scope="module")
def found():
    return eps.run(TINY, new_bench(seed=1))


def judged(data, bench, config=TINY):
    return {claim.id: claim for claim in eps_claims.claims(data, config, bench)}


def test_eps_judges_what_could_fail_and_names_a_size_for_the_rest(found, bench):
    said = {claim.id: claim for claim in found.claims}
    # a vector of k^20 Gaussians is sqrt(k^20) long, so it is k^-2.5 over eps: 2.8 at k = 3
    assert said["L1.limit"].verdict == "differs"
    part = 3**-2.5 / epsilon(3.0**20, 3, 3.0**14)
    assert said["L1.limit"].measured == pytest.approx(part, rel=1e-3)
    shorter = found.data.assign(largest_start=0.1 * found.data.largest_start)
    assert judged(shorter, bench)["L1.limit"].verdict == "holds"
    # at n/k = 200 points eps is 1.2: foreign lambdas are below it, 63 eps is above any margin
    assert said["B7.8"].verdict == "holds"
    assert said["B7.3"].verdict == "vacuous"
    assert "points a cluster" in said["B7.3"].reason
    # in a cluster lambdas cancel: sigmas alone could break it, and they are lambda k/n
    assert {said[id].verdict for id in ("B7.2", "B7.5", "C10.2", "C10.5")} == {"vacuous"}
    assert "only sigmas can break it" in said["B7.2"].reason
    # the assumption wants k^7 points
    assert "n >= k^7" in said["B7.8"].regime
    assert "set aside" in said["B7.8"].regime
    assert (said["B10"].verdict, said["C10.8.sigma"].verdict) == ("vacuous", "vacuous")
    assert "could break it" in said["B10"].reason
    assert {said[id].verdict for id in ("B7.7", "C10.7", "B19", "C19")} == {"differs"}
    # what follows from a row in one line is named there
    named = {"B7.7": "B.9", "B14": "Corollary B.15", "C14": "Corollary C.15"}
    assert all(said[id].where.endswith(name) for id, name in named.items())
    assert {said[id].verdict for id in ("B7.7.late", "C10.7.late", "B23", "C23")} == {"holds"}
    eps.draw(found.data, TINY)


WORLDS = [
    ("B7.8", "two_apart_lam_other", 2.0),
    ("B7.7.late", "two_apart_own_active", 0.99),
    ("B23.lower", "two_apart_lam_least", -1.0),
    ("B21", "two_apart_pull_above", 3.0),
    ("B11", "two_exact_error_feature", 2.0),
    ("B12", "two_exact_error_noise", 2.0),
    ("B13", "two_exact_error_point", 3.0),
    ("B14", "two_exact_error_margin", 9.0),
    ("B25.L1", "two_exact_L1", 9.0),
    ("B25.L3", "two_exact_L3", 20.0),
    ("B26", "two_exact_fresh", 2.0),
    ("C10.8", "classes_apart_lam_other", 2.0),
    ("C10.1", "classes_apart_sigma_most", 1e6),
    ("C17", "classes_exact_foreign", 9.0),
    ("C18", "classes_exact_order_above", 9.0),
    ("C25.L4", "classes_exact_L4", 50.0),
]


@pytest.mark.parametrize(("id", "variable", "value"), WORLDS)
def test_a_world_beyond_the_bound_is_noticed(found, bench, id, variable, value):
    """One training of six leaves the bound: a counterexample."""
    before = judged(found.data, bench)[id]
    assert before.verdict == "holds", before.reason
    values = found.data[variable].copy(deep=True)
    values[{"seed": 2}] = value
    after = judged(found.data.assign({variable: values}), bench)[id]
    assert after.verdict == "differs"


def test_with_eps_hat_a_ratio_that_is_too_wide_is_noticed(found, bench):
    assert judged(found.data, bench)["B7.hat.6"].verdict == "as predicted"
    wide = found.data.two_exact_ratio * 1e3
    after = judged(found.data.assign(two_exact_ratio=wide), bench)["B7.hat.6"]
    assert after.verdict == "not as predicted"


def test_a_bound_is_vacuous_exactly_where_nothing_could_be_beyond_it(found, bench):
    of = eps_claims.size_of(found.data, TINY, "two", "apart")
    rows = {row.id: row for row in induction(of, constants("two", TINY.k))}
    judge = bench.claims("x", source="formula", bar="paper: it", regime="inside: it")
    for id in ("B7.2", "B7.3", "B7.5", "B7.8"):
        row = rows[id]
        (claim,) = bounds([row], judge, of)
        assert (claim.verdict == "vacuous") == (room_of(row) <= 1)
        (claim,) = bounds([row._replace(most=0.5 * row.bound)], judge, of)
        assert claim.verdict == "vacuous"
    # what was found is never beyond what there could be: the ceilings are ceilings
    whole = eps_claims.size_of(found.data, TINY, "two", "exact")
    for row in [*rows.values(), *products(whole, constants("two", TINY.k))]:
        if "19" not in row.id and "24" not in row.id:
            assert (row.found <= row.most * (1 + 1e-9) + 1e-3).all(), (
                row.id
            )  # and the start's weights


def test_what_a_vacuous_bound_would_take_is_what_takes_a_mean_sigma_to_it(found):
    """At that lambda the mean sigma lambda k/n, as a gap or as the exponent of a ratio, is the bound in eps."""
    of = eps_claims.size_of(found.data, TINY, "two", "apart")
    rows = {row.id: row for row in induction(of, constants("two", TINY.k))}
    share = of.n / of.k
    eps = 2 * math.log(share) / math.sqrt(share)  # what clusters and noises alone make of eps
    for id, reached in (("B7.2", lambda s: s), ("B7.5", math.expm1)):
        told = needed(rows[id], of, 0.5)
        lam = float(re.search(r"lambda near (\S+),", told)[1])
        assert reached(lam / share) == pytest.approx(rows[id].per_eps * eps, rel=0.1)
    # one sigma at its most by property 1, 2k/n ln(t + 1), in the place of the mean
    assert rows["B20.lower"].most == pytest.approx(np.log1p(of["t"]))


@pytest.fixture(scope="module")
def classes():
    return appendix.run(NET, new_bench(seed=1))


def class_judged(data, bench):
    return {claim.id: claim for claim in class_claims.claims(data, NET, bench)}


def test_appendix_c_finds_its_identities_and_the_slips(classes):
    said = {claim.id: claim.verdict for claim in classes.claims}
    assert {said[id] for id in ("C6", "C7", "C9.own", "C9.foreign", "C1", "C4")} == {"holds"}
    assert {said[id] for id in ("C9.printed", "C3.limit", "C5.inside")} == {"differs"}
    assert said["C10.3"] == "vacuous"
    assert {said[id] for id in ("C18.bare", "C18.bare.lower")} == {"as predicted"}
    appendix.draw(classes.data, NET)


CLASS_WORLDS = [
    ("C6", "C6", 1e-3),
    ("C7", "C7", 1e-3),
    ("C9.own", "own_negative", 0.1),
    ("C9.foreign", "foreign_positive", 0.1),
    ("C1", "C1", 1.5),
    ("C4", "C4", 1.2),
    ("C18.bare", "order_above", 30.0),
    ("C18.bare.lower", "order_below", 30.0),
]


@pytest.mark.parametrize(("id", "variable", "value"), CLASS_WORLDS)
def test_another_world_of_appendix_c_is_noticed(classes, bench, id, variable, value):
    good = class_judged(classes.data, bench)[id].verdict
    assert good in ("holds", "as predicted")
    values = classes.data[variable].copy(deep=True)
    values[{values.dims[0]: 1}] = value
    after = class_judged(classes.data.assign({variable: values}), bench)[id].verdict
    assert after in ("differs", "not as predicted")


def test_active_points_rarer_than_proposition_c3_promises_are_noticed(classes, bench):
    many = replace(NET, draws=3000)
    for reached, verdict in ((2500, "holds"), (3, "differs"), (26, "undecided")):
        data = classes.data.assign(reached_many=((), reached))
        said = {claim.id: claim for claim in class_claims.claims(data, many, bench)}
        assert said["C3"].verdict == verdict
        assert said["C3.limit"].reason.startswith("a derivation")
    assert class_judged(classes.data, bench)["C3"].verdict == "holds"


def test_neurons_that_nothing_moves_are_counted(bench, classes):
    data = classes.data
    shape = (400, data.sizes["neuron"])
    begin = np.random.default_rng(0).random(shape) < 1 / 21
    dims = ("start", "neuron")
    world = data.drop_vars(["own_points", "begin_off", "end_off", "active_1"]).assign(
        own_points=(dims, np.full(shape, 20.0)), begin_off=(dims, begin.astype(float)),
        end_off=(dims, begin.astype(float)), active_1=(dims, np.ones(shape)),
    )  # fmt: skip
    said = class_judged(world, bench)
    assert said["C5"].verdict == "undecided"  # a share of 1 is never sure
    assert (said["C5.begin"].verdict, said["C5.dead"].verdict) == ("as predicted", "differs")
    rare = world.assign(begin_off=(dims, np.zeros(shape)), end_off=(dims, np.zeros(shape)))
    said = class_judged(rare, bench)
    assert (said["C5.begin"].verdict, said["C5.dead"].verdict) == ("not as predicted", "undecided")


def test_draws_reach_what_proposition_c3_asks_as_often_as_the_uniform_law_says(bench):
    """h = 1, k = 2, 15 points a cluster: 2 of them active in all four pairs."""
    config = replace(NET, k=2, h=1, n=36, d=100, draws=4000)
    asked = math.ceil(36 / (3 * 8))
    reached = int(appendix.drawn(config, bench).reached) / 4000
    assert reached == pytest.approx((1 - asked / 19) ** 4, abs=0.03)
    shares = stats.norm.cdf(np.random.default_rng(0).standard_normal((4000, 3 * 100)))
    assert (shares >= 1 / (3 * 100 * 9)).all(1).mean() == pytest.approx(math.exp(-1 / 9), abs=0.02)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k1": 3}, "k1=3 with k=3"),
        ({"h": 0}, "h=0"),
        ({"n": 5}, "two points a cluster"),
        ({"d": 10**6}, "take d_exact"),
        ({"d_exact": 100}, "the span"),
        ({"late": 0.1}, "eta T = 1"),
        ({"stride": 2.0}, "a part of the elapsed time"),
        ({"repeats": 1}, "over trainings"),
    ],
)
def test_eps_refuses(change, words):
    with pytest.raises(CallError, match=words):
        replace(Small(), **change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"d": 500}, "the span"),
        ({"T_descent": 400}, "same steps"),
        ({"late": 1.0}, "a decade past"),
        ({"starts": 0}, "starts=0"),
        ({"inside": 1}, "both classes"),
    ],
)
def test_appendix_c_refuses(change, words):
    with pytest.raises(CallError, match=words):
        replace(Classes(), **change)
