"""`min2024.claim`: F and F^(p) are PolyReLU networks, in many ways."""
