"""Spherical k-means against planted clusters and scikit-learn's silhouette."""

from __future__ import annotations

import pytest
import torch
from sklearn.metrics import adjusted_rand_score, silhouette_score

from tacit.auditing.subclasses import find_subclasses, silhouette, spherical_kmeans, unit


def planted(
    k: int, each: int, D: int, noise: float, seed: int
) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    centres = torch.linalg.qr(torch.randn(D, k, generator=generator, dtype=torch.float64))[0].T
    owner = torch.arange(k).repeat_interleave(each)
    return centres[owner] + noise / D**0.5 * torch.randn(
        k * each, D, generator=generator, dtype=torch.float64
    ), owner


@pytest.mark.parametrize("seed", range(5))
def test_planted_clusters_and_their_number_are_found(seed: int) -> None:
    a, of_a = planted(6, 40, 100, 0.5, seed)
    b, of_b = planted(3, 40, 100, 0.5, seed + 100)
    x, y = torch.cat([a, b]), torch.tensor([1.0] * len(a) + [-1.0] * len(b))
    found = find_subclasses(x, y, torch.Generator().manual_seed(0))
    assert adjusted_rand_score(of_a, found[: len(a)]) == 1.0
    assert adjusted_rand_score(of_b, found[len(a) :]) == 1.0


def test_a_class_without_clusters_is_left_whole() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(300, 100, generator=generator, dtype=torch.float64)
    found = find_subclasses(x, torch.ones(300), generator)
    assert found.unique().tolist() == [0]


@pytest.mark.parametrize("seed", range(5))
def test_the_silhouette_is_that_of_scikit_learn(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = unit(torch.randn(60, 5, generator=generator, dtype=torch.float64))
    owner = (x @ spherical_kmeans(x, 4, generator).T).argmax(1)
    expected = silhouette_score(x.numpy(), owner.numpy(), metric="cosine")
    assert silhouette(x, owner) == pytest.approx(expected, abs=1e-10)


def test_equal_points_and_zero_rows_are_borne() -> None:
    x = torch.zeros(20, 3, dtype=torch.float64)
    assert find_subclasses(x, torch.ones(20), torch.Generator()).tolist() == [0] * 20
    x[:, 0] = 1
    assert find_subclasses(x, torch.ones(20), torch.Generator()).tolist() == [0] * 20


def test_a_class_of_one_point_is_one_subclass() -> None:
    x = torch.eye(2, dtype=torch.float64)
    assert find_subclasses(x, torch.tensor([0, 1]), torch.Generator()).tolist() == [0, 0]
