"""The exhibits of frei2023 against brute force, exact laws and sampling in full dimension."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import kstest, norm

from benches import verdicts
from tacit.certify import radius
from tacit.data import sphere_centres, sqrt_d_mixture
from tacit.errors import CallError
from tacit.nets import average_net, frei_net, linear_rule
from tacit.papers._shared.assumptions import check_assumption, most_clusters
from tacit.papers.frei2023._shared.laws import log_bound, log_error, margin_law, radius_law
from tacit.papers.frei2023._shared.means import (
    least_dimension,
    small_noise,
    spanned_mixture,
    sphere_frame,
)
from tacit.papers.frei2023.assumption import exhibit as assumption
from tacit.papers.frei2023.assumption.settings import Reach
from tacit.papers.frei2023.lemma2_1 import exhibit as lemma2_1
from tacit.papers.frei2023.lemma2_1.settings import Separator
from tacit.papers.frei2023.nn1 import exhibit as nn1
from tacit.papers.frei2023.nn1.settings import Neighbour
from tacit.papers.frei2023.thm4_1 import exhibit as thm4_1
from tacit.papers.frei2023.thm4_1.settings import Robust


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("K", "least"), [(2, 549), (6, 1902), (32, 12_424)])
def test_least_dimension_by_scanning(K, least):
    assert least_dimension(K, small_noise) == least
    scanned = next(d for d in range(8, 20_000) if most_clusters(d, d**-0.5) >= K)
    assert scanned == least
    assert check_assumption(sqrt_d_mixture(least, K, 1, least**-0.5)).holds
    assert not check_assumption(sqrt_d_mixture(least - 1, K, 1, (least - 1) ** -0.5)).holds


def test_random_means_have_the_law_of_full_dimension():
    """Inner products of means made by Bartlett's decomposition, and in full dimension."""
    K, d = 3, 40
    short = np.array([gram(sphere_frame(K, d, seeded(i))) for i in range(800)])
    full = np.array([gram(sphere_centres(K, d, 1.0, seeded(10_000 + i))) for i in range(800)])
    for pair in range(3):
        assert kstest(short[:, pair], full[:, pair]).pvalue > 1e-3
    frame = sphere_frame(K, d, seeded(0))
    torch.testing.assert_close(frame.norm(dim=1), torch.ones(K, dtype=torch.float64))


def gram(rows):
    product = rows @ rows.T
    return [float(product[i, j]) for i, j in ((0, 1), (0, 2), (1, 2))]


def test_random_means_admit_what_the_inequality_says():
    d = 30_000_000
    K = assumption.random_most(d, seeded(1))
    cap = most_clusters(d, 1.0)
    frame = math.sqrt(d) * sphere_frame(cap, d, seeded(1))
    for k, holds in ((K, True), (K + 1, False)):
        overlap = (frame[:k] @ frame[:k].T).fill_diagonal_(0).abs().max()
        assert (k <= cap and most_clusters(d, 1.0, float(overlap)) >= k) == holds


def test_assumption_claims(bench):
    config = Reach(decades=12, per_decade=1, draws=4, D=(60, 2000), K=(2, 2), datasets=2)
    outcome = assumption.run(config, bench)
    assert set(verdicts(outcome).values()) == {"holds"}
    assert {c.id for c in outcome.claims if "inside Assumption" in c.statement} == {
        "P.d2000.k2.small"
    }
    assert assumption.draw(outcome.data, config).axes


def test_error_law_by_hand():
    mixture = spanned_mixture("orthogonal", 64, 16, 2.0, seeded(0))
    assert math.exp(log_error(mixture)) == pytest.approx(norm.sf(8 / (2 * 4)))
    assert math.exp(log_bound(100)) == pytest.approx(2 * 100 ** (1 - math.log(100) / 2))


