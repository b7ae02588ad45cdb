"""Radii of the nearest neighbour rule."""
