"""The shapes that nearly every room speaks of."""

from jaxtyping import Bool, Float
from torch import Tensor

Rows = Float[Tensor, "n D"]  # points, perturbations or directions, one a row
Numbers = Float[Tensor, " n"]  # one number a row
Which = Bool[Tensor, " n"]  # some of the rows
