"""Certified radii of ReLU networks of any depth by linear relaxation (CROWN)."""
