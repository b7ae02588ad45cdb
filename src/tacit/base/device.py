"""The one choice of a device: "auto" is a GPU where there is one."""

from tacit.errors import CallError


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
