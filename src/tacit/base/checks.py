"""What many calls refuse in the same words."""

from torch import Tensor

from tacit.errors import CallError


def check_finite(
    what: str, *tensors: Tensor | None, remedy: str = "drop or impute those points first"
) -> None:
    """Refuses NaN and inf, which would pass every comparison that is meant to catch them."""
    if not all(tensor is None or bool(tensor.isfinite().all()) for tensor in tensors):
        raise CallError(f"{what} holds NaN or inf: {remedy}")
