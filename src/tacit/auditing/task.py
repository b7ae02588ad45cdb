"""What is audited, as certificates and attacks want it."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from tacit.attack.norms import Norm
from tacit.auditing.subject import Subject


@dataclass(frozen=True)
class Task:
    """The model at these radii (> 0, ascending), in this norm, perhaps in a box.

    `means` are the class means of all the data, towards which attacks start (None: a class has no point).
    """

    subject: Subject
    radii: tuple[float, ...]
    norm: Norm
    box: tuple[float, float] | None
    means: Float[Tensor, "C ..."] | None
