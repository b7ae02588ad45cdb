"""Statements of frei2023 that cost nothing: Example 1, Lemmas A.9, D.5, D.9, the linear model, who is right.

Each number against brute force or sampling, each claim in a made-up world in which its statement is false.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from benches import verdicts
from tacit.certify import radius
from tacit.nets import linear_rule
from tacit.papers._shared.assumptions import check_assumption, most_clusters, noise_term
from tacit.papers.frei2023._shared.laws import log_above
from tacit.papers.frei2023._shared.means import (
    largest,
    largest_overlap,
    leaning_mixture,
    small_noise,
)
from tacit.papers.frei2023._shared.trained import PROOF_CONSTANT, eta_in_numbers, proof_eta
from tacit.papers.frei2023.assumption import exhibit as assumption
from tacit.papers.frei2023.assumption.edges import LEMMAS, edge, edges, used
from tacit.papers.frei2023.lemma2_1 import exhibit as lemma2_1
from tacit.papers.frei2023.lemma2_1.settings import Separator
from tacit.papers.frei2023.nn1 import exhibit as nn1
from tacit.papers.frei2023.nn1.settings import Neighbour


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


# ---- Example 1 and the lemmas that are arithmetic


def test_the_largest_admitted_overlap_is_that_of_the_inequality_solved():
    for d, K, sigma in ((2000.0, 3, 1e-3), (1e6, 20, 0.05), (1e12, 400, 1.0)):
        delta = noise_term(d, sigma)
        solved = (d - delta + 1) / (10 * K) - delta - 1
        assert largest_overlap(d, K, sigma) == pytest.approx(solved, rel=1e-9)
    assert largest(lambda x: x * x <= 2, 10.0) == pytest.approx(math.sqrt(2))
    assert largest(lambda x: True, 10.0) == 10.0


@pytest.mark.parametrize("lean", [30.0, -20.0])
def test_leaning_means_have_the_products_that_are_said(lean):
    mixture = leaning_mixture(400, 5, 0.1, lean)
    signed = mixture.labels.unsqueeze(1) * mixture.centres
    expected = torch.full((5, 5), lean, dtype=torch.float64).fill_diagonal_(400.0)
    torch.testing.assert_close(signed @ signed.T, expected)
    assert mixture.K1 == 2


def test_every_point_of_the_edge_is_admitted_and_a_little_more_is_not():
    for d in (100.0, 3000.0, 1e8):
        for K, sigma, p in edge(d):
            assert most_clusters(d, sigma, p) >= K >= 2
            assert 0 < sigma <= 1
        assert {p > 0 for *_, p in edge(d)} == {True, False}
        noise = max(sigma for _, sigma, _ in edge(d))
        assert noise == 1 or most_clusters(d, noise * (1 + 1e-6)) < 2


def test_the_lemmas_by_hand_and_no_random_admitted_setting_is_beyond_the_edge():
    d, K, sigma, p = 3000.0, 4, 0.01, 5.0
    delta = 0.04 * math.sqrt(d) * math.log(d)
    mixture = leaning_mixture(3000, 4, 0.01, 5.0)
    length = proof_eta(mixture, 3000) * float(linear_rule(mixture).u.norm())
    by_hand = [21 * delta / d, 4 * (5 + delta) / (d - delta), length / math.sqrt(d / (0.25 * 4))]
    assert used(d, K, sigma, p) == pytest.approx(by_hand)
    at = {d: edges(np.array([d])).edge.values[0] for d in (200.0, 3000.0)}
    stream = np.random.default_rng(0)
    tried = 0
    for _ in range(20_000):
        d = (200.0, 3000.0)[stream.integers(2)]
        K, sigma, p = (
            int(stream.integers(2, 12)),
            10 ** stream.uniform(-5, 0),
            stream.uniform(0, d / 20),
        )
        if most_clusters(d, sigma, p) >= K:
            tried += 1
            assert (np.array(used(d, K, sigma, p)) <= at[d] * (1 + 1e-9)).all()
    assert tried > 500


def test_lemma_a9_is_sharp_and_the_chain_of_d9_is_not_far_from_its_edge():
    found = edges(np.geomspace(100, 1e6, 5)).edge.max("d").values
    assert 1 - 1e-4 < found[0] < 1  # (d - 19)/d at k = 2
    assert 0.9 * PROOF_CONSTANT < found[2] < PROOF_CONSTANT
    assert math.isnan(eta_in_numbers(100.0, 10, 5.0, 5.0, 5))


def made_up(clusters, overlap, used_up):
    """Example 1's formulas with these powers of d, and the lemmas used up to this share of their bars."""
    d, far = np.array([1e2, 1e6]), assumption.FAR
    bars = np.array([1.0, 1.0, PROOF_CONSTANT])
    cosine = np.broadcast_to(far ** (overlap - 1), (2, 2, len(far)))
    return xr.Dataset(
        {
            "far_clusters": ("far", far**clusters / np.log(far)),
            "far_cosine": (("noise", "few", "far"), cosine),
            "edge": (("d", "lemma"), np.stack([0.5 * bars, used_up * bars])),
        },
        coords={"d": d, "far": far, "lemma": list(LEMMAS)},
    )


