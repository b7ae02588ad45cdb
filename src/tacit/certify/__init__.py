"""Radii that no attack can beat."""

from tacit.certify.interval import Radii
from tacit.certify.nearest import nearest_bounds, nearest_radius
from tacit.certify.radius import radius

__all__ = ["Radii", "nearest_bounds", "nearest_radius", "radius"]
