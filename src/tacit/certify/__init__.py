"""Radii that no attack can beat."""

from tacit.certify.crown.chain import crown_obstacle
from tacit.certify.crown.radius import crown_margin, crown_radius
from tacit.certify.interval import Radii
from tacit.certify.logits.radius import logits_certified, logits_radius
from tacit.certify.nearest.radius import nearest_bounds, nearest_radius
from tacit.certify.radius import Question, radius
from tacit.certify.relu.radius import relu_radius
from tacit.certify.smoothing import Smoothed, smoothing_radius
from tacit.certify.symmetric.radius import symmetric_certified, symmetric_radius

Breaking = Radii  # its first name for ReLU nets

__all__ = [
    "Breaking",
    "Question",
    "Radii",
    "Smoothed",
    "crown_margin",
    "crown_obstacle",
    "crown_radius",
    "logits_certified",
    "logits_radius",
    "nearest_bounds",
    "nearest_radius",
    "radius",
    "relu_radius",
    "smoothing_radius",
    "symmetric_certified",
    "symmetric_radius",
]
