"""Contributions, cosines and learned directions, on nets whose answers are known."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import min2024_mixture
from tacit.errors import CallError
from tacit.measure.neurons import contributions, cosines, learned_directions
from tacit.nets import TwoLayerNet, average_net, centre_net


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_contributions_by_hand_and_without_underflow():
    net = TwoLayerNet(torch.tensor([[3.0, 4.0], [1e-30, 0.0]]), torch.tensor([-2.0, 1e-30]))
    found = contributions(net)
    assert found.tolist() == pytest.approx([10.0, 1e-60])


@given(seed=st.integers(0, 999), factor=st.floats(1e-9, 1e9))
def test_cosines_are_torchs_and_know_only_directions(seed, factor):
    net = TwoLayerNet(normal(2, 5, 4, seed=seed), normal(2, 5, seed=seed + 1))
    ways = normal(3, 4, seed=seed + 2)
    wanted = torch.nn.functional.cosine_similarity(net.w.unsqueeze(-2), ways, dim=-1)
    torch.testing.assert_close(cosines(net, ways * factor), wanted)


def test_a_zero_neuron_has_cosine_zero():
    net = TwoLayerNet(torch.zeros(1, 2), torch.ones(1))
    assert cosines(net, torch.eye(2)).tolist() == [[0.0, 0.0]]


def test_the_papers_closed_forms_have_learned_what_they_are_made_of():
    mixture = min2024_mixture(20, 5, 3, 0.1, torch.Generator().manual_seed(0))
    mu = mixture.centres.double()
    averages = torch.stack([mu[:3].mean(0), mu[3:].mean(0)])
    average, centre = average_net(mixture), centre_net(mixture, p=3.0)
    assert bool(learned_directions(average, averages).learned)
    assert not bool(learned_directions(average, mu).learned)
    found = learned_directions(centre, mu)
    assert bool(found.learned)
    torch.testing.assert_close(found.within, torch.ones(2).double())
    assert float(found.mass[0, :3].min()) == pytest.approx(1 / 3)
    assert float(found.mass[0, 3:].max()) == 0
    assert not bool(learned_directions(centre, averages).learned)


def test_shares_are_of_each_sign_and_the_nearest_candidate_counts():
    turn = 0.3  # cos .955
    w = torch.tensor([[1.0, 0.0], [math.cos(turn), math.sin(turn)], [0.0, 4.0], [1.0, 1.0]])
    net = TwoLayerNet(w.double(), torch.tensor([3.0, 1.0, -1.0, -4.0]).double())
    found = learned_directions(net, torch.eye(2).double())
    torch.testing.assert_close(found.mass[0], torch.tensor([1.0, 0.0]).double())
    stray = 4 * math.sqrt(2)
    torch.testing.assert_close(found.mass[1], torch.tensor([0.0, 4 / (4 + stray)]).double())
    assert not bool(found.learned)
    strict = learned_directions(net, torch.eye(2).double(), threshold=0.99)
    torch.testing.assert_close(strict.mass[0], torch.tensor([0.75, 0.0]).double())
    easy = learned_directions(net, torch.eye(2).double(), share=0.4)
    assert bool(easy.learned)


def test_a_sign_without_neurons_has_learned_nothing():
    net = TwoLayerNet(torch.eye(2), torch.ones(2))
    found = learned_directions(net, torch.eye(2))
    assert found.within.tolist() == [1.0, 0.0]
    assert not bool(found.learned)


def test_wrong_calls_are_named():
    net = TwoLayerNet(torch.eye(2), torch.ones(2))
    with pytest.raises(CallError, match="dimension 3"):
        cosines(net, torch.eye(3))
    with pytest.raises(CallError, match="direction 1 is zero"):
        cosines(net, torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(CallError, match="no directions"):
        cosines(net, torch.zeros(0, 2))
    with pytest.raises(CallError, match="share=2"):
        learned_directions(net, torch.eye(2), share=2.0)
    with pytest.raises(CallError, match="threshold=0"):
        learned_directions(net, torch.eye(2), threshold=0.0)
