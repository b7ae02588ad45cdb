"""Estimates over images that the claims of Section 8 share."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from tacit.base.estimate import Estimate
from tacit.lab import Claim, Expected, Judge
from tacit.lab.claims import Part
from tacit.measure import mean_of
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


def gain(
    more: xr.DataArray, less: xr.DataArray, *, of: int = 1, over: str = "images"
) -> Estimate | None:
    """The mean of what the one has more than the other, pair by pair; None of fewer than two pairs."""
    pairs = more.values.astype(np.float64) - less.values
    pairs = pairs[np.isfinite(pairs)]
    return mean_of(pairs, of=of, over=over) if len(pairs) > 1 else None


def positive(judge: Judge, id: str, text: str, found: Estimate | None, because: str = "") -> Claim:
    """The claim that a gain is above 0, or that nothing was there to compare."""
    least = Expected(min=0.0)
    if found is None:
        return judge.cannot(id, text, least, "fewer than two pairs could be compared")
    return judge(id, text, least, found, because=because)


def all_positive(
    judge: Judge,
    id: str,
    text: str,
    pairs: Mapping[str, tuple[str, xr.DataArray, xr.DataArray]],
    *,
    over: str,
    because: str = "",
) -> Claim:
    """The claim that several gains are above 0, all at once: what each is called, what has more and what less."""
    parts = [
        Part(name, told, Expected(min=0.0), found)
        for name, (told, more, less) in pairs.items()
        if (found := gain(more, less, of=len(pairs), over=over)) is not None
    ]
    if len(parts) < len(pairs):
        return judge.cannot(id, text, Expected(min=0.0), "fewer than two pairs could be compared")
    return judge.family(id, text, parts, because=because)
