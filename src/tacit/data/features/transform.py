"""From the pixels of a file to the input of a net: scale, channels first, resize, normalise."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Num
from torch import Tensor
from torch.nn.functional import interpolate

from tacit.errors import CallError


@dataclass(frozen=True)
class ImageTransform:
    """(b, H, W, C) on the scale 0..255 -> float32 (b, C, H', W'): (image / 255 - mean) / std.

    `size`: the shorter side is resized to it (bicubic, antialiased) and the middle square is kept;
    None leaves the image as it is. `rgb`: grey images get three equal channels. `mean` and `std` are
    those of the net on the scale 0..1, one number or one for each channel.

    The whole square is used: the papers' data sets fill the frame, and nothing is cropped from them as
    ImageNet's usual test transform would.
    """

    size: int | None = None
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    rgb: bool = False

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise CallError(f"size={self.size}: images are resized to a side of at least 1 pixel")

    def __call__(self, images: Num[Tensor, "b H W C"]) -> Float[Tensor, "b C2 H2 W2"]:
        """The net's input; uint8, or floats on the scale 0..255."""
        x = (images.float() / 255).permute(0, 3, 1, 2)  # channels_last in memory, which is faster
        if self.rgb:
            x = _three_channels(x)
        if self.size is not None:
            x = _square(x, self.size)
        if self.mean == (0.0,) and self.std == (1.0,):
            return x
        mean, std = (torch.tensor(v, device=x.device)[:, None, None] for v in (self.mean, self.std))
        return (x - mean) / std


def _three_channels(x: Float[Tensor, "b C H W"]) -> Float[Tensor, "b 3 H W"]:
    """Grey becomes three equal channels; colour stays."""
    channels = x.shape[1]
    if channels == 1:
        return x.expand(-1, 3, -1, -1)
    if channels != 3:
        raise CallError(
            f"images have {channels} channels; this extractor takes grey (1) or RGB (3) images: drop the others"
        )
    return x


def _square(x: Float[Tensor, "b C H W"], size: int) -> Float[Tensor, "b C size size"]:
    """The shorter side resized to `size`, then the middle square."""
    height, width = x.shape[-2:]
    if (height, width) == (size, size):
        return x
    short = min(height, width)
    # bicubic overshoots at edges: back into the range that pixels have
    sides = (round(height * size / short), round(width * size / short))
    x = interpolate(x, sides, mode="bicubic", antialias=True).clamp(0, 1)
    top, left = (sides[0] - size) // 2, (sides[1] - size) // 2
    return x[..., top : top + size, left : left + size]
