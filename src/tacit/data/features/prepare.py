"""Features centred and normalised (min2024, Sections 5.2.1 and 5.2.2).

    centre = mean of the training rows,   x -> (x - centre) / ||x - centre||

for the training and the test rows alike. A PolyReLU's output grows as ||x||^p: without this, p = 4 sees
a few long rows only (min2024, footnote 4).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base import linalg
from tacit.base.checks import check_finite
from tacit.data.images import Features
from tacit.errors import CallError

# float32 keeps 6e-8 of a number: below this share of its length, a residue's direction is rounding
LOST = 1e-6
ROWS = 4096


@dataclass(frozen=True)
class Prepared:
    """Rows of length 1 and the centre that was taken off them, all float32."""

    train: Float[Tensor, "n d"]
    test: Float[Tensor, "m d"] | None
    centre: Float[Tensor, " d"]


def prepare(train: Features, test: Features | None = None) -> Prepared:
    """Both sets centred by the mean of the training features, each row of length 1.

    A row that equals the mean (to float32's rounding) has no direction. It is refused by its number
    rather than left at 0: a net whose layer is input-normalised divides by that length, and no attack
    radius on the unit sphere would mean anything for it.
    """
    if test is not None and test.x.shape[1] != train.x.shape[1]:
        raise CallError(
            f"the training features have {train.x.shape[1]} columns and the test features {test.x.shape[1]}: "
            "both need the same extractor"
        )
    if len(train.x) == 0:
        raise CallError("there are no training features to take the mean of")
    centre = train.x.mean(0, dtype=torch.float64)
    check_finite("a row of the training features", centre, remedy="leave it out")
    if _constant(train.x):
        raise CallError(
            f"the training features are constant (all {len(train.x)} rows are equal): nothing can be learned "
            "from them; check the extractor"
        )
    return Prepared(
        unit_rows(train.x, centre, "the training features"),
        None if test is None else unit_rows(test.x, centre, "the test features"),
        centre.float(),
    )


def unit_rows(
    x: Float[Tensor, "n d"], centre: Float[Tensor, " d"], what: str = "the features"
) -> Float[Tensor, "n d"]:
    """(x - centre) / ||x - centre|| for each row, computed in float64 and kept in x's type."""
    out = torch.empty_like(x)
    for first in range(0, len(x), ROWS):  # in blocks: float64 of the whole set may not fit
        rows = x[first : first + ROWS].double()
        residue = rows - centre
        units, length = linalg.unit_rows(residue)
        scale = torch.linalg.vector_norm(rows, dim=1)
        # written so that NaN and infinity are not good either
        bad = ~((length.squeeze(1) > LOST * scale) & scale.isfinite())
        if bad.any():
            row = int(bad.nonzero()[0])
            number = first + row
            check_finite(f"row {number} of {what}", rows[row], remedy="leave it out")
            raise CallError(
                f"row {number} of {what} equals the mean of the training features, and has no direction: "
                "leave it out"
            )
        out[first : first + ROWS] = units
    return out


def _constant(x: Float[Tensor, "n d"]) -> bool:
    """Whether all rows are equal, to float32's rounding."""
    spread = (x.amax(0) - x.amin(0)).double()
    return bool(spread.norm() <= LOST * x[0].double().norm())
