"""Radii that no attack can beat."""

from tacit.certify.crown import crown_margin, crown_radius
from tacit.certify.crown_chain import can_crown, crown_obstacle
from tacit.certify.interval import Radii
from tacit.certify.logits import logits_certified, logits_radius
from tacit.certify.nearest import nearest_bounds, nearest_radius
from tacit.certify.radius import radius
from tacit.certify.relu import Breaking, relu_radius
from tacit.certify.smoothing import Smoothed, smoothing_radius

__all__ = [
    "Breaking",
    "Radii",
    "Smoothed",
    "can_crown",
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
]
