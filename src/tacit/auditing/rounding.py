"""What the rounding of a model is worth as a length.

A certificate speaks of exact arithmetic, an attack of what the model computes in its own type. Where the margins
of the model and of its copy in float64 differ by up to e, a point of margin m at distance rho from the boundary
is broken about rho e / m too early (the margin falls from m to 0 over rho).
"""

import copy
from dataclasses import replace
from typing import Any

import torch

from tacit.attack.losses import margin
from tacit.attack.norms import Norm
from tacit.auditing.subject import Subject
from tacit.base.shapes import Inputs, Labels, Numbers
from tacit.errors import TacitError
from tacit.nets.kinds import kind_of

RELATIVE = {torch.float64: 1e-6}  # a share of the radius
RELATIVE_ELSE = 1e-3
ROUNDINGS = 100  # units in the last place of the point
SAFETY = 4  # the difference is known at the points, and it is the perturbed ones that count


def rounding(
    norm: Norm, exact: Subject | None, x: Inputs, y: Labels, margins: Numbers
) -> tuple[Numbers, Numbers]:
    """A share of the radius (inf: rounding decides the class) and a length, for points of these margins > 0."""
    size = norm.size(x.flatten(1)).double().cpu()
    fixed = ROUNDINGS * torch.finfo(x.dtype).eps * size
    loose = torch.full_like(fixed, RELATIVE.get(x.dtype, RELATIVE_ELSE))
    if exact is None or len(x) == 0:
        return loose, fixed
    own = margins.double()
    worst = SAFETY * (margin(exact.scores(x.double()), y) - own).abs().max()
    # a longer share than all of the radius bounds nothing
    share = torch.where(worst < own, worst / (own - worst), torch.inf).cpu()
    return loose + share, fixed


def double_of(subject: Subject) -> Subject | None:
    """The model in float64; None where it is already, or where no such copy can be had."""
    model: Any = subject.model
    if subject.dtype == torch.float64:
        return None
    if kind_of(model) is None:
        return None
    try:
        model = copy.deepcopy(model).double()
    except (RuntimeError, TypeError, AttributeError):  # what holds a handle cannot be copied
        return None
    exact = replace(subject, model=model, dtype=torch.float64)
    try:
        exact.scores(torch.zeros(2, *subject.shape, dtype=torch.float64, device=subject.device))
    except (TacitError, RuntimeError):  # the model insists on its type
        return None
    return exact
