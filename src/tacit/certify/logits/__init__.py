"""Certified radii of PolyReLU nets with one output a class."""
