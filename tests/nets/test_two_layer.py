import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from tacit.certify import radius
from tacit.errors import CallError, RunError
from tacit.nets import MultiClassNet, TwoLayerNet, load_net
from tacit.nets.head import head_of

powers = st.sampled_from([1.0, 1.5, 2.0, 3.0, 4.0])


def random_net(seed, p=1.0, h=7, D=5, lead=(), bias=False):
    g = torch.Generator().manual_seed(seed)
    w, v, b = (
        torch.randn(*lead, *s, generator=g, dtype=torch.float64) for s in ((h, D), (h,), (h,))
    )
    return TwoLayerNet(w, v, b if bias else None, p)


def points(seed, n=11, D=5):
    return torch.randn(n, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(seed=st.integers(0, 999), p=powers)
def test_the_formula_neuron_by_neuron(seed, p):
    net, x = random_net(seed, p, bias=True), points(seed)
    expected = [
        sum(
            float(v) * max(float(w @ row + b), 0.0) ** p / float(w.norm()) ** (p - 1)
            for w, v, b in zip(net.w, net.v, net.b, strict=True)
        )
        for row in x
    ]
    assert net(x).tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(seed=st.integers(0, 999), p=powers, scale=st.floats(0.1, 10))
def test_homogeneous_of_degree_two_in_parameters_and_p_in_x(seed, p, scale):
    net, x = random_net(seed, p), points(seed)
    double = TwoLayerNet(scale * net.w, scale * net.v, p=p)
    assert torch.allclose(double(x), scale**2 * net(x), rtol=1e-9, atol=1e-9)
    assert torch.allclose(net(scale * x), scale**p * net(x), rtol=1e-9, atol=1e-9)


@given(seed=st.integers(0, 999), p=powers)
def test_permuting_neurons_changes_nothing(seed, p):
    net, x = random_net(seed, p, bias=True), points(seed)
    order = torch.randperm(7, generator=torch.Generator().manual_seed(seed))
    same = TwoLayerNet(net.w[order], net.v[order], net.b[order], p)
    assert torch.allclose(same(x), net(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_ensemble_members_are_the_nets_alone(p):
    nets, x = random_net(0, p, lead=(2, 3), bias=True), points(0)
    together = nets(x)
    assert together.shape == (2, 3, 11)
    alone = TwoLayerNet(nets.w[1, 2], nets.v[1, 2], nets.b[1, 2], p)
    assert torch.allclose(together[1, 2], alone(x))


def test_a_zero_neuron_contributes_nothing():
    net = TwoLayerNet(torch.zeros(1, 3).double(), torch.ones(1).double(), p=3.0)
    assert net(points(0, D=3)).abs().max() == 0


def test_p_below_one_is_refused():
    with pytest.raises(CallError, match=r"p=0\.5"):
        random_net(0, 0.5)


def test_binary_reduction_is_the_difference_of_class_probabilities():
    g = torch.Generator().manual_seed(0)
    labels = torch.tensor([1.0, 1.0, -1.0, -1.0, -1.0]).double()
    net = MultiClassNet(torch.randn(5, 3, 4, generator=g, dtype=torch.float64), labels)
    x = points(1, D=4)
    probability = torch.softmax(net.logits(x), -1)
    assert torch.allclose(net.binary(x), probability @ labels)
    assert torch.equal(net(x).sign(), net.binary(x).sign())
    by_hand = (x @ net.w[2].T).clamp_min(0).mean(1)
    assert torch.allclose(net.logits(x)[:, 2], by_hand)


@pytest.mark.parametrize("bias", [False, True])
def test_saved_nets_come_back(tmp_path, bias):
    net = random_net(3, 2.5, bias=bias)
    tensors, meta = net.state()
    save_file(tensors, tmp_path / "a.safetensors", metadata=meta)
    back = load_net(tmp_path / "a.safetensors")
    assert isinstance(back, TwoLayerNet)
    assert back.p == 2.5
    assert torch.equal(back(points(0)), net(points(0)))


def test_saved_multi_class_nets_come_back(tmp_path):
    net = MultiClassNet(torch.ones(2, 1, 3).double(), torch.tensor([1.0, -1.0]).double())
    tensors, meta = net.state()
    save_file(tensors, tmp_path / "m.safetensors", metadata=meta)
    assert torch.equal(load_net(tmp_path / "m.safetensors").w, net.w)


def test_files_that_hold_no_net_are_refused(tmp_path):
    save_file({"w": torch.ones(1)}, tmp_path / "odd.safetensors")
    (tmp_path / "text.safetensors").write_text("no tensors here")
    for name, words in (("odd", "kind None"), ("text", "no readable"), ("absent", "no readable")):
        with pytest.raises(RunError, match=words):
            load_net(tmp_path / f"{name}.safetensors")


def test_tiny_weights_do_not_underflow() -> None:
    w = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    x = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    v = torch.ones(1, dtype=torch.float64)
    small = TwoLayerNet(1e-100 * w, v, p=12.0)(x)
    assert torch.allclose(1e100 * small, TwoLayerNet(w, v, p=12.0)(x))
    assert float(small) > 0


def test_the_gradient_is_finite_where_a_neuron_is_off() -> None:
    w = torch.tensor([[1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    x = torch.tensor([[-1.0, 2.0], [1.0, 1.0]], dtype=torch.float64)
    TwoLayerNet(w, torch.ones(1, dtype=torch.float64), p=1.5)(x).sum().backward()
    assert w.grad is not None
    assert torch.allclose(w.grad, torch.tensor([[1.0, 1.5]], dtype=torch.float64))


def test_a_multi_class_net_keeps_its_power_in_a_file_and_as_a_head(tmp_path):
    g = torch.Generator().manual_seed(0)
    labels = torch.tensor([1.0, 1.0, -1.0, -1.0]).double()
    net = MultiClassNet(torch.randn(4, 2, 5, generator=g).double(), labels, 3.0)
    x = torch.randn(3, 5, generator=g).double()
    tensors, meta = net.state()
    save_file(tensors, tmp_path / "net.safetensors", metadata=meta)
    assert load_net(tmp_path / "net.safetensors").p == 3.0
    scores = head_of(net)(x)
    torch.testing.assert_close(scores[:, 0] - scores[:, 1], net(x))
    y = net(x).sign()
    found = radius(net, x, y)
    step = found.upper.unsqueeze(1) * torch.nn.functional.normalize(
        torch.randn(3, 5, generator=g).double(), dim=1
    )
    safe = x + 0.999 * step * (found.lower / found.upper).unsqueeze(1)
    assert (found.lower > 0).any()
    assert (found.lower <= found.upper).all()
    assert bool((y * net(safe) > 0).all())
