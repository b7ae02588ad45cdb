"""The shapes that nearly every room speaks of."""

from jaxtyping import Bool, Float, Int64, Shaped
from torch import Tensor

Rows = Float[Tensor, "n D"]  # points, perturbations or directions, one a row
Inputs = Float[Tensor, "n ..."]  # points of any shape, as a model takes them
Sets = Float[Tensor, "*x n D"]  # points, perhaps other ones for each net of an ensemble
Column = Float[Tensor, "n 1"]  # one number a row, beside rows
Numbers = Float[Tensor, " n"]  # one number a row
Outputs = Float[Tensor, "*e n"]  # one number a point, of each net of an ensemble
Which = Bool[Tensor, " n"]  # some of the rows
Labels = Shaped[Tensor, " n"]  # +-1, or the number of a class
Index = Int64[Tensor, " n"]  # each row's class or group, or the rows in some order
