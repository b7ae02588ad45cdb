"""What the user may choose in an audit: radii and a box, checked against the data."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack.norms import Norm, known_norm
from tacit.base.shapes import Inputs, Labels, Rows
from tacit.errors import CallError

STEPS = 8  # of the radii that are chosen where none are given
PAIRS = 500  # points of each side that the choice looks at


def named_norm(norm: Any) -> Norm:
    """1, 2 or inf."""
    try:
        return known_norm(norm)
    except (TypeError, ValueError) as error:
        if isinstance(error, CallError):
            raise
        raise CallError(f"norm {norm!r}: choose 1, 2, inf") from None


def known_count(name: str, count: Any, remedy: str) -> int:
    """A whole number from 1 on."""
    try:
        whole = operator.index(count)
    except TypeError:
        raise CallError(f"{name} {count!r}: give a whole number, {remedy}") from None
    if whole < 1:
        raise CallError(f"{name} {whole}: {remedy}")
    return whole


def known_radii(radii: Any) -> tuple[float, ...]:
    """Finite radii >= 0, ascending, each once."""
    numbers = _numbers(radii)
    if numbers is None:
        raise CallError(f"radii {radii!r}: give a list of numbers, as in radii=(0.1, 0.2)")
    if not numbers:
        raise CallError("radii: give at least one, as in --radii 0.1,0.2")
    for radius in numbers:
        if not (math.isfinite(radius) and radius >= 0):
            raise CallError(f"radius {radius}: radii are finite numbers from 0 on")
    return tuple(sorted(set(numbers)))


def _numbers(values: Any) -> list[float] | None:
    """The numbers of a sequence; None where it is none, or holds something else."""
    try:
        return None if isinstance(values, str | bytes) else [float(value) for value in values]
    except (TypeError, ValueError):
        return None


def within_reach(radii: Sequence[float], dtype: torch.dtype) -> None:
    """Squares of radii must be numbers of the model's type."""
    most = torch.finfo(dtype).max ** 0.5 / 4
    if max(radii) > most:
        raise CallError(
            f"radius {max(radii):g}: {dtype}, the model's type, computes lengths up to {most:.2g} only; "
            "choose smaller radii or call model.double()"
        )


def natural_radii(x: Rows, y: Labels, norm: Norm) -> tuple[float, ...]:
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


def _spread(x: Rows) -> Float[Tensor, "m D"]:
    """At most PAIRS rows, evenly from all."""
    return x[:: math.ceil(len(x) / PAIRS)]


def known_box(box: Any, x: Inputs) -> tuple[float, float] | None:
    """Two ends, low < high, between which all of x lies."""
    if box is None:
        return None
    ends = _numbers(box)
    if ends is None or len(ends) != 2 or not all(map(math.isfinite, ends)) or not ends[0] < ends[1]:
        told = repr(box) if ends is None else ",".join(f"{end:g}" for end in ends)
        raise CallError(f"box {told}: give two finite ends, the low one first, as in --box 0,1")
    low, high = ends
    least, most = float(x.min()), float(x.max())
    if least < low or most > high:
        raise CallError(
            f"the box {low:g},{high:g} excludes the data, which lies in [{least:g}, {most:g}]: "
            "widen the box or scale the data"
        )
    return low, high