def test_example_1_and_the_arithmetic_lemmas_notice_worlds_in_which_they_are_false(bench):
    judge = bench.claims("x", source="order", bar="ours: x", regime="inside: x")

    def found(*world):
        data = made_up(*world)
        return verdicts([*assumption.far_claims(data, judge), *assumption.edge_claims(data, judge)])

    names = ("order.orthogonal", "order.few", "lemma.A.9", "lemma.D.5", "lemma.D.9")
    assert found(1.0, 1.0, 0.99) == dict.fromkeys(names, "holds")
    for power in (0.5, 0.95, 1.05):
        assert found(power, power, 1.01) == dict.fromkeys(names, "differs")


def test_one_noise_of_few_clusters_is_enough(bench):
    judge = bench.claims("x", source="order", bar="ours: x", regime="inside: x")
    data = made_up(1.0, 1.0, 0.5)
    data["far_cosine"] = data.far_cosine.copy()
    data.far_cosine[1, 0] *= data.far**-0.2
    assert verdicts(list(assumption.far_claims(data, judge)))["order.few"] == "differs"


def test_example_1_as_it_is(bench):
    judge = bench.claims("x", source="order", bar="ours: x", regime="inside: x")
    data = xr.merge([assumption.far(), edges(np.array([1e2, 1e4]))])
    assert set(verdicts(list(assumption.far_claims(data, judge))).values()) == {"holds"}
    # the inequality, solved by bisection, at one of the places
    d = float(data.far[3])
    assert float(data.far_cosine[1, 1, 3]) == pytest.approx(largest_overlap(d, 4, 1.0) / d)


# ---- Section 4.1.2


@pytest.mark.parametrize("lean", [0.0, 3.0, -3.0])
def test_the_laws_of_the_linear_model_by_sampling(lean):
    """Both tails of the same Gaussians; the distance to the boundary is the certified radius."""
    mixture = leaning_mixture(30, 4, 1.0, lean)
    rule = linear_rule(mixture)
    points = mixture.sample(40_000, seeded(4))
    level = float(mixture.labels[0] * mixture.centres[0] @ rule.u) + 8.0
    p = math.exp(log_above(mixture, level))
    share = float((points.y * rule(points.x) > level).double().mean())
    assert 0.05 < p < 0.5
    assert abs(share - p) < 4 * math.sqrt(p * (1 - p) / 40_000)
    some = points.y * rule(points.x) > 0
    exact = radius(rule, points.x[some][:50], points.y[some][:50]).upper
    length = (points.y * rule(points.x))[some][:50] / rule.u.norm()
    torch.testing.assert_close(exact, length)


