r"""The table: each row's numbers, and its change against `two`, seed by seed and point by point.

    robust    the share of points kept, mean over the radii at which the two nets can be compared
    clean     the share of all test images that are right
    lean      to_subclass - to_class: 0 or less for neurons at class means, above it for those at subclass means
    apart     share of the features' variance within halves that lies between classes
    sparsity  coefficients that images need in the first filters at one error; fewer are purer
    kin       for each first filter of the adversarial net the largest |cos| with one of the row's, in the mean

Intervals of robust and clean accuracy cross seeds and points (`_shared.crossed`), those of sparsity seeds and
images; the others are means over seeds.
"""

import math
from dataclasses import replace

import numpy as np
import torch
import xarray as xr

from tacit.base.estimate import Estimate
from tacit.base.linalg import unit_rows
from tacit.measure import mean_of
from tacit.papers._shared.crossed import crossed
from tacit.papers.li2025.fig3b.claims import EXTREME, one_or_more

SHARE = (0.0, 1.0)
HALF_OF_GAIN = 0.5


def comparable(data: xr.Dataset, row: str, base: str = "two") -> list[float]:
    """The radii at which `base` and the row are neither both at 0 nor both at 1, to EXTREME."""
    mean = data.kept.sel(row=[base, row]).mean(("seed", "point")).sel(radius=data.radius > 0)
    apart = (mean.max("row") > EXTREME) & (mean.min("row") < 1 - EXTREME)
    return [float(r) for r in mean.radius[apart]]


def robust(data: xr.Dataset, row: str, radii: list[float]) -> np.ndarray:
    """The share of these radii at which each point is kept, (seed, point)."""
    kept = data.kept.sel(row=row, radius=radii).astype(np.float64)
    return kept.mean("radius").transpose("seed", "point").values


def robust_gain(data: xr.Dataset, row: str, base: str = "two") -> Estimate | None:
    """Against `base`, over the comparable radii; None where there are none."""
    radii = comparable(data, row, base)
    if not radii:
        return None
    return one_or_more(robust(data, row, radii) - robust(data, base, radii))


def past_half(data: xr.Dataset, row: str, *, of: int = 1) -> Estimate | None:
    """What the row gains against `two` less half of what adversarial training gains, at the latter's radii."""
    radii = comparable(data, "adversarial")
    if not radii:
        return None
    two, mine, hard = (robust(data, name, radii) for name in ("two", row, "adversarial"))
    ends = (-1 - HALF_OF_GAIN, 1 + HALF_OF_GAIN)
    found = crossed(mine - two - HALF_OF_GAIN * (hard - two), ends=ends, of=of, known=0.0)
    return found if len(mine) > 1 else replace(found, over="points")


def clean_change(data: xr.Dataset, row: str) -> Estimate:
    """Clean accuracy, less that of `two`."""
    right = data.right.astype(np.float64).transpose("row", "seed", "test")
    return one_or_more((right.sel(row=row) - right.sel(row="two")).values)


def lean(data: xr.Dataset) -> xr.DataArray:
    """(row, seed): above 0 where neurons are nearer to subclass means."""
    return data.to_subclass - data.to_class


def change(values: xr.DataArray, row: str, *, of: int = 1) -> Estimate:
    """The mean over seeds of a number of the row less that of `two`."""
    return mean_of((values.sel(row=row) - values.sel(row="two")).values, of=of)


def sparser(data: xr.Dataset, row: str) -> Estimate | None:
    """The share of coefficients that an image needs in the filters of `two` less that in the row's.

    Over the images whose paths come down to the error in every net of both rows; None for fewer than two.
    """
    both = data.sparsity.sel(row=["two", row]).transpose("row", "seed", "image")
    both = both[:, :, np.isfinite(both).all(("row", "seed")).values]
    if both.sizes["image"] < 2:
        return None
    return seeds_and_images(both[0].values - both[1].values)


def seeds_and_images(values: np.ndarray) -> Estimate:
    """The mean of values (seed, image) that are no shares of points, Student's both ways, added in quadrature."""
    images = mean_of(values.mean(0), over="images")
    if len(values) == 1:
        return images
    half = math.hypot(images.spread, mean_of(values.mean(1)).spread)
    value = images.value
    return Estimate(value, value - half, value + half, values.size, "images and seeds")


def kin(data: xr.Dataset) -> xr.DataArray:
    """(row, seed): how near the row's first filters come to each of the adversarial net's."""
    filters = data.filters.transpose("row", "seed", "filter", "tap")
    unit = unit_rows(torch.from_numpy(filters.values).double())[0]
    hard = unit[list(data.row.values).index("adversarial")]  # (seed, filter, tap)
    near = torch.einsum("sit,rsjt->rsij", hard, unit).abs().amax(3).mean(2)
    return xr.DataArray(near.numpy(), dims=("row", "seed"), coords={"row": data.row})


def theta_start(data: xr.Dataset) -> xr.DataArray:
    """(row, seed): |cos| of first filters after and before training, in the mean over filters."""
    product = (data.start * data.filters).sum("tap")
    lengths = (np.sqrt((data[name] ** 2).sum("tap")) for name in ("start", "filters"))
    one, other = lengths
    return abs(product / (one * other)).mean("filter")
