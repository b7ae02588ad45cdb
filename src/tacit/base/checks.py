"""What many calls refuse in the same words."""

from torch import Tensor

from tacit.errors import CallError


def check_finite(
    what: str, *tensors: Tensor | None, remedy: str = "drop or impute those points first"
) -> None:
    """Refuses NaN and inf, which would pass every comparison that is meant to catch them."""
    if not all(tensor is None or bool(tensor.isfinite().all()) for tensor in tensors):
        raise CallError(f"{what} holds NaN or inf: {remedy}")


def check_signs(y: Tensor) -> None:
    """Refuses labels of one output that are no signs."""
    if not ((y == 1) | (y == -1)).all():
        raise CallError("y: labels are -1 or +1")


def check_one_each(y: Tensor, x: Tensor) -> None:
    """Refuses labels that are not one for each point."""
    if y.shape != x.shape[:1]:
        told = f"y has shape {tuple(y.shape)}"
        raise CallError(f"{told}: one label for each of {len(x)} points is needed")


def check_labels(y: Tensor, outputs: int) -> None:
    """Refuses labels that a model of so many outputs does not have: +-1 for one, else 0 to C-1."""
    if outputs == 1 and not bool((y.abs() == 1).all()):
        raise CallError("a one-output model needs labels y = -1 or +1")
    if outputs != 1 and not bool(((y >= 0) & (y < outputs) & (y == y.round())).all()):
        raise CallError(
            f"labels go from {y.min()} to {y.max()}: a model of {outputs} logits needs 0..{outputs - 1}"
        )
