import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, laplace, norm, uniform
from scipy.stats import t as student

from tacit.data import cluster_mixture, min2024_mixture, orthogonal_centres, sqrt_d_mixture
from tacit.data.clusters import apportion, unit_noise
from tacit.errors import CallError


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def test_samples_sit_around_the_centre_of_their_subclass():
    mixture = min2024_mixture(D=200, K=5, K1=2, alpha=0.3, generator=gen())
    points = mixture.sample(4000, gen(1))
    noise = (points.x - mixture.centres[points.z]) / mixture.sd
    assert mixture.sd == 0.3 / math.sqrt(200)
    assert kstest(noise[::7].flatten().numpy(), "norm").pvalue > 1e-3
    assert torch.equal(points.y, torch.where(points.z < 2, 1.0, -1.0).double())


def test_the_papers_scalings():
    assert sqrt_d_mixture(100, 4, 2, 0.5).centres.norm(dim=1).tolist() == [10.0] * 4
    assert sqrt_d_mixture(100, 4, 2, 0.5).sd == 0.5


def test_zero_noise_gives_the_centres():
    mixture = min2024_mixture(10, 3, 1, 0.0)
    points = mixture.sample(50, gen())
    assert torch.equal(points.x, mixture.centres[points.z])


def test_unbalanced_weights_and_equal_counts():
    weights = torch.tensor([1.0, 2.0, 5.0])
    mixture = cluster_mixture(orthogonal_centres(3, 3), 1, 0.1, weights)
    drawn = mixture.sample(40_000, gen()).z.bincount(minlength=3) / 40_000
    assert (drawn - mixture.weights).abs().max() < 0.01
    counts = mixture.sample(800, gen(), equal_counts=True).z.bincount(minlength=3)
    assert counts.tolist() == [100, 200, 500]


@given(n=st.integers(1, 200), weights=st.lists(st.floats(0.01, 10), min_size=1, max_size=6))
def test_apportioned_counts_are_within_one_of_their_share(n, weights):
    share = torch.tensor(weights, dtype=torch.float64)
    share = share / share.sum()
    counts = apportion(n, share).bincount(minlength=len(weights))
    assert counts.sum() == n
    assert ((counts - n * share).abs() <= 1 + 1e-9).all()


def test_streams_have_every_point_once():
    mixture = min2024_mixture(6, 3, 1, 0.2)
    sizes = [len(chunk.y) for chunk in mixture.stream(2500, gen(), chunk=1000)]
    assert sizes == [1000, 1000, 500]


def test_the_reduced_mixture_keeps_inner_products_and_noise():
    mixture = min2024_mixture(50, 4, 2, 0.7, gen(3))
    small = mixture.reduced()
    assert small.D == 4
    assert torch.allclose(small.centres @ small.centres.T, mixture.centres @ mixture.centres.T)
    # projections on a centre have the same law in 4 and in 50 dimensions
    far, near = (m.sample(3000, gen(8)).x @ m.centres[0] for m in (mixture, small))
    assert kstest(far.numpy(), near.numpy()).pvalue > 1e-3


@pytest.mark.parametrize(
    ("shape", "law"),
    [("gaussian", norm()), ("uniform", uniform(-(3**0.5), 2 * 3**0.5)),
     ("laplace", laplace(scale=0.5**0.5)), ("student", student(4, scale=0.5**0.5))],
)  # fmt: skip
def test_noise_of_every_shape_has_its_law_and_variance_one(shape, law):
    drawn = unit_noise(shape, 200, 250, gen(2))
    assert kstest(drawn.flatten().numpy(), law.cdf).pvalue > 1e-3
    assert law.var() == pytest.approx(1)
    mixture = replace(min2024_mixture(50, 4, 2, 0.7, gen(3)), noise=shape)
    points = mixture.sample(500, gen(4))
    rest = (points.x - mixture.centres[points.z]) / mixture.sd
    assert kstest(rest.flatten().numpy(), law.cdf).pvalue > 1e-3


def test_only_gaussian_noise_can_be_reduced():
    with pytest.raises(CallError, match="noise=laplace"):
        replace(min2024_mixture(50, 4, 2, 0.7), noise="laplace").reduced()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"K1": 5}, "K1=5 with K=3"),
        ({"K1": 0}, "K1=0 with K=3"),
        ({"K1": 3}, "no negative class"),
        ({"sd": -0.1}, "noise sd -0.1"),
        ({"sd": math.nan}, "noise sd nan"),
        ({"weights": torch.tensor([1.0, 0.0, 1.0])}, "3 positive numbers"),
        ({"centres": torch.full((3, 4), math.nan).double()}, "NaN"),
    ],
)
def test_impossible_mixtures_are_refused(settings, words):
    given = {"centres": orthogonal_centres(3, 4), "K1": 1, "sd": 0.1} | settings
    with pytest.raises(CallError, match=words):
        cluster_mixture(**given)


def test_one_class_is_possible_where_it_is_meant():
    assert cluster_mixture(orthogonal_centres(2, 2), 2, 0.0, one_class=True).K1 == 2


def test_points_in_float32_have_the_mixtures_law():
    mixture = min2024_mixture(50, 4, 2, 0.5, torch.Generator().manual_seed(1))
    drawn = mixture.sample(40_000, torch.Generator().manual_seed(2), dtype=torch.float32)
    x, y = drawn.x, drawn.y
    assert x.dtype == y.dtype == torch.float32
    z = (x.double() @ mixture.centres.T).argmax(1)
    assert (z == drawn.z).all()
    assert (y.double() == mixture.labels[z]).all()
    noise = x.double() - mixture.centres[z]
    assert float(noise.std()) == pytest.approx(0.5 / math.sqrt(50), rel=0.01)
    counts = torch.bincount(z, minlength=4).double()
    assert float(((counts - 1e4) ** 2 / 1e4).sum()) < 16.3  # chi^2 with 3 degrees, p = .001
