"""Randomized smoothing, where the law of the count and the smoothed radius are known."""

import numpy as np
import pytest
import torch
from scipy.stats import beta, binom, norm

from tacit.certify.smoothing import smoothing_radius
from tacit.errors import CallError

F64 = torch.float64


def plane(x):
    """Distance to the plane, signed: the smoothed classifier of its sign has exactly this radius."""
    return x.flatten(1)[:, 0]


def points_at(distance, n=1, D=4):
    x = torch.zeros(n, D, dtype=F64)
    x[:, 0] = distance
    return x, torch.ones(n, dtype=F64)


def run(model, x, y, seed=0, **given):
    options = {"sigma": 0.5, "generator": torch.Generator().manual_seed(seed)} | given
    return smoothing_radius(model, x, y, **options)


def test_of_a_linear_classifier_is_close_to_the_distance_from_below():
    for distance in (0.2, 0.5, 0.9):
        found = run(plane, *points_at(distance), n=200_000, batch=50_000)
        assert distance - 0.02 < float(found.radius) <= distance
        assert int(found.predicted) == 1


def test_too_long_as_often_as_the_binomial_law_says_and_no_more_than_alpha():
    distance, sigma, n, alpha, repeats = 0.4, 0.5, 100, 0.1, 1000
    found = run(plane, *points_at(distance, repeats), sigma=sigma, n=n, n0=20, alpha=alpha)
    too_long = int((found.radius > distance).sum())
    p = norm.cdf(distance / sigma)
    counts = np.arange(1, n + 1)
    exceeds = beta.ppf(alpha, counts, n - counts + 1) > p
    expected = binom.pmf(counts[exceeds], n, p).sum()
    assert expected <= alpha
    low, high = binom.ppf([1e-4, 1 - 1e-4], repeats, expected)
    assert low <= too_long <= high


def test_each_radius_is_that_of_a_count_with_the_binomial_law():
    distance, sigma, n, alpha, repeats = 0.3, 0.5, 200, 0.05, 600
    found = run(plane, *points_at(distance, repeats), sigma=sigma, n=n, alpha=alpha)
    possible = sigma * norm.ppf(beta.ppf(alpha, np.arange(1, n + 1), n - np.arange(n)))
    counts = 1 + np.abs(found.radius.numpy()[:, None] - possible).argmin(1)
    certified = found.radius.numpy() > 0
    assert np.allclose(found.radius.numpy()[certified], possible[counts[certified] - 1], atol=1e-12)
    p = norm.cdf(distance / sigma)
    mean, sd = n * p, np.sqrt(n * p * (1 - p) / repeats)
    assert certified.all()
    assert abs(counts.mean() - mean) < 4 * sd


@pytest.mark.parametrize("one_output", [True, False])
def test_of_a_constant_classifier_depends_on_the_number_of_draws_alone(one_output):
    def model(x):
        return x.new_ones(len(x)) if one_output else x.new_tensor([0.0, 2.0, 1.0]).repeat(len(x), 1)

    found = run(model, *points_at(0.0, 2), sigma=0.25, n=500, alpha=0.01)
    assert found.predicted.tolist() == [1, 1]
    assert torch.allclose(found.radius, torch.tensor(0.25 * norm.ppf(0.01 ** (1 / 500)), dtype=F64))


def test_abstains_near_the_plane():
    found = run(plane, *points_at(1e-4, 20), n=1000)
    assert (found.predicted == -1).sum() >= 19
    assert (found.radius[found.predicted == -1] == 0).all()


def test_abstains_where_ties_win():
    found = run(lambda x: torch.zeros(len(x), 2), *points_at(1.0), n=100)
    assert found.predicted.tolist() == [-1]
    found = run(lambda x: torch.zeros(len(x)), *points_at(1.0), n=100)
    assert found.predicted.tolist() == [-1]


def test_another_class_than_the_label_has_radius_0():
    x, y = points_at(0.8)
    found = run(plane, x, -y, n=1000)
    assert (int(found.predicted), float(found.radius)) == (1, 0.0)
    logits = lambda x: torch.stack([plane(x), -plane(x)], 1)  # noqa: E731
    assert float(run(logits, x, torch.tensor([1]), n=1000).radius) == 0
    assert float(run(logits, x, torch.tensor([0]), n=1000).radius) > 0


def test_one_output_and_two_logits_agree_on_the_same_draws():
    x, y = points_at(0.3, 5)
    one = run(plane, x, y, n=500)
    two = run(lambda x: torch.stack([-plane(x), plane(x)], 1), x, y.long(), n=500)
    assert torch.equal(one.radius, two.radius)
    assert torch.equal(one.predicted, two.predicted)


def test_repeats_with_the_generator_and_not_without():
    x, y = points_at(0.3, 5)
    x = x.reshape(5, 2, 2).float()
    a, b, c = (run(plane, x, y, seed=seed, n=500, batch=200) for seed in (1, 1, 2))
    assert torch.equal(a.radius, b.radius)
    assert not torch.equal(a.radius, c.radius)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sigma": 0.0}, "sigma"),
        ({"n": 0}, "n=0"),
        ({"alpha": 1.0}, "alpha"),
        ({"y": torch.zeros(1)}, "-1 or"),
        ({"y": torch.ones(3)}, "one label"),
        ({"x": torch.full((1, 4), torch.nan)}, "NaN"),
        ({"model": torch.nn.Linear(4, 1)}, "eval"),
        ({"model": lambda x: x * torch.nan}, "NaN"),
        ({"model": lambda x: x.unsqueeze(2)}, "shape"),
        ({"model": lambda x: x[:, :3], "y": torch.tensor([3])}, r"0\.\.2"),
    ],
)
def test_refuses_a_wrong_call_in_one_line(given, says):
    x, y = points_at(0.5)
    call = {"model": plane, "x": x, "y": y} | given
    if given.get("model") is not None and "y" not in given:
        call["y"] = torch.ones(1)
    with pytest.raises(CallError, match=says):
        run(**call)
