"""What the user may choose in an audit: radii and a box, checked against the data."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from tacit.attack.norms import Norm
from tacit.errors import CallError

STEPS = 8  # of the radii that are chosen where none are given
PAIRS = 500  # points of each side that the choice looks at


def known_radii(radii: Sequence[float]) -> tuple[float, ...]:
    """Finite radii >= 0, ascending, each once."""
    if len(radii) == 0:
        raise CallError("radii: give at least one, as in --radii 0.1,0.2")
    for radius in radii:
        if not (math.isfinite(radius) and radius >= 0):
            raise CallError(f"radius {radius}: radii are finite numbers from 0 on")
    return tuple(sorted({float(radius) for radius in radii}))


def natural_radii(
    x: Float[Tensor, "n D"], y: Shaped[Tensor, " n"], norm: Norm
) -> tuple[float, ...]:
    """Eight equal steps to half the median distance between a point and the nearest of another class.

    No classifier that is right on both ends of such a pair is robust beyond half of it at both. Rounded to two
    digits, at most PAIRS points of each class against as many others.
    """
    if len(y.unique()) < 2:
        raise CallError("all points are of one class, which gives no scale: give radii")
    p = norm.order
    nearest = []
    for label in y.unique():
        own, others = x[y == label][:PAIRS].double(), _spread(x[y != label]).double()
        nearest.append(torch.cdist(own, others, p=p).amin(1))
    reach = float(torch.cat(nearest).median()) / 2
    if reach == 0:
        raise CallError("half of the points lie on a point of another class: give radii")
    return tuple(float(f"{reach * step / STEPS:.2g}") for step in range(1, STEPS + 1))


def _spread(x: Float[Tensor, "n D"]) -> Float[Tensor, "m D"]:
    """At most PAIRS rows, evenly from all."""
    return x[:: math.ceil(len(x) / PAIRS)]


def known_box(box: Sequence[float] | None, x: Float[Tensor, "n ..."]) -> tuple[float, float] | None:
    """Two ends, low < high, between which all of x lies."""
    if box is None:
        return None
    if len(box) != 2 or not all(map(math.isfinite, box)) or not box[0] < box[1]:
        told = ",".join(f"{end:g}" for end in box)
        raise CallError(f"box {told}: give two finite ends, the low one first, as in --box 0,1")
    low, high = float(box[0]), float(box[1])
    least, most = float(x.min()), float(x.max())
    if least < low or most > high:
        raise CallError(
            f"the box {low:g},{high:g} excludes the data, which lies in [{least:g}, {most:g}]: "
            "widen the box or scale the data"
        )
    return low, high
