"""The interval of 1-NN on clusters: its bound before the attack cuts it, against exact radii."""

import pytest
import torch

from tacit.certify import nearest_radius
from tacit.certify.nearest.spheres import point_interval
from tacit.nets import NearestNeighbour
from tacit.papers.li2025._shared.synthetic import mixture_of


def gen(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("d", "sigma"), [(2, 1.0), (3, 2.0), (60, 0.3)])
def test_the_bound_alone_is_never_above_the_exact_radius(d, sigma):
    """Few dimensions: cells that were not tried hold the nearest; many: averages of half-spaces are attained."""
    mixture = mixture_of(d, 2, 1, sigma=sigma, generator=gen(d))
    for seed in range(4):
        train, test = mixture.sample(30, gen(seed)), mixture.sample(8, gen(seed + 50))
        rule = NearestNeighbour(train.x, train.y)
        y = rule(test.x).sign()
        exact = nearest_radius(rule, test.x, y).upper
        for i in range(8):
            own = train.y == y[i]
            group = [train.x[own & (train.z == c)] for c in train.z[own].unique()]
            low, _ = point_interval(test.x[i], group, train.x[~own])
            assert low <= float(exact[i])
