"""Residual nets: layers by number, what is frozen, what is drawn anew, files."""

from __future__ import annotations

import pytest
import torch

from tacit.errors import CallError
from tacit.nets.saved import load_net, save_net
from tacit.nn import PreActResNet, ResNet18


def small(kind: str, seed: int = 0):
    draws = torch.Generator().manual_seed(seed)
    if kind == "preact":
        return PreActResNet(16, 1, classes=4, generator=draws)
    return ResNet18(classes=4, width=4, generator=draws)


IMAGES = torch.rand(3, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def test_the_papers_31_convolutions_and_the_weights_that_they_have():
    net = PreActResNet(34, 4)
    assert len(net.convolutions) == 31
    assert len(PreActResNet(16, 1).convolutions) == 13
    assert len(ResNet18(width=2).convolutions) == 17
    # by hand: stem; blocks of 64, 128, 256 channels, the first of each group from fewer; shortcuts; norms; head
    convolutions = 27 * 16 + 9 * (
        16 * 64 + 9 * 64**2 + 64 * 128 + 9 * 128**2 + 128 * 256 + 9 * 256**2
    )
    shortcuts = 16 * 64 + 64 * 128 + 128 * 256
    norms = 2 * (16 + 9 * 64 + 64 + 9 * 128 + 128 + 9 * 256 + 256)
    assert sum(p.numel() for p in net.parameters()) == convolutions + shortcuts + norms + 2570


@pytest.mark.parametrize("kind", ["preact", "post"])
def test_the_output_of_a_layer_is_what_its_convolution_puts_out(kind):
    net = small(kind).eval()
    caught = {}
    for number, conv in enumerate(net.convolutions, 1):
        conv.register_forward_hook(lambda _m, _i, out, number=number: caught.update({number: out}))
    with torch.no_grad():
        net(IMAGES)
        for number, whole in dict(caught).items():
            torch.testing.assert_close(net.output_of(number, IMAGES), whole)
    assert sorted(caught) == list(range(1, len(net.convolutions) + 1))


def test_later_layers_are_not_run():
    net = small("preact").eval()
    net.blocks[3].conv1.register_forward_hook(lambda *_: pytest.fail("layer 8 was run"))
    net.output_of(7, IMAGES)


@pytest.mark.parametrize("kind", ["preact", "post"])
@pytest.mark.parametrize("layer", [1, 2, 5, 8])
def test_frozen_layers_and_their_statistics_stay(kind, layer):
    net = small(kind).freeze_below(layer).train()
    below = {id(m) for k in range(1, layer) for part in net.parts_of(k) for m in part.modules()}
    before = {name: t.clone() for name, t in net.state_dict().items()}
    rate = 0.1
    loss = net(IMAGES).square().sum()
    moving = [p for p in net.parameters() if p.requires_grad]
    for p, slope in zip(moving, torch.autograd.grad(loss, moving), strict=True):
        p.data.sub_(rate * slope + 0.01)
    after = net.state_dict()
    for name, tensor in after.items():
        owner = net.get_submodule(name.rpartition(".")[0])
        if owner is not net:  # the net's own are the mean and sd of images
            assert torch.equal(tensor, before[name]) == (id(owner) in below), name


@pytest.mark.parametrize("kind", ["preact", "post"])
def test_layers_are_drawn_anew_from_a_number_on(kind):
    net, twin = small(kind), small(kind)
    net.redraw_from(6, torch.Generator().manual_seed(5))
    for number, (mine, old) in enumerate(zip(net.convolutions, twin.convolutions, strict=True), 1):
        assert torch.equal(mine.weight, old.weight) == (number < 6), number
    assert not torch.equal(net.head.weight, twin.head.weight)
    again = small(kind).redraw_from(6, torch.Generator().manual_seed(5))
    assert all(map(torch.equal, net.state_dict().values(), again.state_dict().values()))


def test_first_weights_have_the_size_of_he():
    weight = PreActResNet(10, 8, generator=torch.Generator().manual_seed(0)).convolutions[-1].weight
    assert float(weight.detach().std()) == pytest.approx((2 / (9 * 512)) ** 0.5, rel=0.02)


@pytest.mark.parametrize("kind", ["preact", "post"])
def test_a_file_gives_the_net_back(kind, tmp_path):
    net = small(kind).standardised([0.1, 0.2, 0.3], [0.4, 0.5, 0.6]).eval()
    save_net(tmp_path / "net.safetensors", net)
    back = load_net(tmp_path / "net.safetensors")
    assert type(back) is type(net)
    assert not back.training
    torch.testing.assert_close(back(IMAGES), net(IMAGES), rtol=0, atol=0)


def test_images_are_standardised_inside():
    net = small("preact").eval()
    plain, scaled = net(IMAGES), net.standardised([0.0] * 3, [0.25] * 3)(IMAGES - 0.5)
    torch.testing.assert_close(plain, scaled)


def test_what_is_refused():
    with pytest.raises(CallError, match="depth=33: it is 6n"):
        PreActResNet(33)
    with pytest.raises(CallError, match="width=0"):
        PreActResNet(10, 0)
    with pytest.raises(CallError, match="layer=14: this net has the convolutions 1 to 13"):
        small("preact").output_of(14, IMAGES)
    with pytest.raises(CallError, match="layer=0"):
        small("post").freeze_below(0)
