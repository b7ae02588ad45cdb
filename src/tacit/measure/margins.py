r"""Margins of a two-layer net, as training and theory see them.

A net is homogeneous of degree L in its trained parameters theta: f(x; c theta) = c^L f(x; theta), with L = 2
where both layers (and biases) are trained (min2024, Section 2; frei2023, Section 2.2), and L = 1 in (w, b) where
the second layer is fixed (`fixed_v`). Divided by ||theta||^L a margin depends on the direction of theta alone.

Everything is in float64, a block of points at a time: nets and points may be float32. An ensemble's leading
dimensions go through; points or labels without them are shown to every member.
"""

import math
from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from tacit.base.checks import check_finite
from tacit.base.shapes import Outputs, Sets
from tacit.errors import CallError
from tacit.nets import TwoLayerNet
from tacit.train.losses import LossName

LARGEST_BLOCK = 2**22  # numbers in one (points, neurons) array


def margins(net: TwoLayerNet, x: Sets, y: Float[Tensor, "*y m"]) -> Outputs:
    """m_i = y_i f(x_i), in float64; the point is broken where m_i <= 0. Labels are -1 or +1."""
    check_labelled(net, x, y)
    net = net.double()
    f = torch.cat([net(x[..., part, :].to(torch.float64)) for part in blocks(net, x)], -1)
    return y.to(torch.float64) * f


def normalised_margin(net: TwoLayerNet, x: Sets, y: Float[Tensor, "*y m"]) -> Float[Tensor, "*e"]:
    """min_i y_i f(x_i) / ||theta||^L, theta = (w, b, v) with L = 2, or (w, b) with L = 1 where v is fixed."""
    return margins(net, x, y).amin(-1) / size_to_degree(net)


def smoothed_margin(
    net: TwoLayerNet, x: Sets, y: Float[Tensor, "*y m"], loss: LossName
) -> Float[Tensor, "*e"]:
    """l^-1(n L(theta)) / ||theta||^L, a margin that gradient flow never lowers once n L < l(0).

    n L is the sum of the losses (Lyu & Li 2020, Section 4; frei2023, Section 2.2). It is at most the normalised
    margin, and for the exponential loss at least that less log(n) / ||theta||^L.
    """
    total = log_sum(margins(net, x, y), loss)
    # logistic: l^-1(u) = -log(e^u - 1) = -log u - log((e^u - 1) / u), whose last term vanishes with u
    inverse = -total if loss == "exp" else -log_expm1(total)
    return inverse / size_to_degree(net)


def log_loss(margin: Outputs, loss: LossName) -> Float[Tensor, "*e"]:
    """log of the mean loss, frei2023's eq. (1), from the margins; min2024's eq. (1) sums: add log n.

    By log-sum-exp: a loss of e^-1000 loses no digit.
    """
    if margin.shape[-1] == 0:
        raise CallError("a loss needs at least one point")
    return log_sum(margin, loss) - math.log(margin.shape[-1])


def log_sum(margin: Outputs, loss: LossName) -> Float[Tensor, "*e"]:
    """log of sum_i l(m_i)."""
    margin = margin.to(torch.float64)
    if loss == "exp":
        return torch.logsumexp(-margin, -1)
    softplus = -logsigmoid(margin)
    # log(log(1 + e^-m)) is -m - e^-m / 2 + ...: where e^-m is lost next to 1, -m is exact
    each = torch.where(margin > 40, -margin, softplus.clamp_min(1e-300).log())
    return torch.logsumexp(each, -1)


def log_expm1(log_u: Float[Tensor, "*e"]) -> Float[Tensor, "*e"]:
    """log(e^u - 1) from log u, for u > 0 of any size."""
    u = log_u.exp()
    middle = torch.expm1(u.clamp(1e-17, 40.0)).log()
    return torch.where(log_u < -37, log_u, torch.where(u > 40, u, middle))


def degree(net: TwoLayerNet) -> int:
    """L: how f grows with the trained parameters, 2 for both layers, 1 for the first alone."""
    return 1 if net.fixed_v else 2


def parameters(net: TwoLayerNet) -> Float[Tensor, "*e h P"]:
    """The trained parameters of each neuron in float64: w, b where there is one, v where it is trained."""
    parts = [net.w] + ([] if net.b is None else [net.b.unsqueeze(-1)])
    parts += [] if net.fixed_v else [net.v.unsqueeze(-1)]
    return torch.cat([part.to(torch.float64) for part in parts], -1)


def size_to_degree(net: TwoLayerNet) -> Float[Tensor, "*e"]:
    """||theta||^L; a net that is zero has no direction."""
    size = parameters(net).flatten(-2).norm(dim=-1)
    if bool((size == 0).any()):
        raise CallError(
            "the net is zero: a margin per size of the parameters needs a net that is not"
        )
    return size ** degree(net)


def blocks(net: TwoLayerNet, x: Sets) -> Iterator[slice]:
    """Slices of the points, small enough that (ensemble, points, neurons) arrays are."""
    step = max(1, LARGEST_BLOCK // max(net.v.numel(), 1))
    return (slice(start, start + step) for start in range(0, x.shape[-2], step))


def check_labelled(net: TwoLayerNet, x: Sets, y: Float[Tensor, "*y m"]) -> None:
    """One label -1 or +1 a point, points of the net's dimension, numbers that are finite."""
    if x.shape[-1] != net.w.shape[-1]:
        raise CallError(
            f"points of dimension {x.shape[-1]} for a net of dimension {net.w.shape[-1]}: they must agree"
        )
    if x.shape[-2] == 0:
        raise CallError("no points: margins need at least one")
    if y.shape[-1] != x.shape[-2]:
        raise CallError(
            f"{x.shape[-2]} points with {y.shape[-1]} labels: one label a point is needed"
        )
    if not bool((y.abs() == 1).all()):
        raise CallError(f"labels {y.unique().tolist()[:5]}: labels are -1 or +1")
    check_finite("x", x, remedy="leave those points out")
    if not bool(parameters(net).isfinite().all() & net.v.isfinite().all()):
        raise CallError("the net holds NaN or inf: its training diverged; lower the step")
