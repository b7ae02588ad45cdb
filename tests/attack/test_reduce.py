"""Reduction of two-layer nets: f stays what it was, whatever order or scale the neurons come in."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.attack.shortest.reduce import reduce_net
from tacit.errors import CallError
from tacit.nets import TwoLayerNet


def normal(*shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def copied_net(seed, p, biased, K=5, copies=4, D=9):
    """K directions (and shifts), each `copies` times at other scales and masses of one sign."""
    u = normal(K, D, seed=seed).repeat_interleave(copies, 0)
    scale = normal(K * copies, seed=seed + 1).abs() + 0.1
    b = normal(K, seed=seed + 2).repeat_interleave(copies) * scale if biased else None
    sign = normal(K, seed=seed + 3).sign().repeat_interleave(copies)
    v = sign * (normal(K * copies, seed=seed + 4).abs() + 0.1)
    return TwoLayerNet(u * scale.unsqueeze(1), v, b, p)


def same(a, b, points=50, tolerance=1e-12):
    x = 2 * normal(points, a.w.shape[1], seed=99)
    f, g = a(x), reduce_net(b).net(x @ reduce_net(b).axes)
    return bool((f - g).abs().max() <= tolerance * a.hidden(x).mul(a.v.abs()).sum(1).max())


@given(st.integers(0, 10**6), st.sampled_from([1.0, 1.5, 2.0, 3.0]), st.booleans())
def test_exactly_parallel_neurons_become_one_and_f_stays(seed, p, biased):
    net = copied_net(seed, p, biased)
    reduced = reduce_net(net)
    assert len(reduced.net.v) == 5
    assert reduced.axes.shape == (9, 5)
    assert torch.allclose(reduced.axes.T @ reduced.axes, torch.eye(5).double(), atol=1e-12)
    assert same(net, net)
    assert reduced.spread < 1e-14
    # the group map says where each neuron went
    went = reduced.net.w[reduced.group] @ reduced.axes.T
    assert torch.allclose(went, net.w / net.w.norm(dim=1, keepdim=True), atol=1e-12)


@given(st.integers(0, 10**6), st.sampled_from([1.0, 3.0]))
def test_order_and_rescaling_do_not_matter(seed, p):
    net = copied_net(seed, p, biased=True)
    order = torch.randperm(len(net.v), generator=torch.Generator().manual_seed(seed))
    g = normal(len(net.v), seed=seed + 7).exp()
    other = TwoLayerNet((net.w * g.unsqueeze(1))[order], (net.v / g)[order], (net.b * g)[order], p)
    assert len(reduce_net(other).net.v) == 5
    assert same(net, other)


@given(st.integers(0, 10**6), st.floats(1e-3, 1e3), st.sampled_from([1.0, 2.0]))
def test_masses_scale_with_the_weights(seed, c, p):
    net = copied_net(seed, p, biased=True)
    scaled = TwoLayerNet(c * net.w, net.v, c * net.b, p)
    a, b = reduce_net(net), reduce_net(scaled)
    assert torch.allclose(b.net.v, c * a.net.v, rtol=1e-12)
    assert torch.allclose(a.net.w @ a.axes.T, b.net.w @ b.axes.T, atol=1e-11)


def test_other_signs_and_other_shifts_stay_apart_and_silent_neurons_go():
    w = torch.tensor([[1.0, 0, 0], [2, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]]).double()
    v = torch.tensor([1.0, 1, -1, 1, 0, 5]).double()
    b = torch.tensor([0.5, 1, 0.5, 0.6, 0, -1]).double()
    reduced = reduce_net(TwoLayerNet(w, v, b))
    assert reduced.group.tolist()[4:] == [-1, -1]
    assert reduced.group[0] == reduced.group[1]
    assert len(set(reduced.group[:4].tolist())) == 3
    assert reduced.axes.shape == (3, 1)


def test_constant_neurons_become_one_constant():
    w, v = torch.zeros(3, 4).double(), torch.tensor([1.0, 2, -3]).double()
    net = TwoLayerNet(w, v, torch.tensor([2.0, 1, 1]).double())
    reduced = reduce_net(net)
    assert len(reduced.net.v) == 2
    assert reduced.net(torch.zeros(1, 0).double()).item() == pytest.approx(1.0)
    # PolyReLU: a neuron with w = 0 is silent
    assert len(reduce_net(TwoLayerNet(w, v, net.b, p=2.0)).net.v) == 0


def test_nearly_parallel_neurons_in_many_dimensions_are_found_in_any_order():
    centres = torch.linalg.qr(normal(300, 10, seed=0))[0].T
    k = torch.arange(600) % 10
    noise = normal(600, 300, seed=1)
    w = centres[k] + 1e-6 * noise / noise.norm(dim=1, keepdim=True)
    net = TwoLayerNet(w, torch.where(k < 6, 1.0, -1.0).double(), p=3.0)
    reduced = reduce_net(net)
    assert len(reduced.net.v) == 10
    assert 1e-7 < reduced.spread < 2e-6
    assert same(net, net, tolerance=1e-5)
    apart = TwoLayerNet(normal(600, 300, seed=2), net.v)
    assert len(reduce_net(apart).net.v) == 600


def test_an_ensemble_is_refused():
    with pytest.raises(CallError, match="member by member"):
        reduce_net(TwoLayerNet(torch.ones(2, 3, 4), torch.ones(2, 3)))
