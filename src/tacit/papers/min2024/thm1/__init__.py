"""`min2024.thm1`: F breaks at 1/sqrt(K), F^(p) survives to sqrt(2)/2."""
