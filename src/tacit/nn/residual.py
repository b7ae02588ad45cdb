"""Residual nets for small images, with their 3x3 convolutions numbered as allenzhu2020 numbers them (Section 8).

    PreActResNet   "(pre-activation) ResNet-34": wide-resnet form of depth 6n + 4, which is one convolution and 3
                   groups of n blocks of 2: 31 layers at depth 34, 13 at depth 16. Widths: 16, then 16, 32 and
                   64 times `width`; depth 28 and width 10 are WideResNet-28-10
    ResNet18       the CIFAR form of He et al. (2016): 3x3 stem, no pooling before the blocks, 4 groups of 2
                   blocks of 2: 17 layers. Widths: 1, 2, 4 and 8 times `width`. With `power` p > 1 it has
                   relu(z)^p where ReLU reads what a batch norm put out, at the stem and inside blocks

Layer l = 1, 2, ... is the l-th 3x3 convolution with its batch norm (before it where activations come first, else
behind it); a 1x1 shortcut belongs to the first layer of its block.
"""

from collections.abc import Sequence
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tacit.base.linalg import power as raised
from tacit.errors import CallError
from tacit.nets.kinds import register
from tacit.nn.layered import LayeredNet, Maps, Pixels, load


def conv3x3(inside: int, outside: int, stride: int = 1) -> nn.Conv2d:
    """Without bias: a batch norm follows sooner or later."""
    return nn.Conv2d(inside, outside, 3, stride, 1, bias=False)


def shortcut_of(inside: int, outside: int, stride: int) -> nn.Module:
    """What the block adds to: its input, or a 1x1 convolution of it where shapes change."""
    if inside == outside and stride == 1:
        return nn.Identity()
    return nn.Conv2d(inside, outside, 1, stride, bias=False)


