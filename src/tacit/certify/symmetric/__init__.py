"""Certified radii of the symmetric net whose noise is smoothed in closed form."""
