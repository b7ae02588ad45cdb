"""The training images on the device, and batches of them, shifted and mirrored, as tensor operations."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64, Shaped
from torch import Tensor

from tacit.base.checks import check_finite
from tacit.errors import CallError
from tacit.train.deep.recipe import Recipe


@dataclass(frozen=True)
class Shelf:
    """Images with a border of zeros, (n, H + 2c, W + 2c, C), bytes from 0 to `top` or floats; labels (n,)."""

    x: Shaped[Tensor, "n H W C"]
    y: Int64[Tensor, " n"]
    crop: int
    top: float

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width of an image, without the border."""
        _, height, width, _ = self.x.shape
        return height - 2 * self.crop, width - 2 * self.crop

    def batch(
        self, rows: Int64[Tensor, " b"], moves: Int64[Tensor, "b 3"]
    ) -> tuple[Float[Tensor, "b C h w"], Int64[Tensor, " b"]]:
        """Those images as pixels in [0, 1], each shifted (down, right in 0..2c) and mirrored (0 or 1)."""
        h, w = self.sides
        down = moves[:, :1] + torch.arange(h, device=self.x.device)
        across = torch.arange(w, device=self.x.device).expand(len(rows), w)
        across = moves[:, 1:2] + torch.where(moves[:, 2:] == 1, w - 1 - across, across)
        chosen = self.x[rows[:, None, None], down[:, :, None], across[:, None, :]]
        return chosen.permute(0, 3, 1, 2).float() / self.top, self.y[rows]


def shelf_of(x: Tensor, y: Tensor, recipe: Recipe, device: str, top: int = 255) -> Shelf:
    """Images (n, H, W, C) of bytes 0..top, or floats in [0, 1] as (n, C, H, W), checked and put on the device."""
    if x.dim() != 4 or not len(x) or len(x) != len(y):
        raise CallError(
            f"x has shape {tuple(x.shape)}, y {tuple(y.shape)}: images are (n, C, H, W) floats or (n, H, W, C) "
            "bytes, with one label each"
        )
    if x.is_floating_point():
        check_finite("x", x)
        if bool(x.min() < 0) or bool(x.max() > 1):
            raise CallError(
                f"x runs from {x.min().item():.4g} to {x.max().item():.4g}: pixels are in [0, 1]; scale them, "
                "and standardise inside the module"
            )
        x, top = x.permute(0, 2, 3, 1), 1
    elif x.dtype != torch.uint8:
        raise CallError(f"x is {x.dtype}: images are bytes (torch.uint8) or floats in [0, 1]")
    if len(x) < recipe.batch:
        raise CallError(f"batch={recipe.batch}: there are {len(x)} images; choose at most that")
    c = recipe.crop
    held = torch.nn.functional.pad(x.to(device), (0, 0, c, c, c, c))
    return Shelf(held.contiguous(), y.to(device, torch.long), c, float(top))


@dataclass(frozen=True)
class Epoch:
    """The order of an epoch, (steps, batch), and how each image is moved, (steps, batch, 3)."""

    order: Int64[Tensor, "s b"]
    moves: Int64[Tensor, "s b 3"]


def epoch_of(n: int, recipe: Recipe, generator: torch.Generator) -> Epoch:
    """Drawn on the CPU, so that a seed means the same batches on every device."""
    b, c = recipe.batch, recipe.crop
    steps = n // b
    order = torch.randperm(n, generator=generator)[: steps * b].view(steps, b)
    shifts = torch.randint(2 * c + 1, (steps, b, 2), generator=generator)
    mirrored = torch.randint(2 if recipe.flip else 1, (steps, b, 1), generator=generator)
    return Epoch(order, torch.cat([shifts, mirrored], 2))
