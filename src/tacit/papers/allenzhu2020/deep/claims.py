"""Estimates over images that the claims of Section 8 share."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from tacit.base.estimate import Estimate
from tacit.papers._shared.crossed import crossed

SHARE = (0.0, 1.0)


def share_of(
    values: xr.DataArray | npt.NDArray[Any],
    *,
    ends: tuple[float, float] = SHARE,
    of: int = 1,
    over: str = "images",
) -> Estimate:
    """The mean over images of values between the ends, for one net: how trainings vary is not known."""
    each = np.asarray(values, dtype=np.float64)
    return replace(crossed(each[None], ends=ends, of=of, known=0.0), over=over)


def difference(more: xr.DataArray, less: xr.DataArray, *, of: int = 1) -> Estimate:
    """The mean over images of what the one share has more than the other on the same image."""
    return share_of(more.values.astype(np.float64) - less.values, ends=(-1.0, 1.0), of=of)