class PreActBlock(nn.Module):
    """x + conv2(relu(bn2(conv1(relu(bn1(x)))))); a shortcut that changes shape starts at relu(bn1(x))."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(inside), conv3x3(inside, outside, stride)
        self.bn2, self.conv2 = nn.BatchNorm2d(outside), conv3x3(outside, outside)
        self.shortcut = shortcut_of(inside, outside, stride)

    def first(self, x: Maps) -> Maps:
        """What conv1 puts out."""
        return self.conv1(self.bn1(x).relu())

    def second(self, x: Maps) -> Maps:
        """What conv2 puts out."""
        return self.conv2(self.bn2(self.first(x)).relu())

    def forward(self, x: Maps) -> Maps:
        """The block."""
        active = self.bn1(x).relu()
        kept = x if isinstance(self.shortcut, nn.Identity) else self.shortcut(active)
        return kept + self.conv2(self.bn2(self.conv1(active)).relu())


class PostActBlock(nn.Module):
    """relu(shortcut(x) + bn2(conv2(relu(bn1(conv1(x)))^power))).

    The outer ReLU has no power: along identity shortcuts powers would pile up, to p^8 after eight blocks.
    """

    def __init__(self, inside: int, outside: int, stride: int, power: int = 1) -> None:
        super().__init__()
        self.power = power
        self.conv1, self.bn1 = conv3x3(inside, outside, stride), nn.BatchNorm2d(outside)
        self.conv2, self.bn2 = conv3x3(outside, outside), nn.BatchNorm2d(outside)
        self.shortcut = shortcut_of(inside, outside, stride)
        if not isinstance(self.shortcut, nn.Identity):
            self.shortcut = nn.Sequential(self.shortcut, nn.BatchNorm2d(outside))

    def first(self, x: Maps) -> Maps:
        """What conv1 puts out."""
        return self.conv1(x)

    def second(self, x: Maps) -> Maps:
        """What conv2 puts out."""
        return self.conv2(raised(self.bn1(self.conv1(x)).relu(), self.power))

    def forward(self, x: Maps) -> Maps:
        """The block."""
        return (self.shortcut(x) + self.bn2(self.second(x))).relu()


class ResidualNet(LayeredNet):
    """A stem (layer 1), blocks of two layers each, a last batch norm (where activations come first), a head."""

    def __init__(
        self, sizes: dict[str, int], widths: Sequence[int], strides: Sequence[int], stem: int, *, preact: bool
    ) -> None:  # fmt: skip
        super().__init__(sizes)
        self.stem = conv3x3(sizes["channels"], stem)
        self.stem_norm = nn.Identity() if preact else nn.BatchNorm2d(stem)
        self.preact, self.power = preact, sizes.get("power", 1)
        block = PreActBlock if preact else partial(PostActBlock, power=self.power)
        inside = (stem, *widths[:-1])
        self.blocks = nn.ModuleList(map(block, inside, widths, strides))
        self.norm = nn.BatchNorm2d(widths[-1]) if preact else nn.Identity()
        self.head = nn.Linear(widths[-1], sizes["classes"])

    @property
    def convolutions(self) -> list[nn.Conv2d]:
        """The 3x3 convolutions; layer l is number l - 1 here."""
        return [self.stem, *(conv for block in self.blocks for conv in (block.conv1, block.conv2))]  # type: ignore[list-item]

    def begun(self, x: Pixels) -> Maps:
        """Up to the first block."""
        maps = self.stemmed(x)
        return maps if self.preact else raised(self.stem_norm(maps).relu(), self.power)

    def stemmed(self, x: Pixels) -> Maps:
        """What the first convolution puts out, of standardised images."""
        return self.stem(self.standard(x))

    def features(self, x: Pixels) -> Float[Tensor, "n c"]:
        """What the linear head sees: the mean over positions of the last maps."""
        maps = self.begun(x)
        for block in self.blocks:
            maps = block(maps)
        maps = self.norm(maps).relu() if self.preact else maps
        return maps.mean((2, 3))

    def output_of(self, layer: int, x: Pixels) -> Maps:
        """What convolution `layer` puts out, before any norm or addition; what comes later is not run."""
        self.check_layer(layer)
        if layer == 1:
            return self.stemmed(x)
        before, second = divmod(layer - 2, 2)
        maps = self.begun(x)
        for block in self.blocks[:before]:
            maps = block(maps)
        last = self.blocks[before]
        return last.second(maps) if second else last.first(maps)  # type: ignore[operator]

    def parts_of(self, layer: int) -> list[nn.Module]:
        """The modules of one layer: its convolution, its batch norm, the shortcut that begins with it."""
        if layer == 1:
            return [self.stem, self.stem_norm]
        before, second = divmod(layer - 2, 2)
        block = self.blocks[before]
        if second:
            return [block.bn2, block.conv2]  # type: ignore[list-item]
        return [block.bn1, block.conv1, block.shortcut]  # type: ignore[list-item]

    def last_parts(self) -> list[nn.Module]:
        """The last norm and the head."""
        return [self.norm, self.head]


def eighteen(width: int) -> tuple[list[int], list[int]]:
    """Widths and strides of the blocks of a ResNet-18."""
    return [width * base for base in (1, 2, 4, 8) for _ in range(2)], [1, 1, 2, 1, 2, 1, 2, 1]


class PreActResNet(ResidualNet):
    """Wide-resnet form of depth 6n + 4 (allenzhu2020's ResNet-34 and ResNet-16); its width is not printed."""

    def __init__(
        self,
        depth: int = 34,
        width: int = 4,
        classes: int = 10,
        channels: int = 3,
        generator: torch.Generator | None = None,
    ) -> None:
        n, rest = divmod(depth - 4, 6)
        if rest or n < 1:
            raise CallError(f"depth={depth}: it is 6n + 4, as 10, 16, 22, 28, 34")
        widths = [base * width for base in (16, 32, 64) for _ in range(n)]
        strides = [1 + (k > 0 and k % n == 0) for k in range(3 * n)]
        sizes = {"depth": depth, "width": width, "classes": classes, "channels": channels}
        super().__init__(sizes, widths, strides, 16, preact=True)
        self.redraw_from(1, generator)


class ResNet18(ResidualNet):
    """ResNet-18 for 32x32 images (li2025, Section 6.2); `power` is that of its PolyReLU, 1 is ReLU.

    relu(z)^p of z with mean 0 and variance 1 does not see the length of the weights before it, as the PolyReLU
    of min2024, relu(<w, x>)^p / ||w||^(p-1) on inputs of one length.
    """

    def __init__(
        self,
        classes: int = 10,
        channels: int = 3,
        width: int = 64,
        generator: torch.Generator | None = None,
        power: int = 1,
    ) -> None:
        sizes = {"classes": classes, "channels": channels, "width": width}
        if power != 1:  # a file without a power is of a ReLU net
            sizes["power"] = power
        super().__init__(sizes, *eighteen(width), width, preact=False)
        self.redraw_from(1, generator)


for cls, name in ((PreActResNet, "preact_resnet"), (ResNet18, "resnet18")):
    register(cls, name=name, state=LayeredNet.state, load=load)
