"""What is read off a classifier and a sample."""

from tacit.measure.alignment import alignment_field
from tacit.measure.statistics import (
    Estimate,
    critical_radius,
    lower_limit,
    proportion,
    upper_limit,
)
from tacit.measure.tails import Tail, largest_constant

__all__ = [
    "Estimate",
    "Tail",
    "alignment_field",
    "critical_radius",
    "largest_constant",
    "lower_limit",
    "proportion",
    "upper_limit",
]
