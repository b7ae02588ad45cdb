"""Exact radii of two-layer ReLU nets by branch and bound."""
