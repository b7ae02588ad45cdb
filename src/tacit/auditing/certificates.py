"""Each point's radius from below: the certificate that suits the model, or the reason why there is none."""

from dataclasses import replace

import torch

from tacit.auditing.task import Task
from tacit.base.shapes import Inputs, Labels
from tacit.certify.choice import Certificate, chosen
from tacit.certify.interval import Radii, at_least
from tacit.certify.radius import Question


def certificate_of(task: Task, x: Inputs, y: Labels) -> Certificate:
    """The certificate for this kind of model, tried on points x; its name says why there is none."""
    question = Question(task.norm, attacked=False)
    found, _, reason = chosen(task.subject.model, x, y, question, task.box)
    if found is None:
        return Certificate(f"none: {reason}", nothing_proved)
    return found if found.points is None else of_the_first(found, found.points)


def of_the_first(certificate: Certificate, most: int) -> Certificate:
    """Only the first right points of an audit get one; its name tells how many."""
    left = most

    def radii(x: Inputs, y: Labels) -> Radii:
        """Nothing is proved of the points beyond the first `most` of all batches."""
        nonlocal left
        here = min(left, len(x))
        left -= here
        known = nothing_proved(x, y)
        if here:
            known.lower[:here] = certificate.radii(x[:here], y[:here]).lower
        return known

    name = f"{certificate.name}, for the first {most} points that are right"
    return replace(certificate, name=name, radii=radii)


def nothing_proved(x: Inputs, y: Labels) -> Radii:  # noqa: ARG001
    """No certificate: 0 from below, nothing from above."""
    return at_least(torch.zeros(len(x), dtype=torch.float64))
