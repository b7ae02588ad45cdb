"""The shapes that nearly every room speaks of."""

from jaxtyping import Bool, Float, Shaped
from torch import Tensor

Rows = Float[Tensor, "n D"]  # points, perturbations or directions, one a row
Column = Float[Tensor, "n 1"]  # one number a row, beside rows
Numbers = Float[Tensor, " n"]  # one number a row
Which = Bool[Tensor, " n"]  # some of the rows
Labels = Shaped[Tensor, " n"]  # +-1, or the number of a class
