"""The multi-class PolyReLU net against its formula, its homogeneity, and its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from tacit.base.linalg import power
from tacit.errors import CallError, RunError
from tacit.nets import PolyReLUNet, load_net, poly_relu_start
from tacit.nets.poly_relu import without_dust

READINGS = {"released": (True, False), "written": (False, True), "raw": (False, False)}


def a_net(
    p: float, reading: str, seed: int = 0, members: int = 1, bias: bool = True
) -> PolyReLUNet:
    generators = [torch.Generator().manual_seed(seed + i) for i in range(members)]
    centre = torch.randn(7, generator=generators[0], dtype=torch.float64)
    normalize, unit = READINGS[reading]
    return poly_relu_start(
        7, 5, 3, p, generators, centre=centre, normalize_input=normalize, unit=unit, bias=bias,
        dtype=torch.float64,
    )  # fmt: skip


def by_hand(net: PolyReLUNet, x: list[float], member: int) -> list[float]:
    """One point, one neuron and one class at a time."""
    assert net.centre is not None
    assert net.b is not None
    c = [a - b for a, b in zip(x, net.centre.tolist(), strict=True)]
    size = sum(a * a for a in c) ** 0.5
    if net.unit:
        c = [a / size for a in c]
    logits = net.b[member].tolist()
    for j, w in enumerate(net.w[member].tolist()):
        along = max(sum(a * b for a, b in zip(w, c, strict=True)), 0.0)
        norm = sum(a * a for a in w) ** 0.5
        hidden = along**net.p / norm ** (net.p - 1)
        if net.normalize_input:
            hidden /= size ** (net.p - 1)
        for k in range(3):
            logits[k] += net.v[member, k, j].item() * hidden
    return logits


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("p", [1.0, 1.5, 3.0])
def test_logits_are_the_formula(p: float, reading: str) -> None:
    net = a_net(p, reading, members=2)
    x = torch.randn(4, 7, dtype=torch.float64)
    found = net(x)
    assert found.shape == (2, 4, 3)
    for e in range(2):
        for i in range(4):
            wanted = torch.tensor(by_hand(net, x[i].tolist(), e), dtype=torch.float64)
            torch.testing.assert_close(found[e, i], wanted, rtol=1e-12, atol=1e-13)


@given(t=st.floats(0.01, 100), p=st.sampled_from([1.0, 2.0, 3.5]))
def test_homogeneity_says_which_reading_it_is(t: float, p: float) -> None:
    x = torch.randn(6, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    for reading, degree in {"released": 1.0, "written": 0.0, "raw": p}.items():
        net = a_net(p, reading, bias=False)
        assert net.centre is not None
        far = net.centre + t * (x - net.centre)
        torch.testing.assert_close(net(far), t**degree * net(x), rtol=1e-9, atol=1e-12)


def test_the_centre_itself_and_dead_neurons_are_seen_as_nothing() -> None:
    for reading in READINGS:
        net = a_net(3.0, reading)
        net = replace(net, w=net.w * torch.tensor([1.0, 0, 1, 1, 1], dtype=torch.float64)[:, None])
        assert net.centre is not None
        assert net.b is not None
        torch.testing.assert_close(net(net.centre[None]), net.b.unsqueeze(-2))
        assert not net.hidden(torch.randn(3, 7, dtype=torch.float64))[..., 1].any()


@pytest.mark.parametrize("p", [0.5, float("nan"), float("inf")])
def test_a_p_below_one_is_refused(p: float) -> None:
    with pytest.raises(CallError, match=r"p >= 1"):
        PolyReLUNet(torch.ones(2, 3), torch.ones(2, 2), p=p)


def test_start_is_uniform_and_a_member_does_not_depend_on_the_others() -> None:
    alone, both = a_net(2.0, "released", seed=1), a_net(2.0, "released", seed=0, members=2)
    # the centre of a_net comes off the first stream, before the weights
    second = poly_relu_start(7, 5, 3, 2.0, [torch.Generator().manual_seed(1)], dtype=torch.float64)
    assert torch.equal(both.w[1], second.w[0])
    assert alone.w.shape == (1, 5, 7)
    many = poly_relu_start(10, 4000, 2, 1.0, [torch.Generator().manual_seed(3)])
    edge = (6 / 10) ** 0.5
    assert 0.99 * edge < float(many.w.abs().max()) <= edge
    assert abs(float(many.w.var()) - edge**2 / 3) < 0.01 * edge**2
    assert float(many.v.abs().max()) <= 4000**-0.5


@pytest.mark.parametrize("reading", READINGS)
def test_a_saved_net_is_read_back(reading: str, tmp_path: Path) -> None:
    net = a_net(2.5, reading)
    tensors, meta = net.state()
    save_file(tensors, tmp_path / "net.safetensors", metadata=meta)
    again = load_net(tmp_path / "net.safetensors")
    assert isinstance(again, PolyReLUNet)
    assert (again.p, again.normalize_input, again.unit) == (2.5, *READINGS[reading])
    x = torch.randn(3, 7, dtype=torch.float64)
    assert torch.equal(again(x), net(x))


def test_a_file_whose_tensors_do_not_fit_is_refused(tmp_path: Path) -> None:
    tensors, meta = a_net(2.0, "released").state()
    save_file(
        {**tensors, "b": torch.zeros(1, 4, dtype=torch.float64)}, tmp_path / "b", metadata=meta
    )
    with pytest.raises(RunError, match="'b'"):
        load_net(tmp_path / "b")


@given(p=st.one_of(st.integers(1, 40).map(float), st.floats(1, 40)))
def test_powers_by_products_are_powers(p: float) -> None:
    r = torch.tensor([0.0, 1e-3, 0.3, 1.0, 1.7], dtype=torch.float64, requires_grad=True)
    found = power(r, p)
    torch.testing.assert_close(found, r.detach() ** p, rtol=1e-12, atol=0)
    (slope,) = torch.autograd.grad(found.sum(), r)
    torch.testing.assert_close(slope, p * r.detach() ** (p - 1), rtol=1e-11, atol=0)


@given(scale=st.floats(1e-3, 1e6))
def test_dust_is_what_is_too_small_beside_its_own_neuron(scale: float) -> None:
    w = torch.tensor([[1.0, 1e-20, 1e-33, 0.0], [3e-6, -2e-38, 1e-6, -1e-6]]) * scale
    found = without_dust(w)
    wanted = torch.tensor([[1.0, 1e-20, 0.0, 0.0], [3e-6, 0.0, 1e-6, -1e-6]]) * scale
    assert torch.equal(found, wanted)
    assert torch.equal(without_dust(found), found)


def test_half_precision_keeps_its_weights() -> None:
    w = torch.tensor([[1.0, 0.01, 1e-4, 1e-7]], dtype=torch.float16)
    assert torch.equal(without_dust(w), w * torch.tensor([1, 1, 1, 0], dtype=torch.float16))


def test_a_net_without_dust_says_the_same() -> None:
    net = a_net(4.0, "released", members=2)
    small = torch.tensor([1.0, 1e-310, 1.0, 1.0, 1e-305, 1.0, 1.0], dtype=torch.float64)
    dusty = replace(net, w=net.w * small)
    assert bool((dusty.w[..., 1] != 0).all())
    clean = replace(dusty, w=without_dust(dusty.w))
    assert clean.w[..., [1, 4]].count_nonzero() == 0
    x = torch.randn(5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.equal(clean(x), dusty(x))