def test_means_lean_as_far_as_the_assumption_admits_and_not_further():
    for mixture in lemma2_1.leaning(2000, 6, small_noise(2000)):
        assert check_assumption(mixture, 2000).holds
        more = leaning_mixture(
            2000, mixture.K, mixture.sd, 1.001 * check_assumption(mixture, 2000).overlap
        )
        assert not check_assumption(more, 2000).holds
    u = {m.K: [] for m in lemma2_1.leaning(2000, 6, small_noise(2000))}
    for m in lemma2_1.leaning(2000, 6, small_noise(2000)):
        u[m.K].append(float(linear_rule(m).u.norm()) / math.sqrt(2000 * m.K))
    assert all(math.sqrt(0.9) < least < 1 < most < math.sqrt(1.1) for most, least in u.values())


def test_a_margin_or_a_length_that_grows_with_k_is_noticed(bench):
    """The bars in a world where y w'x is of order k, or where ||w|| is that of one mean."""
    judge = bench.claims("x", source="order", bar="ours: x", regime="inside: x")
    config = Separator()
    d = list(config.inside)
    data = xr.Dataset(
        {"bound": ("d", [-16.0] * 4), "margin": ("d", [-900.0] * 4), "length": ("d", [-900.0] * 4),
         "gradient": ("d", [0.99] * 4)}, coords={"d": d},
    )  # fmt: skip
    names = ("margin", "length", "gradient")
    assert verdicts(list(lemma2_1.linear_claims(data, config, judge))) == dict.fromkeys(
        names, "holds"
    )
    for name, value in (("margin", -3.0), ("length", -3.0), ("gradient", 0.9)):
        wrong = data.copy(deep=True)
        wrong[name][2] = value
        found = verdicts(list(lemma2_1.linear_claims(wrong, config, judge)))
        assert found == dict.fromkeys(names, "holds") | {name: "differs"}


def test_one_mixture_among_good_ones_decides():
    """Means that all but coincide: y w'x is near k; means that all but cancel: ||w|| is small."""
    good = leaning_mixture(2000, 6, small_noise(2000), 0.0)
    close, apart = (leaning_mixture(2000, 6, small_noise(2000), lean) for lean in (1900.0, -390.0))
    margin, length, least = lemma2_1.section412([good], 2000)
    assert max(margin, length) < -1000
    assert least == pytest.approx(1)
    margin, length, least = lemma2_1.section412([good, close, apart], 2000)
    assert min(margin, length) > -1e-9
    assert least < 0.5


# ---- the nearest neighbour and the net


def test_both_rules_are_right_and_neither_withstands_the_distance_of_two_inputs(bench):
    config = replace(Neighbour(), repeats=4)
    judge = bench.claims("x", source="order", bar="ours: x", regime="inside: x")
    shape, dims = (3, 2, 4), ("d", "rule", "seed")
    d = np.array(config.D)[:, None, None]
    wobble = 1 + 1e-3 * np.random.default_rng(0).standard_normal(shape)
    data = xr.Dataset(
        {"right": (dims, np.full(shape, 999)), "longest": (dims, 0.72 * np.sqrt(d) * wobble)},
        coords={"d": list(config.D), "rule": list(nn1.RULES)},
    )
    names = ("right.1-NN", "right.net", "enough")
    assert verdicts(list(nn1.word_claims(data, config, judge))) == dict.fromkeys(names, "holds")
    for rule in nn1.RULES:
        wrong = data.copy(deep=True)
        wrong.right.loc[{"rule": rule, "d": 2800, "seed": 1}] = 940
        found = verdicts(list(nn1.word_claims(wrong, config, judge)))
        assert found == dict.fromkeys(names, "holds") | {f"right.{rule}": "differs"}
        wrong = data.copy(deep=True)
        wrong.longest.loc[{"rule": rule, "d": 4000}] *= 2.5
        found = verdicts(list(nn1.word_claims(wrong, config, judge)))
        assert found == dict.fromkeys(names, "holds") | {"enough": "differs"}


def test_fresh_points_are_those_of_the_rules(bench):
    """All of 50 are right at a small noise, and the farthest point is no nearer than the median one."""
    config = Neighbour(tests=3, fresh=50, repeats=1)
    found = nn1.one_setting(100, 2, config, bench)
    assert found.right.values.tolist() == [[50], [50]]
    assert (found.longest >= found.radius).all()
    assert (found.longest < math.sqrt(100)).all()
