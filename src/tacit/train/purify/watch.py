"""A bias that no neuron reaches: found at the step where it happens."""

from dataclasses import dataclass

import torch

from tacit.base.shapes import Rows
from tacit.errors import CallError, RunError
from tacit.nets.smoothed import quantile
from tacit.train.purify.course import Awake, Course

FIRES = 1e-4  # slope from which a neuron counts as one that fires
SURE = 1000  # points in a row on which none fired, after which it is said


@dataclass
class Watch:
    """Counts the points on which no neuron fired, and since when."""

    quiet: int = 0
    since: int = 0
    threshold: float = quantile(FIRES)

    def see(self, step: int, who: Awake, course: Course, x: Rows) -> None:
        """Weights and biases that nothing moves do not help: once silent, the net stays so."""
        if not float(who.u.max()) <= -self.threshold:  # NaN is told by its loss
            self.quiet, self.since = 0, step + 1
            return
        self.quiet += len(x)
        if self.quiet < SURE:
            return
        best = int(torch.argmax(who.u))
        b = float(course.b[best])
        reached = b + float(who.u[best]) * course.sigma if course.sigma else 0.0
        told = (
            f"the bias {b:.4g} (noise {course.sigma:.3g}) is above what any neuron reaches, {reached:.4g} with "
            "the attacker's help"
        )
        if self.since == 0:
            raise CallError(
                f"from the first step on {told}, on {self.quiet} points: no neuron can ever fire. Lower the "
                "bias, start with larger weights, or raise the noise"
            )
        raise RunError(
            f"step {self.since}: {told}, on {self.quiet} points in a row: the bias outgrew the signal. Lower its "
            "ceiling or its growth, or raise eta"
        )
