import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import equiangular_centres, orthogonal_centres, span_axes, sphere_centres
from tacit.errors import CallError


@given(
    K=st.integers(1, 8), extra=st.integers(0, 5), norm=st.floats(0.1, 50), seed=st.integers(0, 99)
)
def test_orthogonal_centres_have_a_diagonal_gram_matrix(K, extra, norm, seed):
    for generator in (None, torch.Generator().manual_seed(seed)):
        mu = orthogonal_centres(K, K + extra, norm, generator)
        assert torch.allclose(mu @ mu.T, norm**2 * torch.eye(K, dtype=torch.float64), atol=1e-9)


@given(K=st.integers(2, 8), share=st.floats(0, 1), seed=st.integers(0, 99))
def test_equiangular_centres_have_one_cosine(K, share, seed):
    cosine = -1 / (K - 1) + share * (1 + 1 / (K - 1))
    mu = equiangular_centres(K, K + 2, cosine, 3.0, torch.Generator().manual_seed(seed))
    gram = mu @ mu.T / 9
    expected = torch.full((K, K), cosine, dtype=torch.float64).fill_diagonal_(1.0)
    assert torch.allclose(gram, expected, atol=1e-9)


def test_simplex_centres_sum_to_zero():
    mu = equiangular_centres(5, 9, -0.25, 7.0)
    assert mu.sum(0).abs().max() < 1e-12
    assert span_axes(mu).shape == (9, 4)


def test_random_frames_are_uniform_in_sign_and_place():
    firsts = torch.stack(
        [orthogonal_centres(2, 3, 1.0, torch.Generator().manual_seed(s))[0] for s in range(400)]
    )
    # uniform on the sphere in 3-D: mean 0, each coordinate of variance 1/3
    assert firsts.mean(0).abs().max() < 4 * math.sqrt(1 / 3 / 400)
    assert (firsts.square().mean(0) - 1 / 3).abs().max() < 0.08


def test_sphere_centres_lie_on_the_sphere():
    mu = sphere_centres(6, 40, 5.0, torch.Generator().manual_seed(0))
    assert torch.allclose(mu.norm(dim=1), torch.full((6,), 5.0, dtype=torch.float64))


def test_more_sphere_centres_than_dimensions_are_uniform():
    mu = sphere_centres(4000, 3, 1.0, torch.Generator().manual_seed(0))
    assert mu.mean(0).abs().max() < 4 * math.sqrt(1 / 3 / 4000)
    assert (mu.T @ mu / 4000 - torch.eye(3, dtype=torch.float64) / 3).abs().max() < 0.02


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: orthogonal_centres(5, 4), "K=5 > D=4"),
        (lambda: orthogonal_centres(0, 4), "K=0"),
        (lambda: sphere_centres(0, 4, 1.0, torch.Generator()), "K=0"),
        (lambda: equiangular_centres(4, 4, -0.5), "-0.333333 to 1"),
        (lambda: equiangular_centres(4, 4, 1.1), "cosine=1.1"),
    ],
)
def test_impossible_arrangements_are_refused(call, words):
    with pytest.raises(CallError, match=words):
        call()
