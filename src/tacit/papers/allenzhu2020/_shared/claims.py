"""Claims over trainings: of six or more each must be as expected; of fewer the mean over points and trainings."""

import xarray as xr

from tacit.base.estimate import Estimate
from tacit.lab import Claim, Expected, Judge
from tacit.papers._shared.crossed import crossed
from tacit.papers._shared.universal import for_every

ENOUGH = 6  # trainings of which all can show more than a half


def share_of(held: xr.DataArray, of: int = 1) -> Estimate:
    """The share of points that are held, with its interval over points and trainings."""
    values = held.transpose(..., "point").values.astype(float)
    return crossed(values, ends=(0.0, 1.0), of=of)


def without_margin(values: xr.DataArray) -> str:
    """What the same is where the margin is 0, as in the paper, for a claim's text."""
    return f"without a margin {float(values.mean()):.2f}"


def holds_in(
    judge: Judge, id: str, text: str, expected: Expected, held: xr.DataArray, because: str = ""
) -> Claim:
    """The claim that the share of points that are held is as expected, in each training or in the mean."""
    (trainings,) = (size for dim, size in held.sizes.items() if dim != "point")
    if trainings >= ENOUGH:
        return for_every(judge, id, text, expected, held.mean("point"), because)
    each = held.mean("point")
    text = f"{text} (mean over {trainings} trainings, {float(each.min()):.3f} to {float(each.max()):.3f})"
    return judge(id, text, expected, share_of(held), because=because)
