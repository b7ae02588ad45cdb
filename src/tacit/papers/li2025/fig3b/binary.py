r"""The binary classifier of a net with 2 labels or with 10, and how far it withstands (Sections 4.2 and 6.2).

The paper's rule sums the probabilities of each half of the classes: F = sum_{j < 5} p_j - sum_{j >= 5} p_j. With
a = logsumexp of the first half of the logits and b of the second, F = tanh((a - b)/2). So the two scores (a, b)
have the rule's sign, and a margin a - b that does not saturate as F does. It is *not* the class with the largest
logit: five classes of probability .11 outvote one of .45. With 2 labels a and b are the logits themselves.
"""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from tacit.attack import apgd
from tacit.train.deep.views import attacked_view

BOX = (0.0, 1.0)
STARTS = ("gradient", "random")
ROWS = (
    2048  # points times starts: a ResNet-18 keeps 4.7 MB a row of 32 x 32 pixels for its gradient
)
AT_ONCE = 1000  # images without a gradient


class Halves(nn.Module):
    """The log-sum-exp of each half of a net's logits, (n, 2)."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Float[Tensor, "n C H W"]) -> Float[Tensor, "n 2"]:
        """The scores of the first half of the classes (label 0) and of the second (label 1)."""
        return self.net(x).unflatten(1, (2, -1)).logsumexp(2)


def rightly(
    rule: nn.Module, x: Float[Tensor, "n C H W"], y: Int64[Tensor, " n"]
) -> Bool[Tensor, " n"]:
    """Where the score of the label is the larger one: a tie is an error, as it is for an attack."""
    with torch.no_grad():
        scores = torch.cat([rule(part) for part in x.split(AT_ONCE)])
    own = scores.gather(1, y.unsqueeze(1)).squeeze(1)
    return own > scores.gather(1, 1 - y.unsqueeze(1)).squeeze(1)


def withstood(
    rule: nn.Module,
    x: Float[Tensor, "n C H W"],
    y: Int64[Tensor, " n"],
    radii: tuple[float, ...],
    *,
    steps: int,
    seed: int,
) -> Bool[Tensor, "R n"]:
    """Which points no attack broke at each radius, in ascending order: APGD on the margin, in the box [0, 1].

    The public attack checks ball and box, and judges anew what it returns. A larger radius starts from what a
    smaller one found as well.
    """
    found = apgd(
        attacked_view(rule), x, y, radii, norm=2, box=BOX, starts=STARTS, steps=steps, seed=seed,
        batch=min(ROWS, len(x) * len(STARTS)) if x.is_cuda else None,
    )  # fmt: skip
    return ~found.broken
