r"""The shallow PolyReLU net with one output a class (min2024, Sections 2 and 5.2), as plain tensors.

    c = x - centre,    hidden_j = relu(<w_j, c>)^p / ||w_j||^(p-1),    logits = v hidden + b

Three readings of c, which for unit vectors c are one:

    as released   normalize_input=True    hidden_j is also divided by ||c||^(p-1): 1-homogeneous in c for every p
    as written    unit=True               c is scaled to length 1 first (Section 5.2.1: "normalize the residue")
    raw           both False              c as it is: p-homogeneous in c

With u = c/||c|| and r_j = relu(<w_j, u>)/||w_j|| = relu(cos(w_j, c)), hidden_j = ||c||^a ||w_j|| r_j^p with
a = 1, 0 and p.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base.linalg import power, unit_rows
from tacit.base.shapes import Sets
from tacit.errors import CallError
from tacit.nets.kinds import register
from tacit.nets.tensors import TensorNet


@dataclass(frozen=True)
class PolyReLUNet(TensorNet):
    """w (..., h, D), v (..., C, h), b (..., C) or None, p >= 1, centre (D,) or None.

    Any leading dimensions are members of an ensemble that share p and the centre.
    """

    w: Float[Tensor, "*e h D"]
    v: Float[Tensor, "*e C h"]
    b: Float[Tensor, "*e C"] | None = None
    p: float = 1.0
    centre: Float[Tensor, " D"] | None = None
    normalize_input: bool = True
    unit: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.p < math.inf:
            raise CallError(f"p={self.p}: PolyReLU needs a finite p >= 1 (p = 1 is ReLU)")

    def __call__(self, x: Sets) -> Float[Tensor, "*e n C"]:
        """The logits; x without ensemble dimensions is shown to every member."""
        logits = self.hidden(x) @ self.v.mT
        return logits if self.b is None else logits + self.b.unsqueeze(-2)

    def hidden(self, x: Sets) -> Float[Tensor, "*e n h"]:
        """What each neuron passes on."""
        points, size = self.prepared(x)
        directions, norm = self.directions()
        along = power((points @ directions.mT).clamp_min_(0), self.p)
        along = along if norm is None else along * norm.mT
        return along if size is None else along * size

    def directions(self) -> tuple[Float[Tensor, "*e h D"], Float[Tensor, "*e h 1"] | None]:
        """d_j and n_j so that neuron j passes on n_j relu(<d_j, u>)^p: w/||w|| and ||w||; w and None for p = 1.

        Powers of small weights would underflow; w = 0 passes nothing on.
        """
        return (self.w, None) if self.p == 1 else unit_rows(self.w)

    def prepared(self, x: Sets) -> tuple[Sets, Float[Tensor, "*x n 1"] | None]:
        """What the neurons see, and by how much their answers are scaled (None: not at all).

        (u, ||c||) as released, (u, None) as written, (c, None) raw. The centre itself is seen as 0.
        """
        points = x if self.centre is None else x - self.centre
        if not (self.normalize_input or self.unit):
            return points, None
        u, size = unit_rows(points)
        return u, None if self.unit else size


register(
    PolyReLUNet,
    name="poly_relu",
    target="tacit.attack.target:PolyReLUTarget",
    certificate="tacit.certify.radius:poly_relu_radius",
    proved_points="tacit.certify.radius:proved_points",
    trainee="tacit.train.descent.checks:tensor_trainee",
    trained=("w", "v", "b"),
    audited=PolyReLUNet.double,  # the type in which its certificate is computed
    hidden_weights="tacit.auditing.averaging:poly_relu_neurons",
)


def without_dust(w: Float[Tensor, "*e h D"]) -> Float[Tensor, "*e h D"]:
    """w with 0 in place of entries so small beside their neuron's largest that no sum of products notices them.

    Training with p > 1 shrinks the weights of pixels that are never lit, down to subnormal numbers, and a matrix
    product that gives such numbers takes 30 times as long on a CPU.
    """
    kind = torch.finfo(w.dtype)
    small = min(kind.tiny / kind.eps, kind.eps**2)  # the second in half precision
    return torch.where(w.abs() < small * w.abs().amax(-1, keepdim=True), 0.0, w)


def poly_relu_start(
    D: int,
    width: int,
    classes: int,
    p: float,
    generators: list[torch.Generator],
    *,
    bound: float | None = None,
    bias: bool = True,
    centre: Float[Tensor, " D"] | None = None,
    normalize_input: bool = True,
    unit: bool = False,
    dtype: torch.dtype = torch.float32,
) -> PolyReLUNet:
    """An ensemble before training, a member for each generator: (members, width, D).

    w uniform in +-`bound`, by default sqrt(6/D) (He et al. 2015); the released code has sqrt(6/width). v and b
    uniform in +-1/sqrt(width), as torch's linear layers are.
    """
    edge, out = math.sqrt(6 / D) if bound is None else bound, 1 / math.sqrt(width)

    def drawn(shape: tuple[int, ...], end: float) -> Tensor:
        """One tensor for each member, from its own stream."""
        parts = [
            torch.empty(shape, dtype=dtype).uniform_(-end, end, generator=g) for g in generators
        ]
        return torch.stack(parts)

    w, v = drawn((width, D), edge), drawn((classes, width), out)
    b = drawn((classes,), out) if bias else None
    return PolyReLUNet(w, v, b, p, centre, normalize_input, unit)