def test_error_law_of_random_means_in_full_dimension():
    mixture = sqrt_d_mixture(30, 5, 2, 1.5)
    centres = sphere_centres(5, 30, math.sqrt(30), seeded(3))
    mixture = type(mixture)(centres, mixture.labels, mixture.weights, 1.5)
    points = mixture.sample(40_000, seeded(4))
    p = math.exp(log_error(mixture))
    wrong = float((linear_rule(mixture)(points.x) * points.y <= 0).double().mean())
    assert abs(wrong - p) < 4 * math.sqrt(p * (1 - p) / 40_000)


def test_lemma21_claims(bench):
    config = Separator(D=32, K=(4, 32), sigma=(1.0, 2.0), n=5000, inside=(549, 2000))
    outcome = lemma2_1.run(config, bench)
    assert set(verdicts(outcome).values()) == {"holds"}
    assert outcome.data.most_K.values.tolist() == [2, 6]
    assert lemma2_1.draw(outcome.data, config).axes


def test_a_wrong_law_is_noticed(bench):
    config = Separator(D=32, K=(32,), sigma=(1.0,), n=20_000, inside=(549,))
    data = lemma2_1.run(config, bench).data
    shifted = data.assign(log_law=data.log_law + math.log(1.1))
    assert lemma2_1.deviations(shifted, config.n).max() > 4


@pytest.mark.parametrize("d", [16, 50])
def test_small_dimension_laws_by_sampling(d):
    """In full dimension, where noise outside the span of the means changes nothing."""
    mixture = sqrt_d_mixture(d, 2, 1, 1.0, seeded(5))
    points = mixture.sample(60_000, seeded(6))
    net = frei_net(mixture)
    margin = float((net(points.x) * points.y < 1).double().mean())
    near = radius(net, points.x, points.y).upper <= math.sqrt(d) / 8
    for found, p in ((margin, margin_law(d)), (float(near.double().mean()), radius_law(d))):
        assert abs(found - p) < 4 * math.sqrt(p * (1 - p) / 60_000)


def test_thm41_claims(bench):
    config = Robust(
        D=(2000, 2000, 500),
        K=(6, 6, 4),
        sigma=(0.0, 1.0, 1.0),
        means=("orthogonal", "orthogonal", "sphere"),
        small=(25, 100),
        n=2000,
    )
    outcome = thm4_1.run(config, bench)
    assert set(verdicts(outcome).values()) == {"holds"}
    assert outcome.data.inside.values.tolist() == [True, False, False]
    lower, upper = outcome.data.quantiles.values[2]
    assert (lower <= upper + 1e-12).all()


def test_1nn_radius_tends_to_half_the_distance_of_the_means(bench):
    config = Neighbour(D=(100, 200, 400), K=4, clusters=(2, 8), at=300, most=100, tests=16)
    outcome = nn1.run(config, bench)
    assert verdicts(outcome)["order"] == "holds"
    radii = outcome.data.radius.sel(rule="1-NN").values / np.sqrt([[100], [200], [400]])
    assert np.abs(radii - math.sqrt(0.5)).max() < 0.06


def test_averages_without_noise_are_f_FA():
    mixture = sqrt_d_mixture(30, 4, 2, 0.0)
    train = mixture.sample(20, seeded(0), equal_counts=True)
    net, f_FA = nn1.averages(train), average_net(mixture)
    x = torch.randn(50, 30, generator=seeded(1), dtype=torch.float64)
    torch.testing.assert_close(net(x), f_FA(x))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Reach(decades=5), "decades=5"),
        (lambda: Reach(decades=20), "at most 14"),
        (lambda: Reach(D=(100,), K=(2, 3)), "pair up"),
        (lambda: Separator(K=(1,)), "K=1"),
        (lambda: Separator(K=(200,)), "K=200 > D=100"),
        (lambda: Separator(sigma=(-1.0,)), "sigma=-1.0"),
        (lambda: Separator(inside=(100,)), "inside=100"),
        (lambda: Robust(D=(2000,)), "as many of each"),
        (lambda: Robust(sigma=(-1.0,) * 6), "not negative"),
        (lambda: Neighbour(D=(100, 200)), "three dimensions"),
        (lambda: Neighbour(K=300), "K=300 > D=250"),
        (lambda: Neighbour(most=10), "most=10"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(CallError, match=words):
        make()
