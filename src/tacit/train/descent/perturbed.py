"""Training points that move before each step (`descend(..., perturb=...)`): attacked ones, noisy ones."""

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base.shapes import Column, Numbers, Rows
from tacit.nets import TwoLayerNet
from tacit.train.descent.descend import Perturb

ASCENTS = 5
REACH = 2.5  # all steps together, in radii (Madry et al. 2018)


def attacked(radius: float) -> Perturb:
    r"""Adversarial training (Madry et al. 2018): the points after PGD in l2 against a ReLU net.

    Steps of one length against the margin y f, projected on the ball. The gradient of f is sum_j a_j w_j with
    a_j = v_j 1[z_j >= 0], so the whole walk stays in the span of the neurons: with delta = sum_j c_j w_j and the
    Gram matrix G of the neurons, z moves by G c and ||delta||^2 = c'Gc. Nothing of the size of x is touched but
    z = Wx + b before and x + W'c after.
    """

    def perturb(net: TwoLayerNet, x: Rows, y: Numbers) -> Rows:
        """x + delta."""
        gram = net.w @ net.w.T
        z = x @ net.w.T if net.b is None else x @ net.w.T + net.b
        c = torch.zeros_like(z)
        for _ in range(ASCENTS):
            way = -y.unsqueeze(1) * net.v * (z + c @ gram >= 0)
            c = c + REACH / ASCENTS * radius * way / span_norm(way, gram)
            c = c * (radius / span_norm(c, gram)).clamp_max(1)
        return x + c @ net.w

    return perturb


def span_norm(c: Float[Tensor, "n h"], gram: Float[Tensor, "h h"]) -> Column:
    """||sum_j c_j w_j||, away from 0: it is divided by."""
    square = ((c @ gram) * c).sum(1, keepdim=True)
    return square.clamp_min(0).sqrt().clamp_min(torch.finfo(c.dtype).tiny)


def noisy(sd: float, generator: torch.Generator) -> Perturb:
    """The points with fresh Gaussian noise of that standard deviation in each coordinate."""

    def perturb(_net: TwoLayerNet, x: Rows, _y: Numbers) -> Rows:
        """x + noise."""
        drawn = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        return x + sd * drawn.to(x.device)

    return perturb
