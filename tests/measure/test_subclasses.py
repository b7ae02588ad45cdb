"""Spherical k-means against planted clusters and scikit-learn's silhouette."""

from __future__ import annotations

import pytest
import torch
from sklearn.metrics import adjusted_rand_score, silhouette_score

from tacit.base.linalg import unit_rows
from tacit.errors import CallError
from tacit.measure.subclasses import (
    discover,
    find_subclasses,
    silhouette,
    spherical_kmeans,
)


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
    x = unit_rows(torch.randn(60, 5, generator=generator, dtype=torch.float64))[0]
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


@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0])
def test_the_silhouette_of_orthogonal_clusters_is_one_over_one_plus_the_noise(noise: float) -> None:
    x, owner = planted(5, 60, 2000, noise, 7)
    assert silhouette(unit_rows(x)[0], owner) == pytest.approx(1 / (1 + noise**2), rel=0.05)
    merged, split = owner // 2, owner * 2 + torch.arange(len(owner)) % 2
    assert silhouette(unit_rows(x)[0], merged) < 0.75 * silhouette(unit_rows(x)[0], owner)
    assert abs(silhouette(unit_rows(x)[0], split)) < 0.02


@pytest.mark.parametrize(("noise", "number"), [(2.5, 5), (3.5, 1)])
def test_the_count_is_chosen_up_to_the_noise_at_which_the_silhouette_is_too_small(
    noise: float, number: int
) -> None:
    x, owner = planted(5, 60, 2000, noise, 11)
    found = discover(x, torch.ones(len(x)), torch.Generator().manual_seed(1))
    assert len(found.labels) == number
    assert adjusted_rand_score(owner, found.z) == (1.0 if number == 5 else 0.0)


def test_a_given_count_merges_evenly_or_splits() -> None:
    x, owner = planted(6, 30, 500, 0.5, 3)
    y = torch.ones(len(x))
    three = discover(x, y, torch.Generator().manual_seed(2), 3)
    held = torch.zeros(3, 6).index_put_((three.z, owner), torch.ones(len(x)), accumulate=True)
    assert ((held > 0).sum(1) == 2).all()
    assert ((held == 0) | (held == 30)).all()
    twelve = discover(x, y, torch.Generator().manual_seed(2), 12)
    assert len(twelve.labels) > 6
    assert (twelve.z[:, None] == twelve.z).logical_and(owner[:, None] != owner).sum() == 0


def test_subclasses_are_numbered_through_the_classes_and_know_their_label() -> None:
    a, of_a = planted(3, 20, 100, 0.3, 1)
    b, of_b = planted(2, 20, 100, 0.3, 2)
    x, y = torch.cat([a, b]), torch.tensor([1.0] * len(a) + [-1.0] * len(b))
    found = discover(x, y, torch.Generator().manual_seed(0))
    assert found.z.unique().tolist() == [0, 1, 2, 3, 4]
    assert torch.equal(found.labels[found.z], y)
    assert adjusted_rand_score(torch.cat([of_a, of_b + 3]), found.z) == 1.0


def test_the_order_of_the_points_does_not_matter_where_clusters_are_clear() -> None:
    x, _ = planted(5, 30, 200, 0.5, 4)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(9))
    first = discover(x, torch.ones(len(x)), torch.Generator().manual_seed(0))
    again = discover(x[order], torch.ones(len(x)), torch.Generator().manual_seed(0))
    assert adjusted_rand_score(first.z[order], again.z) == 1.0


def test_coordinates_of_the_span_find_what_all_coordinates_do() -> None:
    x, _ = planted(4, 20, 60, 0.5, 5)
    wide = torch.nn.functional.pad(x, (0, 300))  # more coordinates than points
    some, all_of = (
        discover(part, torch.ones(80), torch.Generator().manual_seed(0)) for part in (x, wide)
    )
    assert adjusted_rand_score(some.z, all_of.z) == 1.0


def test_a_count_below_one_is_refused() -> None:
    with pytest.raises(CallError, match="count=0"):
        discover(torch.eye(4), torch.ones(4), torch.Generator(), 0)


def test_points_that_are_no_numbers_are_refused() -> None:
    x = torch.tensor([[1.0, 0], [torch.nan, 1]])
    with pytest.raises(CallError, match="NaN"):
        discover(x, torch.ones(2), torch.Generator().manual_seed(0))
