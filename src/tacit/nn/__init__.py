"""Torch modules for people with their own models."""

from tacit.nn.poly_relu import PolyReLU

__all__ = ["PolyReLU"]
