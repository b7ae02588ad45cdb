r"""Pictures: prepared for reconstruction, and how much they look like pictures, in two numbers.

The paper (allenzhu2020, Section 8.1) shows pictures; the two numbers are ours, of images (n, C, H, W) with each
channel's mean removed, in float64. Neither depends on contrast or brightness; an image of one colour gets nan.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.errors import CallError

Images = Float[Tensor, "n C H W"]
COARSE = 0.125  # cycles a pixel: a quarter of Nyquist's 1/2
ALL = (1, 2, 3)  # an image's channels and pixels


def zero_mean(images: Images) -> Images:
    """Each channel of each image shifted to mean 0 (footnote 18)."""
    return images - images.mean((2, 3), keepdim=True)


def rescaled_like(perturbations: Images, images: Float[Tensor, "m c h w"]) -> Images:
    """Perturbation i with the mean and the standard deviation of image i (footnote 19: "similar" ones).

    One shift and one factor each, over all pixels and channels, so that colours keep their proportions:
    our reading, for the paper does not say over what the two are taken.
    """
    if perturbations.shape != images.shape:
        shapes = f"perturbations {tuple(perturbations.shape)} of images {tuple(images.shape)}"
        raise CallError(f"{shapes}: one for each is needed")
    middle, wanted = (part.mean(ALL, keepdim=True) for part in (perturbations, images))
    spread, width = (part.std(ALL, keepdim=True) for part in (perturbations, images))
    if not bool((spread > 0).all()):
        raise CallError("a perturbation of one value cannot be rescaled: leave it out")
    return wanted + (perturbations - middle) * (width / spread)


def total_variation(images: Images) -> Float[Tensor, " n"]:
    """The mean |difference| of neighbours, in rows and in columns, over the standard deviation of the pixels.

    White Gaussian noise has 2 / sqrt(pi) = 1.13; smooth pictures have less, a chessboard has 2.
    """
    x = zero_mean(images.to(torch.float64))
    across, down = (x.diff(dim=d).abs().mean(ALL) for d in (3, 2))
    return (across + down) / 2 / x.square().mean(ALL).sqrt()


def coarse_share(images: Images) -> Float[Tensor, " n"]:
    """The share of the energy at spatial frequencies sqrt(fx^2 + fy^2) <= 1/8 cycle a pixel, by the 2-D FFT.

    White noise of 32 x 32 pixels has 48/1023 = .047 on average. The FFT takes an image to be periodic: the
    jump from one edge to the other counts as fine.
    """
    power = torch.fft.fft2(zero_mean(images.to(torch.float64))).abs().square().sum(1)
    fy, fx = (torch.fft.fftfreq(size, device=power.device) for size in power.shape[1:])
    coarse = torch.hypot(fy.unsqueeze(1), fx) <= COARSE
    return (power * coarse).sum((1, 2)) / power.sum((1, 2))
