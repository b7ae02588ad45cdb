"""How many features a perturbation is spread over (allenzhu2020, Section 5.1: density of perturbations)."""

from jaxtyping import Float
from torch import Tensor

from tacit.errors import CallError
from tacit.measure.purification.mixture import coordinates


def participation(rows: Float[Tensor, "n d"], M: Float[Tensor, "d D"]) -> Float[Tensor, " n"]:
    """(sum_j c_j^2)^2 / sum_j c_j^4 of the coordinates c in the dictionary: 1 on one feature, D spread evenly.

    A direction drawn uniformly from the sphere has about D/3. A row of zeros has no ratio and is refused.
    """
    c = coordinates(rows, M)
    largest = c.abs().amax(1, keepdim=True)
    if not bool((largest > 0).all()):
        raise CallError("a perturbation of length 0 is spread over nothing: leave it out")
    squares = (c / largest).square()
    return squares.sum(1).square() / squares.square().sum(1)
