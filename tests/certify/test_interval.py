"""One type for every radius: its ends, the perturbation that attains the upper one, and how they are joined."""

import math

import pytest
import torch

from tacit.attack.norms import known_norm
from tacit.certify import Radii, radius, relu_radius
from tacit.certify.interval import at_least, between, exactly, intersect, stack
from tacit.errors import CallError
from tacit.nets import TwoLayerNet


def doubles(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_exact_and_middle():
    found = Radii(doubles(1.0, 1.0, math.inf), doubles(1.0, 2.0, math.inf))
    assert found.exact.tolist() == [True, False, True]
    assert found.middle.tolist() == [1.0, 1.5, math.inf]


def test_known_exactly_from_below_and_where_it_is_broken_already():
    assert exactly(doubles(2.0)).exact.all()
    assert at_least(doubles(0.0, 3.0)).upper.isinf().all()
    found = Radii(doubles(1.0, 2.0), doubles(1.5, 2.5)).unless(torch.tensor([True, False]))
    assert found.lower.tolist() == [0.0, 2.0]
    assert found.upper.tolist() == [0.0, 2.5]


def test_a_proof_ends_where_something_was_seen_to_break():
    found = between(doubles(1.0, 2.0 + 1e-9), doubles(1.5, 2.0))
    assert found.lower.tolist() == [1.0, 2.0]


def test_an_intersection_keeps_the_better_ends_and_the_shorter_perturbation():
    one = Radii(doubles(1.0, 0.5), doubles(2.0, 3.0), doubles([2.0, 0.0], [3.0, 0.0]))
    two = Radii(doubles(0.5, 1.0), doubles(4.0, 2.0), doubles([0.0, 4.0], [0.0, 2.0]))
    for found in (intersect(one, two), intersect(two, one)):
        assert found.lower.tolist() == [1.0, 1.0]
        assert found.upper.tolist() == [2.0, 2.0]
        assert found.breaking.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert intersect(one, exactly(doubles(1.5, 1.5))).delta is None


def test_a_stack_has_a_perturbation_where_all_members_have():
    kept = Radii(doubles(1.0), doubles(1.0), doubles([1.0, 0.0]))
    both = stack([kept, kept])
    assert both.lower.shape == both.upper.shape == (2, 1)
    assert both.breaking.shape == (2, 1, 2)
    with pytest.raises(CallError, match=r"keep no perturbation: tacit\.attack\.minimal"):
        _ = stack([kept, exactly(doubles(1.0))]).breaking


def random_net(h, D, seed, p=1.0):
    g = torch.Generator().manual_seed(seed)
    w, v = torch.randn(h, D, generator=g).double(), torch.randn(h, generator=g).double()
    return TwoLayerNet(w, v, None if p > 1 else 0.1 * torch.randn(h, generator=g).double(), p)


@pytest.mark.parametrize("p", [1.0, 3.0])
@pytest.mark.parametrize("merged", [False, True])
def test_radius_gives_the_perturbation_that_its_search_found(p, merged):
    net = random_net(4, 4, 3, p)
    if merged:  # parallel neurons: the search is over fewer, the perturbation breaks the net given
        few = net
        net = TwoLayerNet(
            few.w.repeat(4, 1), few.v.repeat(4), None if few.b is None else few.b.repeat(4), p
        )
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(5)).double()
    y = net(x).sign()
    found = radius(net, x, y, norm=math.inf)
    here = found.upper.isfinite()
    assert here.sum() >= 4
    length = known_norm(math.inf).size(found.breaking)
    torch.testing.assert_close(length[here], found.upper[here], rtol=1e-12, atol=0)
    margin = y * net(x + found.breaking)
    assert (margin[here] <= 1e-12 * (1 + net(x)[here].abs())).all()
    assert (found.breaking[~here] == 0).all()


def test_an_ensemble_has_both_ends_and_the_perturbations_of_its_members():
    nets = [random_net(5, 3, seed) for seed in (8, 9)]
    both = TwoLayerNet(*(torch.stack([getattr(n, f) for n in nets]) for f in ("w", "v", "b")))
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(1)).double()
    y = nets[0](x).sign()
    found = radius(both, x, y, norm=1)
    for i, net in enumerate(nets):
        alone = relu_radius(net, x, y, norm=1)
        torch.testing.assert_close(found.lower[i], alone.lower)
        torch.testing.assert_close(found.breaking[i], alone.breaking)
