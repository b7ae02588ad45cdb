"""Nearness to class and subclass means, and the variance between subclasses, against closed forms."""

from __future__ import annotations

import math

import pytest
import torch

from tacit.measure.averaging import nearness, subclass_share


def clusters(m: int, *, noise: float = 0.0, n: int = 40) -> tuple[torch.Tensor, ...]:
    """Two classes of m orthogonal subclasses each: points, classes, subclasses within classes."""
    y, group = (
        torch.arange(2).repeat_interleave(m * n),
        torch.arange(m).repeat_interleave(n).repeat(2),
    )
    stream = torch.Generator().manual_seed(0)
    places = torch.eye(2 * m, dtype=torch.float64)[y * m + group]
    return (
        places + noise * torch.randn(places.shape, generator=stream, dtype=torch.float64),
        y,
        group,
    )


@pytest.mark.parametrize("m", [2, 5])
def test_a_neuron_at_a_class_mean_and_one_at_a_subclass_mean(m):
    x, y, group = clusters(m)
    at_class, at_subclass = x[y == 0].mean(0, keepdim=True), x[:1]
    one = torch.ones(1, dtype=torch.float64)
    for w, expected in ((at_class, (1, m**-0.5)), (at_subclass, (m**-0.5, 1))):
        found = nearness(w, one, x, y, group)
        assert (found.to_class, found.to_subclass) == pytest.approx(expected)
        assert found.subclasses == (m, m)
    both = nearness(
        torch.cat([at_class, at_subclass]), torch.tensor([0.25, 0.75]).double(), x, y, group
    )
    assert both.to_class == pytest.approx(0.25 + 0.75 / math.sqrt(m))


@pytest.mark.parametrize("noise", [0.0, 0.1, 1.0])
def test_the_share_of_variance_between_subclasses_has_its_closed_form(noise):
    """Orthonormal centres: 1 - 1/m between, D noise^2 within."""
    m = 4
    x, y, group = clusters(m, noise=noise, n=2000)
    between = 1 - 1 / m
    expected = between / (between + 2 * m * noise**2)
    assert subclass_share(x, y, group) == pytest.approx(expected, rel=0.02)
    torch.manual_seed(0)
    assert subclass_share(x, y, group[torch.randperm(len(group))]) < 0.01


def test_numbers_that_two_classes_share_are_two_subclasses():
    x, y, group = clusters(3)
    assert subclass_share(x, y, group) == pytest.approx(subclass_share(x, y, group + 3 * y))
