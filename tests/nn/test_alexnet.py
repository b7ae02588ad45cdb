"""AlexNet for small images: its sizes, its layers by number, what is drawn anew, files."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tacit.errors import CallError
from tacit.nets.saved import load_net, save_net
from tacit.nn import AlexNet

IMAGES = torch.rand(3, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def plain(net: AlexNet) -> nn.Sequential:
    """The same net as torch's layers in a row."""
    one, two, three, four, five = net.convolutions
    pool = nn.MaxPool2d(2)
    return nn.Sequential(
        one, nn.ReLU(), pool, two, nn.ReLU(), pool, three, nn.ReLU(), four, nn.ReLU(), five, nn.ReLU(), pool,
        nn.Flatten(), net.head,
    )  # fmt: skip


def test_it_is_five_convolutions_three_maxima_and_a_linear_head():
    net = AlexNet().eval().standardised([0.5, 0.4, 0.3], [0.2, 0.3, 0.1])
    assert [tuple(c.weight.shape) for c in net.convolutions] == [
        (64, 3, 11, 11), (192, 64, 5, 5), (384, 192, 3, 3), (256, 384, 3, 3), (256, 256, 3, 3),
    ]  # fmt: skip
    with torch.no_grad():
        x = (IMAGES - torch.tensor([0.5, 0.4, 0.3]).view(3, 1, 1)) / torch.tensor(
            [0.2, 0.3, 0.1]
        ).view(3, 1, 1)
        torch.testing.assert_close(net(IMAGES), plain(net)(x))
        assert net.output_of(1, IMAGES).shape == (3, 64, 8, 8)
        torch.testing.assert_close(net.output_of(3, IMAGES), plain(net)[:7](x))


def test_smaller_images_pass_too():
    assert AlexNet(4, 1, 8).eval()(torch.rand(2, 1, 8, 8)).shape == (2, 4)


def test_layers_are_drawn_anew_from_one_on_and_the_rest_is_frozen():
    net = AlexNet(width=8, generator=torch.Generator().manual_seed(0))
    before = [c.weight.detach().clone() for c in net.convolutions]
    net.redraw_from(3, torch.Generator().manual_seed(1)).freeze_below(3)
    same = [torch.equal(a, c.weight) for a, c in zip(before, net.convolutions, strict=True)]
    assert same == [True, True, False, False, False]
    assert [c.weight.requires_grad for c in net.convolutions] == [False, False, True, True, True]
    assert net.head.weight.requires_grad
    bound = net.convolutions[2].weight[0].numel() ** -0.5
    assert 0.9 * bound < float(net.convolutions[2].weight.detach().abs().max()) <= bound
    with pytest.raises(CallError, match="layer=6: this net has the convolutions 1 to 5"):
        net.output_of(6, IMAGES)
    with pytest.raises(CallError, match="images of 1 channels: this net was made for 3"):
        net(IMAGES[:, :1])


def test_a_file_gives_the_same_net(tmp_path):
    net = AlexNet(5, 3, 8, generator=torch.Generator().manual_seed(2)).eval()
    save_net(tmp_path / "alex.safetensors", net)
    again = load_net(tmp_path / "alex.safetensors")
    assert torch.equal(again(IMAGES), net(IMAGES))
