"""The one choice of a device: "auto" is a GPU where there is one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from tacit.errors import CallError

if TYPE_CHECKING:
    import torch


def choose_device(device: str) -> str:
    """The device that is meant by "auto", "cpu" or "cuda"; `CallError` where there is none such."""
    if device not in ("auto", "cpu", "cuda"):
        raise CallError(f"device {device!r} is none of auto, cpu, cuda")
    if device == "cpu":
        return device
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if device == "cuda":
        raise CallError("device cuda: torch sees no GPU here; use --device cpu (device='cpu')")
    return "cpu"


def layout(device: str) -> torch.memory_format:
    """How images and filters lie in memory: channels last on a GPU, where that is faster.

    Not on a CPU: there torch 2.13 writes beyond its memory in the gradient of a 1x1 convolution of stride 2 whose
    inputs have fewer than 8 channels, last.
    """
    import torch

    return torch.channels_last if device == "cuda" else torch.contiguous_format


def full_float32() -> AbstractContextManager[None]:
    """Convolutions in float32 to its last bit: on a GPU cuDNN takes 10 bits of each factor unless it is told.

    What decides (is this image right, is this error small) is computed within; what only searches need not be.
    """
    from torch.backends import cudnn

    return cudnn.flags(enabled=True, deterministic=cudnn.deterministic, allow_tf32=False)
