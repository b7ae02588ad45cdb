"""Radii of PolyReLU nets with one output: exact for orthogonal neurons, certified for any."""
