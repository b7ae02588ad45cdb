"""Assumption 2.2 and P1..P6 of frei2023 against counts by hand and loops over pairs."""

from __future__ import annotations

import math

import pytest
import torch

from tacit.data import (
    Samples,
    cluster_mixture,
    equiangular_centres,
    orthogonal_centres,
    sqrt_d_mixture,
)
from tacit.papers._shared.assumptions import (
    assumption_line,
    check_assumption,
    missing_line,
    most_clusters,
    nice_probability,
    sample_properties,
)


def mixture(D: int, K: int, sigma: float, cosine: float = 0.0):
    return cluster_mixture(equiangular_centres(K, D, cosine, math.sqrt(D)), K // 2, sigma)


def test_two_sides_by_hand() -> None:
    # d = 2000, K = 6, sigma = 1/sqrt(d): Delta = 4 ln 2000 = 30.4036
    found = check_assumption(sqrt_d_mixture(2000, 6, 3, 1 / math.sqrt(2000)))
    assert found.left == pytest.approx(6 * (30.40361 + 1), rel=1e-6)
    assert found.right == pytest.approx((2000 - 30.40361 + 1) / 10, rel=1e-6)
    assert found.overlap == pytest.approx(0, abs=1e-9)
    assert found.holds


def test_one_cluster_more_is_too_many() -> None:
    sigma = 1 / math.sqrt(2000)
    assert most_clusters(2000, sigma) == 6
    assert not check_assumption(sqrt_d_mixture(2000, 7, 3, sigma)).separated


def test_overlap_counts_in_absolute_value() -> None:
    K, D = 4, 400
    found = check_assumption(mixture(D, K, 0.01, -1 / 3))
    assert found.overlap == pytest.approx(D / 3)
    assert found.cosine == pytest.approx(1 / 3)
    assert not found.separated


def test_each_condition_alone() -> None:
    small = 1 / math.sqrt(5000)
    assert not check_assumption(sqrt_d_mixture(5000, 2, 1, 1.01)).noise
    assert not check_assumption(sqrt_d_mixture(5000, 2, 1, 0.0)).noise
    short = cluster_mixture(orthogonal_centres(2, 5000, 70.0), 1, small)
    assert not check_assumption(short).norms
    assert not check_assumption(short).holds


def test_dimension_of_a_reduced_mixture_is_given() -> None:
    sigma = 1 / math.sqrt(2000)
    full = sqrt_d_mixture(2000, 6, 3, sigma)
    reduced = check_assumption(full.reduced(), 2000)
    whole = check_assumption(full)
    assert reduced.left == pytest.approx(whole.left)
    assert reduced.holds == whole.holds


def by_loops(found, samples: Samples) -> dict[str, bool]:
    """P1..P6 as the paper writes them, pair by pair."""
    d, sigma, n = found.D, found.sd, len(samples.y)
    xi = samples.x - found.centres[samples.z]
    log, root = math.log(d), math.sqrt(d)
    delta = 4 * sigma * root * log
    p = max(
        abs(float(found.centres[a] @ found.centres[b]))
        for a in range(found.K)
        for b in range(found.K)
        if a != b
    )
    pairs = [(i, j) for i in range(n) for j in range(n)]
    apart = [(i, j) for i, j in pairs if samples.z[i] != samples.z[j]]
    together = [(i, j) for i, j in pairs if samples.z[i] == samples.z[j]]
    dot = samples.x @ samples.x.T
    return {
        "P1": all(xi[i].norm() <= sigma * math.sqrt(2 * d) for i in range(n)),
        "P2": all(
            abs(xi[i] @ xi[j]) <= sigma**2 * math.sqrt(2 * d) * log for i, j in pairs if i != j
        ),
        "P3": all(
            abs(found.centres[q] @ xi[i]) <= sigma * root * log
            for i in range(n)
            for q in range(found.K)
        ),
        "P4": all(abs(dot[i, j]) <= p + delta for i, j in apart),
        "P5": all(d - delta <= dot[i, j] <= 3 * d + delta for i, j in together),
        "P6": all((samples.z == q).any() for q in range(found.K)),
    }


@pytest.mark.parametrize("inflate", [1.0, 1.6, 4.0, 12.0])
def test_properties_against_loops(inflate: float) -> None:
    # samples of a noisier mixture than the one they are judged by break some properties
    claimed = mixture(20, 3, 0.5, 0.2)
    drawn = mixture(20, 3, 0.5 * inflate, 0.2)
    broken = set()
    for seed in range(6):
        samples = drawn.sample(12, torch.Generator().manual_seed(seed))
        found = sample_properties(claimed, samples)
        assert {name: p.holds for name, p in found.items()} == by_loops(claimed, samples)
        broken |= {name for name, p in found.items() if not p.holds}
    assert broken >= ({"P1", "P2", "P3", "P4", "P5"} if inflate == 12 else set())


def test_worst_ratios_by_hand() -> None:
    found = cluster_mixture(orthogonal_centres(2, 4, 2.0), 1, 1.0)
    x = found.centres[[0, 0, 1]].clone()
    x[0, 2] = 1.0
    samples = Samples(x, torch.tensor([1.0, 1.0, -1.0]).double(), torch.tensor([0, 0, 1]))
    worst = {name: p.worst for name, p in sample_properties(found, samples).items()}
    delta = 8 * math.log(4)
    assert worst["P1"] == pytest.approx(1 / math.sqrt(8))
    assert worst["P2"] == 0
    assert worst["P3"] == 0
    assert worst["P4"] == 0
    # within clusters: <x,x> = 5, 4, 4 and <x_1,x_2> = 4; the farthest from 2d = 8 is 4
    assert worst["P5"] == pytest.approx(4 / (4 + delta))
    assert worst["P6"] == 1.0


def test_an_empty_cluster_breaks_p6() -> None:
    found = sqrt_d_mixture(50, 3, 1, 0.1)
    samples = found.sample(5, torch.Generator().manual_seed(0))
    only = Samples(samples.x, samples.y, torch.zeros(5, dtype=torch.long))
    assert math.isinf(sample_properties(found, only)["P6"].worst)


def test_no_noise_has_nothing_to_exceed() -> None:
    found = sqrt_d_mixture(50, 3, 1, 0.0)
    samples = found.sample(9, torch.Generator().manual_seed(0), equal_counts=True)
    assert all(p.holds for p in sample_properties(found, samples).values())


def test_probability_of_proposition_a1() -> None:
    # n = 347, d = 2000: d^(-ln(d)/2) = 2000^-3.80045
    n, d = 347, 2000
    rare = d ** (-math.log(d) / 2)
    expected = 3 * n**2 * rare + n**2 * math.exp(-d / 16) + d ** (1 - math.log(d))
    assert 1 - nice_probability(n, d) == pytest.approx(expected, rel=1e-6)
    assert nice_probability(100, 20) < 0


def test_the_warning_names_both_sides_and_every_broken_condition() -> None:
    inside = sqrt_d_mixture(2000, 6, 3, 1 / math.sqrt(2000))
    assert assumption_line(inside) is None
    outside = sqrt_d_mixture(500, 10, 5, 1.0)
    known = check_assumption(outside)
    line = assumption_line(outside)
    assert line is not None
    assert f"{known.left:.6g}" in line
    assert f"{known.right:.6g}" in line
    loud = assumption_line(sqrt_d_mixture(2000, 6, 3, 1.5))
    assert loud is not None
    assert "sigma = 1.5" in loud
    short = assumption_line(cluster_mixture(orthogonal_centres(2, 4000), 1, 0.001))
    assert short is not None
    assert "norm sqrt(d)" in short


def test_clusters_without_a_point_are_named() -> None:
    mixture = sqrt_d_mixture(50, 12, 6, 1.0)
    z = torch.tensor([0, 1, 2, 2])
    samples = Samples(torch.zeros(4, 50, dtype=torch.float64), mixture.labels[z], z)
    line = missing_line(samples, mixture)
    assert line is not None
    assert "n=4 points hold none of 9 of the 12 clusters (3, 4, 5, 6, 7, 8, 9, 10, ...)" in line
    assert "184" in line  # 12 ln^2 50
    full = mixture.sample(500, torch.Generator().manual_seed(0), equal_counts=True)
    assert missing_line(full, mixture) is None
