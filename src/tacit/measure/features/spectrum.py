r"""The spectrum of small pictures, by cosines: patches and filters of a dozen pixels a side.

An image (n, C, H, W), each channel's mean removed, in the orthonormal 2-D DCT-II: coefficient (k, l) belongs to
the wave of (k/2H, l/2W) cycles a pixel. Cosines mirror an image at its edges, where `coarse_share`'s FFT
repeats it and counts the jump from edge to edge as fine. At 11 x 11 pixels 7 of 120 waves are as slow as 1/8
cycle a pixel (white noise has .058 of its energy there); of the FFT's it is 4.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.measure.features.pictures import Images, zero_mean

EDGES = (0.125, 0.25, 0.375, 0.5)  # cycles a pixel; the last band is beyond all, up to sqrt(1/2)


def waves(images: Images) -> Images:
    """The coefficients of each channel, in float64; that of the mean is 0."""
    x = zero_mean(images.to(torch.float64))
    down, across = (cosines(size).to(x.device) for size in x.shape[2:])
    return down @ x @ across.T


def cosines(size: int) -> Float[Tensor, "size size"]:
    """Row k: sqrt((2 - [k = 0])/N) cos(pi k (2 n + 1)/(2 N)), n = 0, ..., N - 1: an orthogonal matrix."""
    n = torch.arange(size, dtype=torch.float64)
    table = torch.cos(math.pi / (2 * size) * n.unsqueeze(1) * (2 * n + 1)) * math.sqrt(2 / size)
    table[0] /= math.sqrt(2)
    return table


def spectrum(images: Images) -> Float[Tensor, "n bands"]:
    """The shares of the energy at spatial frequencies sqrt(fx^2 + fy^2) up to each of EDGES, and beyond them.

    The first is the share of coarse shapes. They sum to 1; an image of one colour gets nan.
    """
    power = waves(images).square().sum(1)
    fy, fx = (torch.arange(size, device=power.device) / (2 * size) for size in power.shape[1:])
    edges = torch.tensor(EDGES, device=power.device)
    band = torch.bucketize(torch.hypot(fy.unsqueeze(1), fx), edges)  # an edge belongs to its band
    shares = torch.stack([(power * (band == k)).sum((1, 2)) for k in range(len(EDGES) + 1)], 1)
    return shares / shares.sum(1, keepdim=True)
