"""Sweeps of d, k, n and time, shared by `thm4.5`, `thm4.6` and `thm4.7`."""
