"""Deep nets for images whose convolutions are numbered, as allenzhu2020 numbers them (Section 8).

Images are pixels in [0, 1], (n, C, H, W), standardised inside the net, so that attacks move pixels. Layer l = 1,
2, ... is the l-th convolution with all that belongs to it. Layers can be looked into, frozen and drawn anew.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tacit.errors import CallError
from tacit.nets.kinds import kind_of
from tacit.nn import modules

Pixels = Float[Tensor, "n C H W"]
Maps = Float[Tensor, "n _ _ _"]
Net = TypeVar("Net", bound="LayeredNet")


class LayeredNet(nn.Module, ABC):
    """What is common to them; `sizes` are the arguments that make such a net, as a file has them."""

    mean: Tensor
    std: Tensor
    head: nn.Linear
    frozen = 0  # layers 1 to `frozen` do not move, nor do their batch statistics

    def __init__(self, sizes: dict[str, int]) -> None:
        super().__init__()
        for name, size in sizes.items():
            if size < 1:
                raise CallError(f"{name}={size}: it is at least 1")
        self.sizes = sizes
        self.register_buffer("mean", torch.full((sizes["channels"], 1, 1), 0.5))
        self.register_buffer("std", torch.full((sizes["channels"], 1, 1), 0.25))

    @property
    @abstractmethod
    def convolutions(self) -> list[nn.Conv2d]:
        """Those that have numbers; layer l is number l - 1 here."""

    @abstractmethod
    def parts_of(self, layer: int) -> list[nn.Module]:
        """The modules of one layer."""

    def last_parts(self) -> list[nn.Module]:
        """What comes after the last layer."""
        return [self.head]

    @abstractmethod
    def features(self, x: Pixels) -> Float[Tensor, "n c"]:
        """What the linear head sees."""

    @abstractmethod
    def output_of(self, layer: int, x: Pixels) -> Maps:
        """What convolution `layer` puts out, before any norm or addition; what comes later is not run."""

    def forward(self, x: Pixels) -> Float[Tensor, "n classes"]:
        """The logits."""
        return self.head(self.features(x))

    def standardised(self: Net, mean: Sequence[float], std: Sequence[float]) -> Net:
        """The net for images of that mean and standard deviation, one a channel."""
        for buffer, values in ((self.mean, mean), (self.std, std)):
            buffer.copy_(torch.tensor(values).view(-1, 1, 1))
        return self

    def standard(self, x: Pixels) -> Pixels:
        """The images, standardised."""
        # the means of three channels would be taken from a grey image in silence
        if x.shape[1] != len(self.mean):
            raise CallError(
                f"images of {x.shape[1]} channels: this net was made for {len(self.mean)}"
            )
        return (x - self.mean) / self.std

    def freeze_below(self: Net, layer: int) -> Net:
        """Layers 1 to layer - 1 keep their weights and batch statistics from now on; layer 1 frees all."""
        self.check_layer(layer)
        self.frozen = layer - 1
        for number in range(1, len(self.convolutions) + 1):
            for part in self.parts_of(number):
                part.requires_grad_(number >= layer)
        return self.train(self.training)

    def redraw_from(self: Net, layer: int, generator: torch.Generator | None = None) -> Net:
        """Draw layers `layer`, layer + 1, ... and what comes after them anew."""
        self.check_layer(layer)
        # to be filled: drawing there would import torch's compiler, for seconds
        if self.head.weight.is_meta:
            return self
        numbers = range(layer, len(self.convolutions) + 1)
        fresh = [part for number in numbers for part in self.parts_of(number)]
        for top in (*fresh, *self.last_parts()):
            for part in top.modules():
                self.draw(part, generator)
        return self

    @staticmethod
    def draw(part: nn.Module, generator: torch.Generator | None) -> None:
        """Convolutions He normal (fan-out), norms at 1 and 0, the head uniform to 1/sqrt(fan-in), biases 0."""
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(
                part.weight, mode="fan_out", nonlinearity="relu", generator=generator
            )
        elif isinstance(part, nn.BatchNorm2d):
            part.reset_parameters()
        elif isinstance(part, nn.Linear):
            bound = part.in_features**-0.5
            nn.init.uniform_(part.weight, -bound, bound, generator=generator)
            nn.init.zeros_(part.bias)

    def train(self: Net, mode: bool = True) -> Net:
        """As torch's, but what is frozen stays in eval mode."""
        super().train(mode)
        for number in range(1, self.frozen + 1):
            for part in self.parts_of(number):
                part.eval()
        return self

    def check_layer(self, layer: int) -> None:
        """A call error for a number that no convolution has."""
        count = len(self.convolutions)
        if not 1 <= layer <= count:
            raise CallError(f"layer={layer}: this net has the convolutions 1 to {count}")

    def state(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """Tensors and metadata, as a file holds them."""
        kind = kind_of(self)
        assert kind is not None
        held = {name: t.detach().contiguous() for name, t in self.state_dict().items()}
        return held, {"kind": kind.name} | {name: str(size) for name, size in self.sizes.items()}


def load(cls: type, tensors: dict[str, Tensor], meta: dict[str, str]) -> Any:
    """The net in eval mode, with the tensors as they are stored."""
    known = inspect.signature(cls).parameters
    sizes = {name: int(size) for name, size in meta.items() if name in known}
    return modules.filled(lambda: cls(**sizes), tensors)
