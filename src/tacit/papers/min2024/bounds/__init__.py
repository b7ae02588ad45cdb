"""Sweeps of failure probabilities, shared by `prop1`, `thm1` and `thm3` (and `min2025.robust`)."""
