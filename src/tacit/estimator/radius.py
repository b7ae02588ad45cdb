"""How far each point may be moved, in the user's X: certified from below, attacked from above."""

from __future__ import annotations

from jaxtyping import Float, Int64
from torch import Tensor

from tacit.attack import Norm, minimal
from tacit.certify.interval import Radii
from tacit.certify.logits.radius import logits_radius
from tacit.estimator.head import Head


def robust_radii(head: Head, x: Float[Tensor, "n D"], y: Int64[Tensor, " n"], norm: Norm) -> Radii:
    """A certified lower and an attacked upper bound of each radius, head and x in float64."""
    labels = None if head.whole else head.owner
    lower = logits_radius(head.net, x, y, norm=norm.order, labels=labels).lower
    subject = head.net if head.whole else head.scores
    found = minimal(subject, x, y, norm=norm)
    return Radii(lower, found.radius, found.delta)
