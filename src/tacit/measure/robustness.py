"""Robust accuracy over the radius as an interval: certified from below, attacked from above.

A point with radius rho is broken by some delta with ||delta|| <= r exactly where rho <= r. Where lower <= rho <=
upper is known, the point is robust for certain where lower > r, and not yet broken where upper > r; the share of
robust points lies between the two shares. Each share has its exact binomial interval over the sample.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.base.estimate import Estimate
from tacit.base.shapes import Numbers, Which
from tacit.base.statistics import proportion
from tacit.errors import CallError, RunError


@dataclass(frozen=True)
class RobustAt:
    """Robust accuracy at one radius: at least `certified`, at most `attacked`."""

    radius: float
    certified: Estimate
    attacked: Estimate


def robust_curve(lower: Numbers, upper: Numbers, radii: Sequence[float]) -> tuple[RobustAt, ...]:
    """The curve from each point's interval; upper = 0 where the point is broken as it stands.

    At radius 0 there is nothing but the point itself, so that no certificate is needed.
    """
    if len(lower) == 0:
        raise CallError("a robust curve needs at least one point")
    n = len(lower)
    return tuple(
        RobustAt(
            radius,
            proportion(int(((lower > radius) if radius > 0 else (upper > 0)).sum()), n),
            proportion(int((upper > radius).sum()), n),
        )
        for radius in radii
    )


def shortest_broken(
    broken: Bool[Tensor, "R n"], size: Float[Tensor, "R n"], radii: Sequence[float]
) -> Numbers:
    """The least size of a perturbation that broke each point, inf where none did.

    A size is at most its radius: what the rounding of float32 adds must not make a point count as robust there.
    """
    within = torch.minimum(
        size, torch.tensor(radii, dtype=size.dtype, device=size.device).unsqueeze(1)
    )
    return torch.where(broken, within, torch.inf).amin(0)


def not_monotone(broken: Bool[Tensor, "R n"]) -> Which:
    """Points that the attack broke at some radius and not at a larger one (radii ascend)."""
    return (broken[:-1] & ~broken[1:]).any(0)


def consistent(lower: Numbers, upper: Numbers, slack: Numbers) -> Numbers:
    """`lower`, at most `upper`; a certificate longer than an attack by more than `slack` is a bug.

    A certificate speaks of exact arithmetic, an attack of what the model computes: `slack` is the length that the
    rounding of the model is worth.
    """
    wrong = (lower > upper + slack).nonzero().flatten().tolist()
    if wrong:
        first = wrong[0]
        named = ", ".join(map(str, wrong[:5])) + (", ..." if len(wrong) > 5 else "")
        raise RunError(
            f"certified-above-attacked: points {named} ({len(wrong)} of {len(lower)}) are certified beyond a "
            f"perturbation that breaks them; point {first} up to {float(lower[first]):.6g}, and it is broken at "
            f"{float(upper[first]):.6g}: a model whose output changes from call to call, or whose rounding "
            "decides (call model.double() and audit again), or a bug in tacit; use no number of this audit, and "
            "please report it if float64 contradicts itself too"
        )
    return torch.minimum(lower, upper)
