"""Descent in steps: gradient descent, SGD, Adam, with perturbed points or without."""
