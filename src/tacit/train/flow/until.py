"""When a flow stops."""

import math
from dataclasses import dataclass

from tacit.errors import CallError


@dataclass(frozen=True)
class Until:
    """The first of these that is reached. `evaluations` (looks at all data) is a budget.

    `residual` is that of the direction: the sine of the angle between theta and -grad L. It is an upper bound of
    the KKT residual, the pulls being the multipliers.
    """

    log_loss: float | None = None
    time: float | None = None
    residual: float | None = None
    evaluations: int = 20_000

    def __post_init__(self) -> None:
        if self.log_loss is None and self.time is None and self.residual is None:
            raise CallError("until: say when to stop, by log_loss, time or residual")
        if self.log_loss is not None and math.isnan(self.log_loss):
            raise CallError("until: log_loss=nan is no number")
        if self.time is not None and not self.time > 0:
            raise CallError(f"until: time={self.time} is not positive")
        if self.residual is not None and not 0 < self.residual < 1:
            raise CallError(f"until: residual={self.residual} lies between 0 and 1")
        if self.evaluations < 2:
            raise CallError(f"until: evaluations={self.evaluations} is no budget: allow at least 2")
