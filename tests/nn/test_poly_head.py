"""ResNet-18 with PolyReLU: in its body by a power, or in its head."""

from __future__ import annotations

import pytest
import torch

from tacit.auditing.averaging import neurons_of
from tacit.errors import CallError
from tacit.nets.saved import load_net, save_net
from tacit.nn import PolyHeadResNet18, ResNet18

IMAGES = torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def draws() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def settled(net):
    """In eval mode, with the batch statistics of some images."""
    with torch.no_grad():
        for _ in range(30):
            net.train()(IMAGES)
    return net.eval()


def poly() -> PolyHeadResNet18:
    return settled(PolyHeadResNet18(4, width=4, hidden=6, generator=draws()))


def test_power_1_is_the_relu_net_to_the_last_bit_and_its_files_say_nothing_of_it():
    plain, one = (
        ResNet18(4, width=4, generator=draws()),
        ResNet18(4, width=4, generator=draws(), power=1),
    )
    assert torch.equal(plain.eval()(IMAGES), one.eval()(IMAGES))
    assert one.state()[1] == {"kind": "resnet18", "classes": "4", "channels": "3", "width": "4"}


@pytest.mark.parametrize("power", [2, 3])
def test_a_power_is_where_a_batch_norm_was_and_nowhere_else(power):
    """By hand: stem and blocks of the formula, block outputs with plain ReLU; it starts as the ReLU net does."""
    start, plain = (
        ResNet18(4, width=4, generator=draws(), power=p).state_dict() for p in (power, 1)
    )
    assert all(map(torch.equal, start.values(), plain.values()))
    net = settled(ResNet18(4, width=4, generator=draws(), power=power))
    maps = net.stem_norm(net.stem(net.standard(IMAGES))).clamp_min(0) ** power
    for block in net.blocks:
        inner = block.bn1(block.conv1(maps)).clamp_min(0) ** power
        maps = (block.shortcut(maps) + block.bn2(block.conv2(inner))).clamp_min(0)
    expected = net.head(maps.mean((2, 3)))
    assert expected.isfinite().all()
    torch.testing.assert_close(net(IMAGES), expected)


def test_a_file_gives_the_power_back(tmp_path):
    net = settled(ResNet18(4, width=4, generator=draws(), power=2))
    save_net(tmp_path / "net.safetensors", net)
    back = load_net(tmp_path / "net.safetensors")
    assert back.power == 2
    assert torch.equal(back(IMAGES), net(IMAGES))


def test_what_is_refused():
    with pytest.raises(CallError, match="power=0"):
        ResNet18(power=0)
    with pytest.raises(CallError, match="hidden=0"):
        PolyHeadResNet18(hidden=0)


def test_the_head_is_min2024_s_shallow_net_on_centred_features():
    net = poly()
    features = net.features(IMAGES)
    c = (features - net.centre.running_mean) / (net.centre.running_var + net.centre.eps).sqrt()
    w, v = net.poly.weight, net.head.weight
    cosine = (c @ w.T) / (c.norm(dim=1, keepdim=True) * w.norm(dim=1))
    hidden = c.norm(dim=1, keepdim=True) * w.norm(dim=1) * cosine.clamp_min(0) ** 3
    torch.testing.assert_close(net(IMAGES), hidden @ v.T + net.head.bias)


def test_the_head_is_in_full_precision_where_convolutions_are_not():
    """Where all of it was in bfloat16 its loss on CIFAR-10 became NaN within three steps on an H200."""
    net = poly().train()
    with torch.autocast("cpu", torch.bfloat16):
        features, c = net.features(IMAGES), net.centred(IMAGES)
        scores = net(IMAGES)
    assert (features.dtype, c.dtype, scores.dtype) == (
        torch.bfloat16,
        torch.float32,
        torch.float32,
    )
    torch.testing.assert_close(c, net.centre(features.float()))
    torch.testing.assert_close(scores, net.head(net.poly(c)))
    assert net.double()(IMAGES.double()).dtype == torch.float64


def test_its_convolutions_are_those_of_the_plain_net_from_the_same_draws():
    plain, net = (
        ResNet18(4, width=4, generator=draws()),
        PolyHeadResNet18(4, width=4, generator=draws()),
    )
    for mine, other in zip(net.convolutions, plain.convolutions, strict=True):
        assert torch.equal(mine.weight, other.weight)
    largest = float(net.poly.weight.detach().abs().max())
    assert 0.09 < largest / (6 / 32) ** 0.5 <= 0.1


def test_a_redraw_draws_the_whole_head_anew():
    net, again = poly(), poly()
    again.redraw_from(17, torch.Generator().manual_seed(9))
    assert not torch.equal(net.poly.weight, again.poly.weight)
    assert not torch.equal(net.head.weight, again.head.weight)
    assert float(again.centre.running_mean.abs().max()) == 0
    assert torch.equal(net.convolutions[15].weight, again.convolutions[15].weight)


def test_its_file_gives_it_back(tmp_path):
    net = poly()
    save_net(tmp_path / "net.safetensors", net)
    back = load_net(tmp_path / "net.safetensors")
    assert isinstance(back, PolyHeadResNet18)
    assert (back.poly.p, back.poly.out_features) == (3, 6)
    assert torch.equal(back(IMAGES), net(IMAGES))


def test_an_audit_looks_at_its_poly_relu_neurons():
    net = poly()
    found = neurons_of(net, (3, 16, 16))
    torch.testing.assert_close(found.w, net.poly.weight.detach().double())
    mass = (net.poly.weight.norm(dim=1) * net.head.weight.norm(dim=0)).detach().double()
    torch.testing.assert_close(found.mass, mass / mass.sum())
    assert found.layer is net.poly
