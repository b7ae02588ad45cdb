"""Gradient flow, followed accurately: directions on the sphere, masses by their logarithm."""
