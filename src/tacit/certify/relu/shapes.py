"""The shapes of a search: N nodes, each of one point, and the m own neurons of its class."""

from jaxtyping import Bool, Float, Int
from torch import Tensor

PerNode = Float[Tensor, " N"]
Owners = Int[Tensor, " N"]  # the number of each node's point
Chosen = Bool[Tensor, " N"]  # some of the nodes
Shares = Float[Tensor, "N m"]  # theta, and what stands beside it
