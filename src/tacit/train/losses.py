"""The papers' two losses of a margin m = y f, as functions of m alone.

    exponential  l(m) = exp(-m)                -l'(m) = exp(-m)
    logistic     l(m) = log(1 + exp(-m))       -l'(m) = 1 / (1 + exp(m))

(min2024, Section 2; frei2023, Section 2; li2025, Section 3 has the logistic one.) `smoothing` s in [0, 1)
is label smoothing of the logistic loss: the target is y with weight 1 - s/2 and -y with weight s/2 (Szegedy et
al. 2016, Section 7, for two classes), so -l' falls by s/2 and the margin stops at log(2/s - 1).
"""

from typing import Literal

from torch.nn.functional import logsigmoid

from tacit.base.shapes import Outputs

LossName = Literal["exp", "logistic"]


def loss_at(margin: Outputs, loss: LossName, smoothing: float = 0.0) -> Outputs:
    """l(m), point by point."""
    if loss == "exp":
        return margin.neg().exp()
    # logsigmoid is exact in the tails, where softplus switches to a line
    plain = -logsigmoid(margin)
    return plain + (smoothing / 2) * margin if smoothing else plain


def pull_at(margin: Outputs, loss: LossName, smoothing: float = 0.0) -> Outputs:
    """-l'(m), point by point: how hard each point pulls."""
    return margin.neg().exp() if loss == "exp" else margin.neg().sigmoid() - smoothing / 2
