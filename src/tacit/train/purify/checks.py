"""What `train_symmetric` refuses, in the user's words."""

from collections.abc import Sequence
from typing import Literal, get_args

import torch

from tacit.base.checks import check_finite, check_signs
from tacit.base.shapes import Numbers, Rows
from tacit.errors import CallError
from tacit.nets.symmetric import SymmetricNet
from tacit.train.purify.stages import Stage

Noise = Literal["expected", "sampled"]


def check_call(
    net: SymmetricNet,
    stages: Sequence[Stage],
    noise: Noise,
    negligible: float,
    generator: torch.Generator | None,
) -> None:
    """A single finite net, at least one stage, known settings."""
    if net.ensemble:
        raise CallError("train_symmetric trains one net: pass the members one by one")
    net.check_finite("a start must be finite")
    if bool((net.b < 0).any()):
        raise CallError(
            f"the least bias is {float(net.b.min()):g}: biases are thresholds, 0 or above"
        )
    if not len(stages):
        raise CallError("stages: give at least one Stage")
    if noise not in get_args(Noise):
        raise CallError(f"noise={noise!r}: one of {', '.join(get_args(Noise))}")
    if noise == "sampled" and generator is None:
        raise CallError(
            "noise='sampled': it is drawn; give generator=torch.Generator().manual_seed(0)"
        )
    if not 0 <= negligible < 0.01:
        raise CallError(
            f"negligible={negligible:g}: it is a slope next to 1, from 0 (nobody sleeps) to below 0.01"
        )
    if noise == "sampled" and negligible:
        raise CallError(
            f"negligible={negligible:g}: with sampled noise any neuron may fire; leave it out"
        )


def check_batch(net: SymmetricNet, x: Rows, y: Numbers) -> None:
    """Points of the net's dimension, type and device, with labels +-1."""
    if x.shape[1] != net.inputs or (x.dtype, x.device) != (net.w.dtype, net.w.device):
        raise CallError(
            f"x has {x.shape[1]} columns of {x.dtype} on {x.device}, the net {net.inputs} of {net.w.dtype} on "
            f"{net.w.device}: they must agree"
        )
    check_finite("x", x)
    check_signs(y)
